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

// RangesMax is the limit on the ranges in a manifest. The manifest of a plan with more ranges lists no tensors, because the list would be
// longer than the tensors.
const RangesMax = 1 << 19

// Tensor is an array in the files of a checkpoint: its elements in row-major order are the concatenation of its ranges.
type Tensor struct {
	Name   string  `json:"name"`
	Shape  []int   `json:"shape"` // each 1 or more
	DType  string  `json:"dtype"`
	Ranges []Range `json:"ranges"`
}

// Range is a part of a file.
type Range struct {
	File   string `json:"file"`
	Offset int64  `json:"offset"` // bytes from the start of the file
	Bytes  int64  `json:"bytes"`
}

// Elements returns how many elements a tensor of that shape has. ok is false if a dimension is below 1, or if they are more than most.
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

// checkTensors compares the lists of a manifest with its files: each range lies in a file, and all ranges together have no more bytes
// than the files.
func (m *Manifest) checkTensors() error {
	left := int64(0) // bytes that further ranges may have
	sizes := map[string]int64{}
	for _, e := range m.Files {
		sizes[e.Name] = e.Bytes
		left += min(e.Bytes, fileBytes-left)
	}
	seen := map[string]bool{}
	for _, t := range slices.Concat(m.Parameters, m.Optimizer) {
		if t.Name == "" || seen[t.Name] || t.DType != DType {
			return fmt.Errorf("it lists a tensor %q of type %q: its name is empty or occurs twice, or its type is not %s", t.Name, t.DType, DType)
		}
		seen[t.Name] = true
		n, ok := Elements(t.Shape, left/elemBytes)
		for _, r := range t.Ranges {
			if size, there := sizes[r.File]; !there || r.Offset < 0 || r.Bytes < 1 || r.Bytes > size || r.Offset > size-r.Bytes {
				return fmt.Errorf("it lists %d bytes at %d of %q for the tensor %q, which are not in its files", r.Bytes, r.Offset, r.File, t.Name)
			}
			if left -= r.Bytes; left < 0 {
				return errors.New("its tensors have more bytes than its files")
			}
			n -= r.Bytes / elemBytes
			ok = ok && r.Bytes%elemBytes == 0
		}
		if !ok || n != 0 {
			return fmt.Errorf("it lists a tensor %q of shape %v, but its ranges have another number of elements", t.Name, t.Shape)
		}
	}
	return nil
}

// Tensors reads the tensors of a checkpoint. The checksums of its files were verified.
type Tensors struct {
	Manifest *Manifest
	files    map[string]*os.File
}

// OpenTensors opens a checkpoint to read its tensors. It fails if a file is damaged, or if the manifest lists no tensors.
func OpenTensors(dir string) (*Tensors, error) {
	m, err := Open(dir)
	if err != nil {
		return nil, err
	}
	if len(m.Parameters) == 0 {
		return nil, fmt.Errorf("checkpoint %s: its manifest does not list the parameters: an earlier version of the "+
			"program wrote it, or its shards are cut into more than %d ranges; resume it with --resume (and a larger "+
			"shards.max_bytes), and export the checkpoint that this run leaves", dir, RangesMax)
	}
	t := &Tensors{Manifest: m, files: map[string]*os.File{}}
	for _, of := range slices.Concat(m.Parameters, m.Optimizer) {
		for _, r := range of.Ranges {
			if t.files[r.File] == nil && err == nil {
				t.files[r.File], err = openVerified(dir, m, r.File)
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// openVerified opens a file. It fails if the checksum of the file is not that of its entry.
func openVerified(dir string, m *Manifest, name string) (*os.File, error) {
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

// Reader returns a reader of the elements of a tensor, in row-major order, little endian.
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
