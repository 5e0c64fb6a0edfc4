package workload

import (
	"fmt"
	"io"
	"path/filepath"
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

func loadCIFAR10(s DataSpec, in *reading) (*Set, error) {
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
func (c *cifar) read(path string, files int, in *reading) error {
	const hint = "the folder needs data_batch_1.bin to data_batch_5.bin and test_batch.bin of CIFAR-10's binary " +
		"version: https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
	first := len(c.labels) == 0
	err := in.read(path, hint, func(src *source) error { return c.parse(path, src, in) })
	if more := len(c.data) * (files - 1); err == nil && first && int64(more+len(c.data)) <= in.left {
		c.data, err = grow(in, nil, c.data, more)
	}
	return err
}

func (c *cifar) parse(path string, src *source, in *reading) error {
	first := len(c.labels)
	record := make([]byte, cifarRecord)
	for {
		n, err := io.ReadFull(src, record)
		if err == io.EOF && src.bytes > 0 {
			return checkByteLabels(path, c.labels[first:], cifarClasses, 0, cifarRecord)
		}
		if short(err) {
			return fmt.Errorf("data: %s: %d unpacked bytes, want one or more records of %d; the file is cut short, or not "+
				"CIFAR-10's binary version", path, src.bytes, cifarRecord)
		}
		if err != nil {
			return err // the source has named the file
		}
		if err := put(in, src, &c.labels, record[0]); err != nil {
			return err
		}
		if err := put(in, src, &c.data, record[1:n]...); err != nil {
			return err
		}
	}
}
