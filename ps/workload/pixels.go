package workload

// pixels is a table of images of one byte a value.
type pixels struct {
	data   []byte // rows x Cols
	labels []byte // rows
	image  Image
	values [][256]float32 // normalised value of a byte, for each channel
}

func (p *pixels) Rows() int { return len(p.labels) }
func (p *pixels) Cols() int { return p.image.Channels * p.image.Height * p.image.Width }

func (p *pixels) Fill(x []float32, y []int32, rows []int32) {
	cols, plane := p.Cols(), p.image.Height*p.image.Width
	for i, r := range rows {
		y[i] = int32(p.labels[r])
		from, to := p.data[int(r)*cols:][:cols], x[i*cols:][:cols]
		for c := range p.values {
			values, to := &p.values[c], to[c*plane:][:plane]
			for j, v := range from[c*plane:][:plane] {
				to[j] = values[v]
			}
		}
	}
}

// byteValues maps a byte v to (v/scale - mean) / std.
func byteValues(scale, mean, std float64) (values [256]float32) {
	for v := range values {
		values[v] = float32((float64(v)/scale - mean) / std)
	}
	return values
}
