package mapped

import (
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Ahead asks the system for pages before they are read, in a goroutine of its own, as long as reading waits for the disk: asking for pages
// that are in memory costs as much as copying them. The zero value is ready. It belongs to one goroutine.
type Ahead struct {
	// Near: rows that lie beside those of a batch come soon, so that long parts are asked for at once.
	Near bool

	faults int64 // of the process so far, for which it waited for a disk
	left   int   // so many times it still asks
	span   int   // so many times it asks after the next wait
	busy   atomic.Bool
	count  func() int64 // the waits of the process so far; nil: those that the system knows
}

// The first and the largest span: after a wait the next ones are likely, and without one it stops asking and sees whether it waits.
const spanFirst, spanMost = 64, 4096

// Wants says whether to ask now: Ask is to be called then.
func (a *Ahead) Wants() bool {
	if a.count == nil {
		a.count = majorFaults
	}
	now := a.count()
	if now > a.faults {
		a.span = min(max(2*a.span, spanFirst), spanMost)
		a.left = a.span
	}
	a.faults = now
	if a.left > 0 {
		a.left--
	}
	return a.left > 0 && !a.busy.Load()
}

// Ask asks for parts of mapped files: each calls its argument for every part. It returns at once; what each uses must stay as it is until
// Wants says true again.
func (a *Ahead) Ask(each func(part func(b []byte))) {
	a.busy.Store(true)
	go func() {
		defer a.busy.Store(false)
		defer func() { _ = recover() }() // what is wrong with the file is said by who reads it
		_ = Guard(func() { each(func(b []byte) { need(b, a.Near) }) })
	}()
}

// nearBytes is how much is read at once of rows that lie beside each other: a disk then is as fast as it is for long parts.
const nearBytes = 1 << 18

// need tells the system that part of a mapped file will be read. The advice may be refused, and does no harm then: so it may reach beyond
// the file.
func need(b []byte, near bool) {
	if len(b) == 0 {
		return
	}
	at, whole := uintptr(unsafe.Pointer(&b[0])), uintptr(os.Getpagesize()) // a file is mapped from the beginning of a page
	if near {
		whole = nearBytes
	}
	from, to := at&^(whole-1), (at+uintptr(len(b))+whole-1)&^(whole-1)
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, from, to-from, unix.MADV_WILLNEED)
}

// majorFaults is how often this process has waited for a page from a disk.
func majorFaults() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return u.Majflt
}
