package images

import (
	"fmt"
	"io"
	"path/filepath"

	"fluentps/ps/workload/dataset/files"
)

// CIFAR-10's binary version: records of a label byte, then a red, a green and a blue plane of 32 x 32.
const (
	cifarPixels  = 3 * 32 * 32
	cifarRecord  = 1 + cifarPixels
	cifarClasses = 10
)

var cifarImage = Shape{Channels: 3, Height: 32, Width: 32}

// ImageOf is the shape of the images of a set whose reader accepts only one shape. It is zero if the files say the shape, or if the
// rows are not images.
func ImageOf(set string) Shape {
	if set == "cifar10" {
		return cifarImage
	}
	return Shape{}
}

// cifarMean and cifarStd are the mean and the standard deviation of the channels of the training set, with bytes scaled to 0..1.
// Most publications use these values. They normalise training and test images.
var (
	cifarMean = [3]float64{0.4914, 0.4822, 0.4465}
	cifarStd  = [3]float64{0.2470, 0.2435, 0.2616}
)

// ReadCIFAR10 reads the files of CIFAR-10 in a folder.
func ReadCIFAR10(folder string, in *files.Reading) (train, test *Bytes, classes int, err error) {
	first, second := newCIFAR(), newCIFAR()
	for i := 1; i <= 5; i++ {
		if err := first.read(filepath.Join(folder, fmt.Sprintf("data_batch_%d.bin", i)), 5, in); err != nil {
			return nil, nil, 0, err
		}
	}
	if err := second.read(filepath.Join(folder, "test_batch.bin"), 1, in); err != nil {
		return nil, nil, 0, err
	}
	return &first.Bytes, &second.Bytes, cifarClasses, nil
}

type cifar struct{ Bytes }

func newCIFAR() *cifar {
	c := &cifar{Bytes{image: cifarImage}}
	for ch := range cifarMean {
		c.values = append(c.values, ByteValues(255, cifarMean[ch], cifarStd[ch]))
	}
	return c
}

// read appends one of so many files, which are all of about the same size.
func (c *cifar) read(path string, count int, in *files.Reading) error {
	const hint = "the folder needs data_batch_1.bin to data_batch_5.bin and test_batch.bin of CIFAR-10's binary " +
		"version: https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz"
	first := len(c.y) == 0
	err := in.Read(path, hint, func(src *files.Source) error { return c.parse(path, src, in) })
	if more := len(c.data) * (count - 1); err == nil && first && int64(more+len(c.data)) <= in.Left() {
		c.data, err = files.Grow(in, nil, c.data, more)
	}
	return err
}

func (c *cifar) parse(path string, src *files.Source, in *files.Reading) error {
	first := len(c.y)
	record := make([]byte, cifarRecord)
	for {
		n, err := io.ReadFull(src, record)
		if err == io.EOF && src.Bytes > 0 {
			return checkLabels(path, c.y[first:], cifarClasses, 0, cifarRecord)
		}
		if short(err) {
			return fmt.Errorf("data: %s: %d unpacked bytes, want one or more records of %d; the file is cut short, or not "+
				"CIFAR-10's binary version", path, src.Bytes, cifarRecord)
		}
		if err != nil {
			return err // the source has named the file
		}
		if err := files.Put(in, src, &c.y, int32(record[0])); err != nil {
			return err
		}
		if err := files.Put(in, src, &c.data, record[1:n]...); err != nil {
			return err
		}
	}
}
