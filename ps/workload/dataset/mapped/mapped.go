// Package mapped maps files to read them: their pages belong to the system, which all processes of a host share.
package mapped

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// File is a mapped file. It stays mapped as long as the process lives, unless Close ends that.
type File struct {
	Path  string
	Size  int64
	Bytes []byte // the whole file
}

// Open maps a file. Errors name it.
func Open(path string) (*File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe without a writer would wait for one
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file: it cannot be mapped", path)
	}
	m := &File{Path: path, Size: info.Size()}
	switch {
	case m.Size == 0:
		return nil, fmt.Errorf("%s is empty", path)
	case m.Size > math.MaxInt:
		return nil, fmt.Errorf("%s: %d bytes, more than this processor can address", path, m.Size)
	}
	if m.Bytes, err = unix.Mmap(int(f.Fd()), 0, int(m.Size), unix.PROT_READ, unix.MAP_SHARED); err != nil {
		return nil, fmt.Errorf("%s: %w", path, os.NewSyscallError("mmap", err))
	}
	return m, nil
}

// Close unmaps the file: nobody may read Bytes after it.
func (f *File) Close() error { return os.NewSyscallError("munmap", unix.Munmap(f.Bytes)) }

// Blocks of a file that Sum reads: so many of so many bytes, at places that follow from the size alone, with the first and the last.
const (
	sumBlocks = 64
	sumBytes  = 4096
)

// Sum identifies the file by its size and blocks of it: reading all of a large file would take longer than the first epochs. In hex.
func (f *File) Sum() (sum string, err error) {
	defer Guarding(&err)()
	h := sha256.New()
	_ = binary.Write(h, binary.LittleEndian, f.Size)
	r := rand.New(rand.NewPCG(uint64(f.Size), 0))
	last := max(0, f.Size-sumBytes)
	for i := range sumBlocks {
		at := r.Int64N(last + 1)
		switch i {
		case 0:
			at = 0
		case 1:
			at = last
		}
		h.Write(f.Bytes[at:min(f.Size, at+sumBytes)])
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Scattered tells the system that rows will be read here and there, so that it reads no pages ahead of a fault: else each row of a few KiB
// would cost 128 KiB of reading. The advice may be refused, and does no harm then.
func (f *File) Scattered() { _ = unix.Madvise(f.Bytes, unix.MADV_RANDOM) }

const pageMin = 1 << 16 // nothing is mapped below: such an address is a nil pointer of ours

// Guard runs a function that reads mapped elements. If the file has become shorter meanwhile, or its disk fails, the system has no page for
// some: then it returns an error, where the process would else end by SIGBUS.
func Guard(f func()) (err error) {
	defer Guarding(&err)()
	f()
	return nil
}

// Guarding is Guard for a function with a result err: defer Guarding(&err)().
func Guarding(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		switch p := recover().(type) {
		case nil:
		case interface{ Addr() uintptr }: // a fault of memory, at this address
			if p.Addr() < pageMin {
				panic(p)
			}
			*err = errors.New("a page of the file cannot be read any more: it was made shorter while it is in use, or its disk fails")
		default:
			panic(p)
		}
	}
}
