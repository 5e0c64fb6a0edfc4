package numpy

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// mapFile maps a file to read it.
func mapFile(f *os.File, size int64) ([]byte, error) {
	if size > math.MaxInt {
		return nil, fmt.Errorf("%d bytes, more than this processor can address", size)
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	return b, os.NewSyscallError("mmap", err)
}

// Scattered tells the system that rows will be read here and there, so that it reads no pages ahead of a fault: else each row of a few KiB
// would cost 128 KiB of reading. The advice may be refused, and does no harm then.
func (f *File) Scattered() { _ = unix.Madvise(f.mapped, unix.MADV_RANDOM) }

func unmap(b []byte) error { return os.NewSyscallError("munmap", unix.Munmap(b)) }

const pageMin = 1 << 16 // nothing is mapped below: such an address is a nil pointer of ours

// Guard runs a function that reads mapped elements. If the file has become shorter meanwhile, or its disk fails, the system has no page for
// some: then it returns an error, where the process would else end by SIGBUS.
func Guard(f func()) (err error) {
	defer guard(&err)()
	f()
	return nil
}

// guard is Guard for a function with a result err: defer guard(&err)().
func guard(err *error) func() {
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
