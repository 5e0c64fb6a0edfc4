package pack

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"sync/atomic"
	"unsafe"

	"fluentps/ps/workload/dataset/mapped"
)

// File is an open pack. Its sections may be used as long as the process lives.
type File struct {
	Path   string
	Size   int64
	SHA256 string          // of the index: it names the pack, because the index has the checksums of everything else
	Set    json.RawMessage // what the set is
	file   *mapped.File
	all    []*Section
}

// Section is a part of a pack that is mapped.
type Section struct {
	Info
	path     string
	data     []byte
	sums     []byte          // of its blocks
	verified []atomic.Uint32 // a bit a block
}

// Open maps a pack, and checks its index. Errors name the file.
func Open(path string) (f *File, err error) {
	m, err := mapped.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", path, err), m.Close())
		}
	}()
	defer mapped.Guarding(&err)()
	if machineIsBig {
		return nil, errors.New("packs have little-endian numbers, and this processor has big-endian ones")
	}
	b := m.Bytes
	switch {
	case len(b) < headBytes || !bytes.HasPrefix(b, []byte(magic[:7])):
		return nil, errors.New("it is no pack: fluentps data pack CONFIG --out FILE makes one")
	case b[7] != magic[7]:
		return nil, fmt.Errorf("it is a pack of format %q, and this program reads %q: pack the set again", b[7:8], magic[7:])
	}
	at, n := binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:])
	if at < headBytes || n > indexMax || at > uint64(len(b)) || n != uint64(len(b))-at {
		return nil, fmt.Errorf("its index should be at %d with %d bytes, and the file has %d: it was cut short, or its writing has not ended; "+
			"copy or pack it again", at, n, len(b))
	}
	if sum := sha256.Sum256(b[at:]); !bytes.Equal(sum[:], b[24:24+sha256.Size]) {
		return nil, errors.New("its index does not fit its checksum: the file is damaged; copy or pack it again")
	}
	f = &File{Path: path, Size: m.Size, SHA256: hex.EncodeToString(b[24 : 24+sha256.Size]), file: m}
	return f, f.read(int64(at))
}

// read reads the index at an offset.
func (f *File) read(at int64) error {
	b := f.file.Bytes
	var x index
	if err := json.Unmarshal(b[at:], &x); err != nil {
		return fmt.Errorf("its index: %w: pack the set again", err)
	}
	if err := x.check(at); err != nil {
		return fmt.Errorf("its index: %w", err)
	}
	all := b[x.Sums.Offset:][:x.Sums.Bytes]
	if sum := sha256.Sum256(all); hex.EncodeToString(sum[:]) != x.Sums.SHA256 {
		return errors.New("its checksums are damaged; copy or pack it again")
	}
	f.Set = x.Set
	for _, info := range x.Sections {
		n := info.blocks()
		s := &Section{Info: info, path: f.Path, data: b[info.Offset:][:info.Bytes:info.Bytes], verified: make([]atomic.Uint32, (n+31)/32)}
		s.sums, all = all[:4*n], all[4*n:]
		f.all = append(f.all, s)
	}
	return nil
}

// Section returns a section of that name and type, with so many dimensions. It is an error if there is none.
func (f *File) Section(name, typ string, dims int) (*Section, error) {
	for _, s := range f.all {
		if s.Name != name {
			continue
		}
		if s.Type != typ || len(s.Shape) != dims {
			return nil, fmt.Errorf("%s: section %s is of %s with the shape %v, and %s with %d dimensions is wanted: pack the set again", f.Path,
				name, s.Type, s.Shape, typ, dims)
		}
		return s, nil
	}
	return nil, fmt.Errorf("%s: there is no section %s: pack the set again", f.Path, name)
}

// Close unmaps the file: nobody may use its sections after it.
func (f *File) Close() error { return f.file.Close() }

// Scattered tells the system that rows will be read here and there.
func (f *File) Scattered() { f.file.Scattered() }

// Check verifies the blocks with bytes lo to hi-1 of the section, unless that has been done.
func (s *Section) Check(lo, hi int64) error {
	for block := lo / BlockBytes; block*BlockBytes < hi; block++ {
		word, bit := &s.verified[block/32], uint32(1)<<(block%32)
		if word.Load()&bit != 0 {
			continue
		}
		from := block * BlockBytes
		if got, want := crc32.Checksum(s.data[from:min(from+BlockBytes, s.Bytes)], castagnoli),
			binary.LittleEndian.Uint32(s.sums[4*block:]); got != want {
			return fmt.Errorf("%s: block %d of section %s, at %d of the file, has the checksum %08x and should have %08x: the file is damaged; "+
				"copy or pack it again", s.path, block, s.Name, s.Offset+from, got, want)
		}
		word.Or(bit)
	}
	return nil
}

// span is what is read of the section for its bytes lo to hi-1: with the blocks that have not been verified yet.
func (s *Section) span(lo, hi int64) []byte {
	first, last := lo/BlockBytes, max(lo, hi-1)/BlockBytes
	verified := func(block int64) bool { return s.verified[block/32].Load()&(1<<(block%32)) != 0 }
	if lo < hi && !verified(first) {
		lo = first * BlockBytes
	}
	if lo < hi && !verified(last) {
		hi = min(s.Bytes, (last+1)*BlockBytes)
	}
	return s.data[lo:hi]
}

// All verifies the whole section.
func (s *Section) All() (err error) {
	defer mapped.Guarding(&err)()
	return s.Check(0, s.Bytes)
}

// Verify verifies all sections.
func (f *File) Verify() error {
	for _, s := range f.all {
		if err := s.All(); err != nil {
			return err
		}
	}
	return nil
}

// Raw are the bytes of the section. Who reads them does so in mapped.Guard, and after Check.
func (s *Section) Raw() []byte { return s.data }

// Of is Raw as numbers, which must be those of the type of the section.
func Of[T int32 | int64 | float32](s *Section) []T {
	var one T
	if len(s.data) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&s.data[0])), len(s.data)/int(unsafe.Sizeof(one)))
}
