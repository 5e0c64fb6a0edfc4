package images

import (
	"math"

	"fluentps/ps/workload/dataset/files"
)

// Bytes is a table of images with one byte a value.
type Bytes struct {
	data   []byte  // rows x Cols
	y      []int32 // rows: the classes, or the bits of targets
	image  Shape
	values [][256]float32 // per channel: the normalised value of each byte
	stream *stream        // where the rows are decoded when they are asked for, in place of data; nil: they are in data
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
	cols, plane := p.Cols(), p.image.Height*p.image.Width*p.image.Channels/max(1, len(p.values))
	for i, r := range rows {
		y[i] = p.y[r]
		Values(x[i*cols:][:cols], p.data[int(r)*cols:][:cols], p.values, plane)
	}
}

// Values writes the values of the bytes of a row, of which each table has those of so many.
func Values(to []float32, from []byte, tables [][256]float32, plane int) {
	for c := range tables {
		values, to := &tables[c], to[c*plane:][:plane]
		for j, v := range from[c*plane:][:plane] {
			to[j] = values[v]
		}
	}
}

// Raw are the bytes of a row, channel by channel.
func (p *Bytes) Raw(row int) []byte { return p.data[row*p.Cols():][:p.Cols()] }

// Each calls f for the bytes of each row, in order.
func (p *Bytes) Each(f func(row int, bytes []byte) error) error {
	if p.stream != nil {
		return p.stream.each(p, f)
	}
	for r := range p.y {
		if err := f(r, p.Raw(r)); err != nil {
			return err
		}
	}
	return nil
}

// Sum is that of the pictures, once Each has read them all; ok is false if it was known when they were listed.
func (p *Bytes) Sum() (sum files.Sum, ok bool) {
	if p.stream == nil {
		return sum, false
	}
	return p.stream.sum, true
}

// ByteValues are the values of bytes, for each channel or for all.
func (p *Bytes) ByteValues() [][256]float32 { return p.values }

// Labels are the classes of all rows, or the bits of their targets.
func (p *Bytes) Labels() []int32 { return p.y }

// Label is the class of a row.
func (p *Bytes) Label(row int) int32 { return p.y[row] }

// standardised are the values of bytes with which each channel of p has mean 0 and standard deviation 1. A constant channel gets
// value 0.
func (p *Bytes) standardised() [][256]float32 {
	counts := make([][256]int, p.image.Channels)
	for r := range p.y {
		count(counts, p.Raw(r))
	}
	return standardisedBy(counts)
}

// count counts the bytes of a row by channel: integers, so that sums are exact.
func count(counts [][256]int, row []byte) {
	plane := len(row) / len(counts)
	for c := range counts {
		of := &counts[c]
		for _, v := range row[c*plane:][:plane] {
			of[v]++
		}
	}
}

func standardisedBy(counts [][256]int) [][256]float32 {
	values := make([][256]float32, len(counts))
	for c := range values {
		mean, std := moments(&counts[c])
		if std == 0 {
			std = 1
		}
		values[c] = ByteValues(1, mean, std)
	}
	return values
}

// moments are the mean and the standard deviation of bytes.
func moments(counts *[256]int) (mean, std float64) {
	all := 0
	for _, k := range counts {
		all += k
	}
	n := float64(all)
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
