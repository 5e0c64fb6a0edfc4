package inproc

import (
	"fmt"
	"slices"

	"fluentps/internal/comm"
)

// window is a window that the ranks are creating; world.mu guards it.
type window struct {
	segments []*comm.Buf // memory from the pool, by rank
	joined   int         // ranks that have joined
	failed   int         // the lowest rank without memory; -1: none
	err      error       // its error
}

// join adds a rank's segment, or its failure, to the window that is being made.
func (w *world) join(rank int, b *comm.Buf, err error) *window {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.making == nil {
		w.making = &window{segments: make([]*comm.Buf, len(w.ranks)), failed: -1}
	}
	made := w.making
	made.segments[rank] = b
	if err != nil && (made.failed < 0 || rank < made.failed) {
		made.failed, made.err = rank, err
	}
	if made.joined++; made.joined == len(w.ranks) {
		w.making = nil // the next call begins another one
	}
	return made
}

// Shared takes the segment from the pool: every rank sees the memory of the process.
func (e *endpoint) Shared(n int) (*comm.Window, error) {
	if err := e.stopped(); err != nil {
		return nil, err
	}
	own, err := e.world.pool.Alloc(n)
	if err == nil {
		e.windows = append(e.windows, own)
	}
	made := e.world.join(e.rank, own, err)
	if err := e.Barrier(); err != nil {
		return nil, err
	}
	if made.failed >= 0 {
		if own != nil {
			e.drop(own)
		}
		return nil, fmt.Errorf("inproc: the segment of rank %d in a window: %w", made.failed, made.err)
	}
	segments := make([]*comm.Buf, e.Size())
	for _, peer := range e.peers {
		segments[peer] = comm.NewSegment(made.segments[peer].Bytes())
	}
	// Past this barrier no rank reads made.segments, so their owners may free them.
	if err := e.Barrier(); err != nil {
		return nil, err
	}
	return comm.NewWindow(segments, e.stopped, func() error {
		if err := e.Barrier(); err != nil {
			return err
		}
		e.drop(own)
		return nil
	}), nil
}

// drop frees one of this rank's segments.
func (e *endpoint) drop(own *comm.Buf) {
	i := slices.Index(e.windows, own)
	e.windows = slices.Delete(e.windows, i, i+1)
	own.Free()
}
