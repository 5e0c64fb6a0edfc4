// Package files opens the files of a data set, unpacks and hashes them, and counts the memory that their rows take.
package files

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"unsafe"
)

// Reading is the shared state of the files of one set while they are read.
type Reading struct {
	Files []Sum    // in the order they were read
	Notes []string // what a user should know about them
	Found []string // what the reader has found out by itself
	Most  int64    // bytes that rows may take, including the smaller memory that they have just outgrown

	left int64 // unused part of Most
	peak int64 // the most of Most that was in use at once

	outgrown bool // large memory was outgrown, and has not been given back to the system
}

// memoryDefault is the limit if the spec has none: the default of cluster.memory_max.
const memoryDefault = 8 << 30

// New makes a Reading whose rows may take so many bytes of memory; 0: the default of cluster.memory_max.
func New(memory int64) *Reading {
	most := cmp.Or(memory, memoryDefault)
	return &Reading{Most: most, left: most}
}

// Read opens a file, parses it and records its sum. If the file does not exist, hint says where to get it.
func (in *Reading) Read(path, hint string, parse func(src *Source) error) error {
	src, err := open(path, hint)
	if err != nil {
		return err
	}
	defer src.Close()
	if err := parse(src); err != nil {
		return err
	}
	in.Files = append(in.Files, src.Sum())
	return nil
}

// ReadAt opens a file whose parts are read in any order, and records the sum of all of its bytes. If the file does not exist, hint says
// where to get it.
func (in *Reading) ReadAt(path, hint string, parse func(file io.ReaderAt, size int64) error) error {
	f, err := openFile(path, hint)
	if err != nil {
		return err
	}
	defer f.Close()
	size := sizeOf(f)
	if size < 0 {
		return fmt.Errorf("data: %s is no regular file, and its parts are read in any order; write it to a file", path)
	}
	head := make([]byte, headBytes)
	n, _ := f.ReadAt(head, 0) // of a shorter file there are fewer; its parser reports what is missing
	switch kind := kindOf(head[:n]); {
	case kind.unpack != nil:
		return fmt.Errorf("data: %s is packed with %s, and its parts are read in any order; unpack it", f.Name(), kind.name)
	case kind.name != "" && kind.magic != parquetMagic:
		return fmt.Errorf("data: %s is %s; %s", path, kind.name, strings.ReplaceAll(kind.wayOut, "FILE", path))
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, io.NewSectionReader(f, 0, size)); err != nil {
		return fmt.Errorf("data: %w", err)
	}
	if err := parse(f, size); err != nil {
		return err
	}
	in.Files = append(in.Files, Sum{Path: path, Name: filepath.Base(path), Bytes: size, SHA256: hex.EncodeToString(sum.Sum(nil))})
	return nil
}

// full is the error for rows that do not fit into the memory.
func (in *Reading) full(src *Source) error {
	if src == nil {
		return fmt.Errorf("data: the rows take more than %d bytes of memory, which is cluster.memory_max; raise it if the hosts have the memory",
			in.Most)
	}
	return fmt.Errorf("data: %s: after %d unpacked bytes the rows take more than %d bytes of memory, which is "+
		"cluster.memory_max; is it the right file? raise cluster.memory_max if the hosts have the memory", src.Path, src.Bytes, in.Most)
}

// Peak is the most memory that was in use at once, in bytes.
func (in *Reading) Peak() int64 { return in.peak }

// Left is the memory that rows may still take, in bytes.
func (in *Reading) Left() int64 { return in.left }

// Take counts bytes that will be allocated. It fails if there is no memory left for them.
func (in *Reading) Take(src *Source, bytes int64) error {
	if bytes > in.left {
		return in.full(src)
	}
	in.left -= bytes
	in.peak = max(in.peak, in.Most-in.left)
	return nil
}

// Give gives back bytes that were taken, and are no longer in use.
func (in *Reading) Give(bytes int64) { in.left += bytes }

// Make counts numbers of generated data that will be allocated, and says for what. It fails if there is no memory for them.
func (in *Reading) Make(set, what string, n int) ([]float32, error) {
	bytes := 4 * int64(n)
	if bytes > in.left {
		return nil, fmt.Errorf("data: set %s: %s take %d bytes, more than the %d of cluster.memory_max: raise it if the "+
			"hosts have the memory, or generate smaller data", set, what, bytes, in.Most)
	}
	in.left -= bytes
	in.peak = max(in.peak, in.Most-in.left)
	return make([]float32, n), nil
}

// SweepMin is the size of memory, in bytes, that is given back to the system as soon as rows have outgrown it: before the next larger
// one is taken. So what reading takes at once is what take has counted. Smaller garbage waits for the collector.
const SweepMin = 4 << 20

// Grow makes room for n more elements. Until the elements have been copied, they take both the old memory and the new one.
func Grow[T any](in *Reading, src *Source, s []T, n int) ([]T, error) {
	if cap(s)-len(s) >= n {
		if in.outgrown { // by now the caller has given up the smaller memory
			in.outgrown = false
			debug.FreeOSMemory()
		}
		return s, nil
	}
	size := int64(unsafe.Sizeof(*new(T)))
	want := max(len(s)+n, cap(s)+cap(s)/4) // never less, even if less would fit: ever shorter steps would copy without end
	if int64(cap(s))*size >= SweepMin {
		debug.FreeOSMemory()
		in.outgrown = true
	}
	if err := in.Take(src, int64(want)*size); err != nil {
		return nil, err
	}
	in.left += int64(cap(s)) * size
	return append(make([]T, 0, want), s...), nil
}

// Put appends to rows.
func Put[T any](in *Reading, src *Source, s *[]T, more ...T) error {
	grown, err := Grow(in, src, *s, len(more))
	if err == nil {
		*s = append(grown, more...)
	}
	return err
}

// Clip quotes a text for a message. Of a long text it quotes the beginning.
func Clip(text string) string {
	const most = 40
	if len(text) > most {
		return strconv.Quote(text[:most]) + "..."
	}
	return strconv.Quote(text)
}
