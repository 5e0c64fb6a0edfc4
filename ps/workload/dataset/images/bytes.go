package images

import "math"

// Bytes is a table of images with one byte a value.
type Bytes struct {
	data   []byte  // rows x Cols
	y      []int32 // rows: the classes, or the bits of targets
	image  Shape
	values [][256]float32 // per channel: the normalised value of each byte
}

func (p *Bytes) Rows() int    { return len(p.y) }
func (p *Bytes) Shape() Shape { return p.image }

// Holds is the memory in bytes: that of the table alone, and that shared by the tables of the set.
func (p *Bytes) Holds() (own, common int64) {
	return int64(cap(p.data)) + 4*int64(cap(p.y)), int64(len(p.values)) * 256 * 4
}

func (p *Bytes) Cols() int { return p.image.Channels * p.image.Height * p.image.Width }

// Fill gathers rows: normalised values into x (len(rows) x Cols, row-major), class numbers into y, or the bits of targets.
func (p *Bytes) Fill(x []float32, y []int32, rows []int32) {
	cols, plane := p.Cols(), p.image.Height*p.image.Width
	for i, r := range rows {
		y[i] = p.y[r]
		from, to := p.data[int(r)*cols:][:cols], x[i*cols:][:cols]
		for c := range p.values {
			values, to := &p.values[c], to[c*plane:][:plane]
			for j, v := range from[c*plane:][:plane] {
				to[j] = values[v]
			}
		}
	}
}

// Labels are the classes of all rows, or the bits of their targets.
func (p *Bytes) Labels() []int32 { return p.y }

// Label is the class of a row.
func (p *Bytes) Label(row int) int32 { return p.y[row] }

// standardised are the values of bytes with which each channel of p has mean 0 and standard deviation 1. A constant channel gets
// value 0.
func (p *Bytes) standardised() [][256]float32 {
	values := make([][256]float32, p.image.Channels)
	for c := range values {
		mean, std := p.moments(c)
		if std == 0 {
			std = 1
		}
		values[c] = ByteValues(1, mean, std)
	}
	return values
}

// moments are the mean and the standard deviation of the bytes of a channel, over all rows and pixels.
func (p *Bytes) moments(channel int) (mean, std float64) {
	cols, plane := p.Cols(), p.image.Height*p.image.Width
	var counts [256]int // integers, so that sums are exact
	for r := range p.y {
		for _, v := range p.data[r*cols+channel*plane:][:plane] {
			counts[v]++
		}
	}
	n := float64(len(p.y) * plane)
	for v, k := range counts {
		mean += float64(v) * float64(k) / n
	}
	for v, k := range counts {
		std += (float64(v) - mean) * (float64(v) - mean) * float64(k) / n
	}
	return mean, math.Sqrt(std)
}

// ByteValues maps a byte v to (v/scale - mean) / std.
func ByteValues(scale, mean, std float64) (values [256]float32) {
	for v := range values {
		values[v] = float32((float64(v)/scale - mean) / std)
	}
	return values
}
