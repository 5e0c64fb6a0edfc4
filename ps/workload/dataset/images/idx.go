package images

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"

	"fluentps/ps/workload/dataset/files"
)

// IDX is the format of MNIST and its relatives: two zero bytes, a type (8: unsigned byte), the
// number of dimensions, each dimension as a big-endian uint32, then the values.
const (
	idxImages = 0x00000803 // images, rows, columns
	idxLabels = 0x00000801
)

// ReadIDX reads the four files of a set in a folder. Values are divided by scale, 0: 255, or with normalize have mean 0 and standard
// deviation 1 over the training images. No label is as large as classes, unless that is 0.
func ReadIDX(folder string, classes int, scale float64, normalize bool, in *files.Reading) (train, test *Bytes, count int, err error) {
	if normalize && scale != 0 {
		return nil, nil, 0, fmt.Errorf("data: scale is %g, but normalize would undo it; leave out one of the two", scale)
	}
	if train, err = readIDXPart(folder, "train", classes, in); err != nil {
		return nil, nil, 0, err
	}
	if test, err = readIDXPart(folder, "t10k", classes, in); err != nil {
		return nil, nil, 0, err
	}
	if a, b := train.image, test.image; a != b {
		return nil, nil, 0, fmt.Errorf("data: %s: training images have %d x %d pixels, test images %d x %d; are the files of one "+
			"set?", folder, a.Height, a.Width, b.Height, b.Width)
	}
	train.values = [][256]float32{ByteValues(cmp.Or(scale, 255), 0, 1)}
	if normalize {
		train.values = train.standardised()
	}
	test.values = train.values
	if classes > 0 {
		return train, test, classes, nil
	}
	count = 2
	for _, part := range [][]int32{train.y, test.y} {
		for _, y := range part {
			count = max(count, int(y)+1)
		}
	}
	return train, test, count, nil
}

func readIDXPart(folder, part string, classes int, in *files.Reading) (*Bytes, error) {
	const hint = "the folder needs train-images-idx3-ubyte, train-labels-idx1-ubyte, t10k-images-idx3-ubyte, " +
		"t10k-labels-idx1-ubyte; Fashion-MNIST: apt-get install dataset-fashion-mnist, then path /usr/share/datasets/fashion-mnist"
	imagesPath := idxPath(folder, part+"-images", "idx3-ubyte")
	labelsPath := idxPath(folder, part+"-labels", "idx1-ubyte")
	var data, classOf []byte
	var dims []int
	err := in.Read(imagesPath, hint, func(src *files.Source) (err error) {
		data, dims, err = parseIDX(imagesPath, src, idxImages, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = in.Read(labelsPath, hint, func(src *files.Source) (err error) {
		classOf, _, err = parseIDX(labelsPath, src, idxLabels, in)
		return err
	})
	if err != nil {
		return nil, err
	}
	if len(classOf) != dims[0] {
		return nil, fmt.Errorf("data: %s has %d images, but %s has %d labels; are the files of one set?", imagesPath,
			dims[0], labelsPath, len(classOf))
	}
	t := &Bytes{data: data, image: Shape{1, dims[1], dims[2]}}
	if err := in.Take(nil, 4*int64(len(classOf))); err != nil {
		return nil, err
	}
	t.y = make([]int32, len(classOf))
	for i, y := range classOf {
		t.y[i] = int32(y)
	}
	in.Give(int64(len(classOf)))
	return t, checkLabels(labelsPath, t.y, classes, 8, 1)
}

// idxPath is the path of the file with the published name, unless there is one with a dot in place of the dash, as in some copies.
func idxPath(folder, stem, kind string) string {
	dotted := filepath.Join(folder, stem+"."+kind)
	for _, ext := range []string{"", ".gz"} {
		if _, err := os.Stat(dotted + ext); err == nil {
			return dotted
		}
	}
	return filepath.Join(folder, stem+"-"+kind)
}

// parseIDX reads a whole IDX file and returns its values and dimensions. Before it reads the values that the header promises, it
// checks that the file and the memory can hold them.
func parseIDX(path string, src *files.Source, magic uint32, in *files.Reading) ([]byte, []int, error) {
	dims, want, err := idxHeader(path, src, magic)
	if err != nil {
		return nil, nil, err
	}
	header := int64(4 + 4*len(dims))
	promise := func(has string) error {
		return fmt.Errorf("data: %s: dimensions %v at offset 4 promise %d bytes of values, the file has %s; fetch it again",
			path, dims, want, has)
	}
	switch {
	case src.Packed() && want > src.BytesMost():
		return nil, nil, promise(fmt.Sprintf("%d packed ones, which cannot hold them", src.Size))
	case !src.Packed() && src.Size >= 0 && want != src.Size-header:
		return nil, nil, promise(fmt.Sprint(src.Size - header))
	}
	if err := in.Take(src, want); err != nil {
		return nil, nil, err
	}
	values := make([]byte, want)
	n, err := io.ReadFull(src, values)
	if short(err) {
		return nil, nil, promise(fmt.Sprint(n))
	}
	if err != nil {
		return nil, nil, err // the source has named the file
	}
	switch n, err := io.ReadFull(src, make([]byte, 1)); { // the read at the end also checks the checksum of packed data
	case n > 0:
		return nil, nil, promise("more")
	case err != io.EOF:
		return nil, nil, err
	}
	return values, dims, nil
}

// short says whether io.ReadFull has reached the end of the file.
func short(err error) bool { return err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) }

// idxHeader reads the dimensions, and returns how many values they promise.
func idxHeader(path string, src *files.Source, magic uint32) (dims []int, want int64, err error) {
	dims = make([]int, magic&0xff)
	b := make([]byte, 4+4*len(dims))
	n, err := io.ReadFull(src, b)
	if err != nil && !short(err) {
		return nil, 0, err // the source has named the file
	}
	if n < 4 {
		return nil, 0, fmt.Errorf("data: %s: %d bytes, an IDX file has at least %d; the file is empty or cut short, "+
			"fetch it again", path, n, len(b))
	}
	if got := binary.BigEndian.Uint32(b); got != magic {
		return nil, 0, fmt.Errorf("data: %s: magic number at offset 0 is 0x%08x, want 0x%08x (unsigned bytes, %d "+
			"dimensions); images and labels swapped, or not an IDX file?", path, got, magic, len(dims))
	}
	if n < len(b) {
		return nil, 0, fmt.Errorf("data: %s: %d bytes, an IDX file of %d dimensions has at least %d; the file is cut "+
			"short, fetch it again", path, n, len(dims), len(b))
	}
	want = 1
	for i := range dims {
		dims[i] = int(binary.BigEndian.Uint32(b[4+4*i:]))
		if dims[i] == 0 || want > math.MaxInt32*64/int64(dims[i]) {
			return nil, 0, fmt.Errorf("data: %s: dimension %d at offset %d is %d; the file is empty or damaged", path, i, 4+4*i, dims[i])
		}
		want *= int64(dims[i])
	}
	return dims, want, nil
}

// checkLabels fails for a label outside 0 to classes-1 (classes 0: any). Label i is at offset first + i*stride of its file.
func checkLabels(path string, labels []int32, classes, first, stride int) error {
	for i, y := range labels {
		if classes > 0 && int(y) >= classes {
			return fmt.Errorf("data: %s: label of row %d at offset %d is %d, must be 0 to %d; is the number of classes right?",
				path, i, first+i*stride, y, classes-1)
		}
	}
	return nil
}
