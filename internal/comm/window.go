package comm

import (
	"fmt"
	"os"
)

// Window is memory that the ranks of a host share: a segment of each rank, which its owner writes and the others read
// in place, with no message for the bytes.
//
// Bytes that the owner wrote before an Isend are visible to the rank that received that message, or a later one that
// depends on it. Nothing else orders reads and writes: an owner that overwrites a part must know, by messages or by a
// sequence lock of atomics in the segment, that no rank reads it.
type Window struct {
	segments []*Buf       // by rank of the world; nil for ranks of other hosts
	stopped  func() error // not nil after an abort or Close
	free     func() error
	freed    bool
	file     *os.File // of this rank's segment; nil: it is no file
}

// NewWindow is for transports: segments by rank of the world, stopped as the check that the transport still runs, free
// as the rest of Free.
func NewWindow(segments []*Buf, stopped, free func() error) *Window {
	return &Window{segments: segments, stopped: stopped, free: free}
}

// WithFile says which file this rank's segment is, for as long as the window lives. It returns w.
func (w *Window) WithFile(f *os.File) *Window {
	w.file = f
	return w
}

// File is the file of this rank's segment, so that another process can map it; nil: it has none. Free closes it.
func (w *Window) File() *os.File { return w.file }

// NewSegment returns a Buf over memory of a window, which must be zeroed and 64-byte aligned. Transports call it for
// the segments of ranks, callers for the parts that they cut a segment into. The Buf is freed with the window, not by
// Free.
func NewSegment(mem []byte) *Buf {
	b := &Buf{mem: mem[:len(mem):len(mem)]}
	b.refs.Store(1)
	return b
}

// Of returns the segment of a rank, which may be empty, or nil for a rank of another host. Isend and Irecv take it like
// any other Buf; its Free panics.
func (w *Window) Of(peer Peer) *Buf {
	if w.freed {
		panic("comm: a window is used after its Free")
	}
	return w.segments[peer]
}

// Free gives the window up. All ranks of the world call it, in the same order among the calls of Shared, Free and
// Barrier; it drives until all have called. A rank calls it when it reads no segment any more and has no operation on
// one in flight, so that no memory goes away in use. Close frees the windows that are left.
func (w *Window) Free() error {
	if w.freed {
		panic("comm: double free of a window")
	}
	if err := w.stopped(); err != nil {
		return err
	}
	for rank, b := range w.segments {
		if b == nil {
			continue
		}
		if refs := b.refs.Load(); refs > 1 {
			panic(fmt.Sprintf("comm: a window is freed with %d operations in flight on the segment of rank %d", refs-1, rank))
		}
		b.freed.Store(true)
	}
	w.freed = true
	return w.free()
}
