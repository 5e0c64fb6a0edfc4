package workload

import "math"

// pixels is a table of images with one byte per value.
type pixels struct {
	data   []byte // rows x Cols
	labels []byte // rows
	image  Image
	values [][256]float32 // per channel: the normalised value of each byte
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

func (p *pixels) label(row int) int32 { return int32(p.labels[row]) }

// standardised are the values of bytes with which each channel of p has mean 0 and standard deviation 1. A constant channel gets
// value 0.
func (p *pixels) standardised() [][256]float32 {
	values := make([][256]float32, p.image.Channels)
	for c := range values {
		mean, std := p.moments(c)
		if std == 0 {
			std = 1
		}
		values[c] = byteValues(1, mean, std)
	}
	return values
}

// moments are the mean and the standard deviation of the bytes of a channel, over all rows and pixels.
func (p *pixels) moments(channel int) (mean, std float64) {
	cols, plane := p.Cols(), p.image.Height*p.image.Width
	var counts [256]int // integers, so that sums are exact
	for r := range p.labels {
		for _, v := range p.data[r*cols+channel*plane:][:plane] {
			counts[v]++
		}
	}
	n := float64(len(p.labels) * plane)
	for v, k := range counts {
		mean += float64(v) * float64(k) / n
	}
	for v, k := range counts {
		std += (float64(v) - mean) * (float64(v) - mean) * float64(k) / n
	}
	return mean, math.Sqrt(std)
}

// byteValues maps a byte v to (v/scale - mean) / std.
func byteValues(scale, mean, std float64) (values [256]float32) {
	for v := range values {
		values[v] = float32((float64(v)/scale - mean) / std)
	}
	return values
}
