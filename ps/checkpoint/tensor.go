package checkpoint

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// DType is the type of the elements of every tensor: 4 bytes each, IEEE 754, little endian.
const DType = "float32"

const elemBytes = 4

// RangesMax is how many ranges a manifest lists. A plan that cuts into more has no list: it would be longer than what it lists.
const RangesMax = 1 << 19

// Tensor is an array in the files of a checkpoint: its elements in row-major order are those of its ranges, one behind the other.
type Tensor struct {
	Name   string  `json:"name"`
	Shape  []int   `json:"shape"` // each 1 or more
	DType  string  `json:"dtype"`
	Ranges []Range `json:"ranges"`
}

// Range is a part of a file.
type Range struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"` // bytes from its beginning
	Bytes  int64  `json:"bytes"`
}

// Elements is how many a tensor of a shape has; false: a dimension is below 1, or they are more than most.
func Elements(shape []int, most int64) (n int64, ok bool) {
	n = 1
	for _, d := range shape {
		if d < 1 || int64(d) > most/n {
			return 0, false
		}
		n *= int64(d)
	}
	return n, n <= most
}

// checkTensors holds the lists of a manifest to its files: what they name is there, once, and no more than the files have.
func (m *Manifest) checkTensors() error {
	left := int64(0) // bytes that ranges may still name
	sizes := map[string]int64{}
	for _, e := range m.Files {
		sizes[e.Name] = e.Bytes
		left += min(e.Bytes, fileBytes-left)
	}
	seen := map[string]bool{}
	for _, t := range slices.Concat(m.Parameters, m.Optimizer) {
		if t.Name == "" || seen[t.Name] || t.DType != DType {
			return fmt.Errorf("it lists a tensor %q of %q, with a name that is empty or another's, or of another type than %s", t.Name, t.DType, DType)
		}
		seen[t.Name] = true
		n, ok := Elements(t.Shape, left/elemBytes)
		for _, r := range t.Ranges {
			if size, there := sizes[r.File]; !there || r.Offset < 0 || r.Bytes < 1 || r.Bytes > size || r.Offset > size-r.Bytes {
				return fmt.Errorf("it lists %d bytes at %d of %q for the tensor %q, which are none of its files'", r.Bytes, r.Offset, r.File, t.Name)
			}
			if left -= r.Bytes; left < 0 {
				return errors.New("its tensors have more bytes than its files")
			}
			n -= r.Bytes / elemBytes
			ok = ok && r.Bytes%elemBytes == 0
		}
		if !ok || n != 0 {
			return fmt.Errorf("it lists a tensor %q of shape %v, and its ranges have other numbers of elements", t.Name, t.Shape)
		}
	}
	return nil
}

// Tensors reads the tensors of a checkpoint from files that were found to be, to the last byte, those that were written.
type Tensors struct {
	Manifest *Manifest
	files    map[string]*os.File
}

// OpenTensors opens a checkpoint for reading its tensors. Its error says what is damaged, or that the manifest lists none.
func OpenTensors(dir string) (*Tensors, error) {
	m, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if len(m.Parameters) == 0 {
		return nil, fmt.Errorf("checkpoint %s: its manifest does not list the parameters: an earlier version of the program wrote it, or its shards are cut into more than %d ranges; go on from it with --resume, and take the checkpoint that the run leaves (with a larger shards.max_bytes)", dir, RangesMax)
	}
	t := &Tensors{Manifest: m, files: map[string]*os.File{}}
	for _, of := range slices.Concat(m.Parameters, m.Optimizer) {
		for _, r := range of.Ranges {
			if t.files[r.File] == nil && err == nil {
				t.files[r.File], err = openWhole(dir, m, r.File)
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// openWhole opens a file that has the checksum of its entry.
func openWhole(dir string, m *Manifest, name string) (*os.File, error) {
	e, err := m.File(name)
	if err != nil {
		return nil, err
	}
	f, err := openEntry(filepath.Join(dir, name), e)
	if err == nil {
		sum := crc32.New(castagnoli)
		if _, err = io.Copy(sum, f); err == nil && sum.Sum32() != e.CRC32C {
			err = notWritten(sum.Sum32(), e)
		}
		if err == nil {
			return f, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("checkpoint %s: %s: %w", dir, name, err)
}

// Reader reads the elements of a tensor, little endian.
func (t *Tensors) Reader(of *Tensor) io.Reader {
	var parts []io.Reader
	for _, r := range of.Ranges {
		parts = append(parts, io.NewSectionReader(t.files[r.File], r.Offset, r.Bytes))
	}
	return io.MultiReader(parts...)
}

// Close closes the files.
func (t *Tensors) Close() error {
	var all []error
	for _, f := range t.files {
		if f != nil {
			all = append(all, f.Close())
		}
	}
	return errors.Join(all...)
}
