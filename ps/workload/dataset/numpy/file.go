package numpy

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"fluentps/ps/workload/dataset/mapped"
)

// File is an open file of arrays. Its arrays may be used as long as the process lives: what is mapped stays mapped.
type File struct {
	Path  string
	Size  int64
	Names []string // of the arrays of an archive, in order; nil: the file is one array

	file    *mapped.File
	mapped  []byte // the whole file
	entries map[string]*zip.File
	memory  Memory
}

// Memory is asked for bytes before arrays are unpacked or converted in memory. It fails if there are too few.
type Memory func(bytes int64) error

// Open opens an .npy or .npz file, whichever it is by its first bytes. Errors name the file.
func Open(path string, memory Memory) (*File, error) {
	m, err := mapped.Open(path)
	if err != nil {
		return nil, err
	}
	a := &File{Path: path, Size: m.Size, file: m, mapped: m.Bytes, memory: memory}
	if err := a.list(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), m.Close())
	}
	return a, nil
}

// packers are programs whose files people have in place of .npy, by their first bytes.
var packers = []struct{ first, name, way string }{
	{"\x1f\x8b", "gzip", "unpack it with gunzip"},
	{"BZh", "bzip2", "unpack it with bunzip2"},
	{"\xfd7zXZ", "xz", "unpack it with unxz"},
	{"\x28\xb5\x2f\xfd", "zstd", "unpack it with unzstd"},
	{"\x89HDF", "HDF5", "write it as .npy: import h5py, numpy; numpy.save('x.npy', h5py.File('FILE')['NAME'][:])"},
	{"PAR1", "Parquet", "set data.set: parquet"},
	{"\x80\x02", "Python's pickle", "it can run code, so save it with numpy.save"},
	{"\x80\x03", "Python's pickle", "it can run code, so save it with numpy.save"},
	{"\x80\x04", "Python's pickle", "it can run code, so save it with numpy.save"},
	{"\x80\x05", "Python's pickle", "it can run code, so save it with numpy.save"},
}

// list finds out what kind of file it is, and the names of its arrays.
func (f *File) list() (err error) {
	defer mapped.Guarding(&err)()
	for _, p := range packers {
		if bytes.HasPrefix(f.mapped, []byte(p.first)) {
			return fmt.Errorf("it is of %s: %s", p.name, p.way)
		}
	}
	if !bytes.HasPrefix(f.mapped, []byte("PK")) {
		_, err = parseHeader(f.mapped)
		return err
	}
	return f.listArchive()
}

// Array reads an array by its name; "" is that of a file that is one array.
func (f *File) Array(name string) (a *Array, err error) {
	defer mapped.Guarding(&err)()
	if f.entries == nil {
		if a, err = arrayOf(f.mapped, f.memory); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Path, err)
		}
		return a, nil
	}
	if a, err = f.entry(f.entries[name]); err != nil {
		return nil, fmt.Errorf("%s: array %s: %w", f.Path, name, err)
	}
	a.Name = name
	return a, nil
}

// arraysMax bounds the arrays of an archive, so that a damaged one does not take all memory.
const arraysMax = 10000

func (f *File) listArchive() error {
	z, err := zip.NewReader(bytes.NewReader(f.mapped), f.Size)
	if err != nil {
		return fmt.Errorf("it begins as an archive (.npz), but: %w: it is damaged or cut short, fetch it again", err)
	}
	if len(z.File) > arraysMax {
		return fmt.Errorf("%d files in the archive, at most %d", len(z.File), arraysMax)
	}
	f.entries = map[string]*zip.File{}
	for _, entry := range z.File {
		name, isArray := strings.CutSuffix(entry.Name, ".npy")
		if !isArray {
			continue // a note beside the arrays is no harm
		}
		if f.entries[name] != nil {
			return fmt.Errorf("the archive has two arrays %s: save it again with numpy.savez", name)
		}
		f.entries[name], f.Names = entry, append(f.Names, name)
	}
	if len(f.Names) == 0 {
		return errors.New("the archive has no .npy: numpy.savez writes archives of arrays")
	}
	return nil
}

// entry reads one array of an archive. What is stored as it is (numpy.savez) is mapped, what is packed (numpy.savez_compressed) is
// unpacked.
func (f *File) entry(entry *zip.File) (*Array, error) {
	const most = 1 << 40
	if entry.UncompressedSize64 > most {
		return nil, fmt.Errorf("%d bytes, at most %d", entry.UncompressedSize64, int64(most))
	}
	size := int64(entry.UncompressedSize64)
	if entry.Method == zip.Store {
		at, err := entry.DataOffset()
		if err != nil {
			return nil, err
		}
		if at < 0 || at > f.Size-size {
			return nil, errors.New("it is behind the end of the file, which is cut short: fetch it again")
		}
		return arrayOf(f.mapped[at:at+size], f.memory)
	}
	if entry.Method != zip.Deflate {
		return nil, fmt.Errorf("it is packed by method %d of zip, and only that of numpy.savez_compressed is read: save it again",
			entry.Method)
	}
	// One packed byte becomes at most 1032.
	if entry.CompressedSize64 > uint64(f.Size) || size > 1032*int64(entry.CompressedSize64)+1032 {
		return nil, fmt.Errorf("%d packed bytes of a file of %d cannot be %d: it is damaged", entry.CompressedSize64, f.Size, size)
	}
	if err := f.memory(size); err != nil {
		return nil, err
	}
	r, err := entry.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	data := make([]byte, size)
	if _, err := io.ReadFull(r, data); err != nil {
		return nil, fmt.Errorf("%w: it is damaged, fetch it again", err)
	}
	switch n, err := io.ReadFull(r, make([]byte, 1)); { // the end checks the checksum
	case n > 0:
		return nil, fmt.Errorf("more than the %d bytes that the archive promises: it is damaged, fetch it again", size)
	case err != io.EOF:
		return nil, fmt.Errorf("%w: it is damaged, fetch it again", err)
	}
	a, err := arrayOf(data, f.memory)
	if err == nil {
		a.Packed = true
	}
	return a, err
}

// arrayOf makes an array of a header and the elements behind it.
func arrayOf(b []byte, memory Memory) (*Array, error) {
	h, err := parseHeader(b)
	if err != nil {
		return nil, err
	}
	data, want := b[h.bytes:], h.elements()*int64(h.typ.Size)
	switch has := int64(len(data)); {
	case has < want:
		return nil, fmt.Errorf("shape %v of %s promises %d bytes behind the header, and there are %d: it is cut short, fetch it again",
			h.shape, h.typ, want, has)
	case has > want:
		return nil, fmt.Errorf("shape %v of %s promises %d bytes behind the header, and there are %d: were several arrays saved to one file? "+
			"numpy.savez keeps several", h.shape, h.typ, want, has)
	}
	a := &Array{Type: h.typ, Shape: h.shape, big: h.big, data: data}
	if h.fortran && len(h.shape) > 1 {
		if err := memory(want); err != nil {
			return nil, err
		}
		a.data, a.Fortran = fromFortran(data, h.shape, h.typ.Size), true
	}
	return a, nil
}

// IsMapped says whether the elements are read from the file when they are used.
func (a *Array) IsMapped() bool { return !a.Packed && !a.Fortran }

// Sum identifies the file by its size and blocks of it. In hex.
func (f *File) Sum() (sum string, err error) { return f.file.Sum() }

// Scattered tells the system that rows will be read here and there.
func (f *File) Scattered() { f.file.Scattered() }

// Name is the last element of the path.
func (f *File) Name() string { return filepath.Base(f.Path) }
