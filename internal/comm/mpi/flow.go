//go:build mpi

package mpi

import (
	"fluentps/internal/comm"
	"fluentps/internal/comm/inflight"
)

// flow counts the control messages of one receiver and tag, so that at most comm.BacklogMax are unmatched there. For an
// ordinary short send MPI reports only that it took the bytes, and it buffers without a limit. So every markEvery-th
// send is synchronous: it completes when it is matched, and by then all sends before it are matched, too.
type flow struct {
	unmarked int // sends since the last marked one; less than markEvery
	marks    int // marked sends that are not matched yet; at most marksMax
}

const (
	marksMax  = 2 // the next half goes out while the last one is in flight
	markEvery = comm.BacklogMax / marksMax
)

// admit returns whether a send may go out now; if not, it is held until releaseHeld.
func (t *transport) admit(slot uint32) bool {
	o := t.ops.At(slot)
	stream := o.stream()
	f := t.flows[stream]
	if f == nil {
		f = &flow{}
		t.flows[stream] = f
	}
	if f.marks == marksMax {
		t.held.Push(stream, slot)
		return false
	}
	f.count(o)
	return true
}

// count counts a send that goes out, and marks every markEvery-th.
func (f *flow) count(o *operation) {
	if f.unmarked++; f.unmarked == markEvery {
		f.unmarked = 0
		f.marks++
		o.marked = true
	}
}

// releaseHeld launches the sends that waited for marked sends that are now matched.
func (t *transport) releaseHeld() {
	for i := 0; i < len(t.matched); i++ { // a refused send adds to it
		stream := t.matched[i]
		f := t.flows[stream]
		f.marks--
		for slot := t.held.First(stream); slot != inflight.None && f.marks < marksMax; slot = t.held.First(stream) {
			t.held.Remove(slot)
			f.count(t.ops.At(slot))
			t.launch(slot)
		}
	}
	t.matched = t.matched[:0]
}
