package workload

// pixels is a table of images of one byte a value, each image in planes of equal size.
type pixels struct {
	data   []byte // rows x cols
	labels []byte // rows
	cols   int
	values [][256]float32 // normalised value of a byte, for each plane
}

func (p *pixels) Rows() int { return len(p.labels) }
func (p *pixels) Cols() int { return p.cols }

func (p *pixels) Fill(x []float32, y []int32, rows []int32) {
	plane := p.cols / len(p.values)
	for i, r := range rows {
		y[i] = int32(p.labels[r])
		from, to := p.data[int(r)*p.cols:][:p.cols], x[i*p.cols:][:p.cols]
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
