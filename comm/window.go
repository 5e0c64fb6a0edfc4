package comm

import "fmt"

// Window is memory that the ranks of a host share: a segment of each rank, which its owner writes
// and the others read in place, with no message for the bytes.
//
// What its owner wrote before an Isend is seen by whoever received that message, or one that was
// sent because of it. Nothing else orders reads and writes: an owner that writes a part again must
// know, by messages or by a sequence lock of atomics in the segment, that nobody reads it.
type Window struct {
	segments []*Buf       // by rank of the world; nil for ranks of other hosts
	stopped  func() error // not nil after an abort or Close
	free     func() error
	freed    bool
}

// NewWindow is for transports: segments by rank of the world, what tells that the transport is stopped, and
// what Free does when all is well.
func NewWindow(segments []*Buf, stopped, free func() error) *Window {
	return &Window{segments: segments, stopped: stopped, free: free}
}

// NewSegment is a Buf over memory of a window, zeroed and 64-byte aligned by then: transports make those of ranks, and who
// cuts a segment in parts those. It goes with the window, not with Free.
func NewSegment(mem []byte) *Buf {
	b := &Buf{mem: mem[:len(mem):len(mem)]}
	b.refs.Store(1)
	return b
}

// Of is the segment of a rank, which may be empty, or nil for a rank of another host. It is a Buf like
// any other for Isend and Irecv, but for Free.
func (w *Window) Of(peer Peer) *Buf {
	if w.freed {
		panic("comm: a window is used after its Free")
	}
	return w.segments[peer]
}

// Free gives the window up. All ranks of the world call it, in the same order among the calls of
// Shared, Free and Barrier; it drives until all have. A rank calls it when it neither reads a segment any more nor
// has an operation on one in flight, so that nobody's memory goes while somebody uses it. Windows
// that are left go with Close.
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
