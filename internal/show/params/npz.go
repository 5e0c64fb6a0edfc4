package params

import (
	"archive/zip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// An npz is a zip without compression, with a file NAME.npy for each array. A NAME.npy of version 1.0 is the magic, the version, the length
// of the header (2 bytes, little endian), the header (a Python literal that ends with a newline), and the elements.

const (
	npySuffix = ".npy"
	npyMagic  = "\x93NUMPY\x01\x00"
	npyPrefix = len(npyMagic) + 2
	npyAlign  = 64 // bytes: the elements begin at a multiple of it
	npyF32    = "<f4"
	// directoryMax is the limit on the directory of a zip, in bytes: the zip reader holds the directory in memory.
	directoryMax = 16 << 20
)

// npyHeader returns all bytes of an array before its elements.
func npyHeader(shape []int) []byte {
	var dims strings.Builder
	for _, d := range shape {
		fmt.Fprintf(&dims, "%d, ", d)
	}
	tuple := dims.String()
	if len(shape) > 1 { // a Python tuple of one element keeps its comma
		tuple = strings.TrimSuffix(tuple, ", ")
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", npyF32, strings.TrimSuffix(tuple, " "))
	fill := npyAlign - (npyPrefix+len(text)+1)%npyAlign
	text += strings.Repeat(" ", fill%npyAlign) + "\n"
	return append(binary.LittleEndian.AppendUint16([]byte(npyMagic), uint16(len(text))), text...)
}

var npyForm = regexp.MustCompile(`^\{ *'descr': *'([^']*)', *'fortran_order': *(True|False), *'shape': *\(([0-9, ]*)\),? *\} *\n$`)

// readNPY reads all bytes of an array before its elements, and returns how many they are.
func readNPY(r io.Reader) (dtype string, shape []int, n int64, err error) {
	start := make([]byte, npyPrefix)
	if _, err := io.ReadFull(r, start); err != nil {
		return "", nil, 0, cutOff(err)
	}
	if string(start[:len(npyMagic)]) != npyMagic {
		return "", nil, 0, errors.New("it does not begin like an array of version 1.0; write it with numpy.savez")
	}
	text := make([]byte, binary.LittleEndian.Uint16(start[len(npyMagic):]))
	if _, err := io.ReadFull(r, text); err != nil {
		return "", nil, 0, cutOff(err)
	}
	m := npyForm.FindSubmatch(text)
	if m == nil {
		return "", nil, 0, errors.New("its header is not that of an array of numbers; write it with numpy.savez")
	}
	for _, dim := range strings.Split(string(m[3]), ",") {
		if dim = strings.TrimSpace(dim); dim == "" {
			continue
		}
		d, err := strconv.ParseInt(dim, 10, 0)
		if err != nil {
			return "", nil, 0, fmt.Errorf("its shape: %w", err)
		}
		shape = append(shape, int(d))
	}
	if string(m[2]) == "True" && len(shape) > 1 {
		return "", nil, 0, errors.New("its elements are in Fortran order; convert it with numpy.ascontiguousarray")
	}
	return string(m[1]), shape, int64(npyPrefix + len(text)), nil
}

// writeNPZ writes a file; values writes the elements of tensor k.
func writeNPZ(w io.Writer, tensors []Tensor, values func(w io.Writer, k int) error) error {
	z := zip.NewWriter(w)
	for k, t := range tensors {
		f, err := z.CreateHeader(&zip.FileHeader{Name: t.Name + npySuffix, Method: zip.Store,
			Modified: time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)})
		if err == nil {
			_, err = f.Write(npyHeader(t.Shape))
		}
		if err == nil {
			err = values(f, k)
		}
		if err != nil {
			return err
		}
	}
	return z.Close()
}

// openNPZ finds the arrays of a file of size bytes.
func openNPZ(f io.ReaderAt, size int64) (*contents, error) {
	directory := &bounded{ReaderAt: f, bound: true, left: directoryMax}
	z, err := zip.NewReader(directory, size)
	if errors.Is(err, zip.ErrFormat) {
		return nil, errors.New("it was cut off, or is not an npz")
	}
	if err != nil {
		return nil, cutOff(err)
	}
	directory.bound = false // the directory is read; the limit does not hold for the elements
	c := &contents{entries: map[string]entry{}}
	for _, file := range z.File {
		name, ok := strings.CutSuffix(file.Name, npySuffix)
		if _, twice := c.entries[name]; !ok || twice {
			return nil, fmt.Errorf("%q in it is not an array, or occurs twice; write it with numpy.savez", file.Name)
		}
		e, err := openArray(file, name, size)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
		c.entries[name] = e
	}
	return c, nil
}

// openArray finds the elements of an array in a zip of size bytes.
func openArray(file *zip.File, name string, size int64) (e entry, err error) {
	if file.Method != zip.Store || file.CompressedSize64 != file.UncompressedSize64 {
		return e, errors.New("it is compressed; write it with numpy.savez, not savez_compressed")
	}
	bytes := file.UncompressedSize64
	at, err := file.DataOffset()
	if err != nil {
		return e, cutOff(err)
	}
	if at > size || bytes > uint64(size-at) {
		return e, fmt.Errorf("it has %d bytes from offset %d, but the file has %d bytes: it is damaged", bytes, at, size)
	}
	r, err := file.Open()
	if err != nil {
		return e, cutOff(err)
	}
	defer r.Close()
	var head int64
	if e.dtype, e.Shape, head, err = readNPY(r); err != nil {
		return e, err
	}
	rest := int64(bytes) - head
	if n, ok := elements(e.Shape, rest/elemBytes); e.dtype == npyF32 && (!ok || n*elemBytes != rest) {
		return e, fmt.Errorf("it has shape %v but %d bytes: it is damaged", e.Shape, rest)
	}
	e.Name, e.at = name, at+head
	e.open = func() (io.ReadCloser, error) {
		r, err := file.Open() // at its end, the reader fails if the checksum of the zip differs
		if err == nil {
			_, err = io.CopyN(io.Discard, r, head)
		}
		return r, err
	}
	return e, nil
}

// bounded fails while bound is true and more bytes are read than are left.
type bounded struct {
	io.ReaderAt
	bound bool
	left  int64
}

func (b *bounded) ReadAt(p []byte, at int64) (int, error) {
	if b.left -= int64(len(p)); b.bound && b.left < 0 {
		return 0, fmt.Errorf("the directory of the zip has more than %d bytes: it is damaged, or not an npz", directoryMax)
	}
	return b.ReaderAt.ReadAt(p, at)
}
