package dataset

import (
	"fmt"
	"io"
	"math"
	"path/filepath"

	"fluentps/ps/workload/dataset/files"
)

// CIFAR-10's binary version: records of a label byte, then a red, a green and a blue plane of 32 x 32.
const (
	cifarPixels  = 3 * 32 * 32
	cifarRecord  = 1 + cifarPixels
	cifarClasses = 10
)

var cifarImage = Image{Channels: 3, Height: 32, Width: 32}

// ImageOf is the shape of the images of a set whose reader accepts only one shape. It is zero if the files say the shape, or if the
// rows are not images.
func ImageOf(set string) Image {
	if set == "cifar10" {
		return cifarImage
	}
	return Image{}
}

// cifarMean and cifarStd are the mean and the standard deviation of the channels of the training set, with bytes scaled to 0..1.
// Most publications use these values. They normalise training and test images.
var (
	cifarMean = [3]float64{0.4914, 0.4822, 0.4465}
	cifarStd  = [3]float64{0.2470, 0.2435, 0.2616}
)

func loadCIFAR10(s Spec, in *files.Reading) (*Set, error) {
	set := &Set{Classes: cifarClasses}
	train, test := newCIFAR(), newCIFAR()
	for i := 1; i <= 5; i++ {
		if err := train.read(filepath.Join(s.Path, fmt.Sprintf("data_batch_%d.bin", i)), 5, in); err != nil {
			return nil, err
		}
	}
	if err := test.read(filepath.Join(s.Path, "test_batch.bin"), 1, in); err != nil {
		return nil, err
	}
	set.Train, set.Test, set.Image = &train.pixels, &test.pixels, cifarImage
	return set, nil
}

type cifar struct{ pixels }

func newCIFAR() *cifar {
	c := &cifar{pixels{image: cifarImage}}
	for ch := range cifarMean {
		c.values = append(c.values, byteValues(255, cifarMean[ch], cifarStd[ch]))
	}
	return c
}

// read appends one of so many files, which are all of about the same size.
func (c *cifar) read(path string, count int, in *files.Reading) error {
	const hint = "the folder needs data_batch_1.bin to data_batch_5.bin and test_batch.bin of CIFAR-10's binary " +
		"version: https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
	first := len(c.labels) == 0
	err := in.Read(path, hint, func(src *files.Source) error { return c.parse(path, src, in) })
	if more := len(c.data) * (count - 1); err == nil && first && int64(more+len(c.data)) <= in.Left() {
		c.data, err = files.Grow(in, nil, c.data, more)
	}
	return err
}

func (c *cifar) parse(path string, src *files.Source, in *files.Reading) error {
	first := len(c.labels)
	record := make([]byte, cifarRecord)
	for {
		n, err := io.ReadFull(src, record)
		if err == io.EOF && src.Bytes > 0 {
			return checkByteLabels(path, c.labels[first:], cifarClasses, 0, cifarRecord)
		}
		if short(err) {
			return fmt.Errorf("data: %s: %d unpacked bytes, want one or more records of %d; the file is cut short, or not "+
				"CIFAR-10's binary version", path, src.Bytes, cifarRecord)
		}
		if err != nil {
			return err // the source has named the file
		}
		if err := files.Put(in, src, &c.labels, record[0]); err != nil {
			return err
		}
		if err := files.Put(in, src, &c.data, record[1:n]...); err != nil {
			return err
		}
	}
}

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
