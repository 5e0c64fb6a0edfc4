//go:build mpi

package mpi

import (
	"fluentps/comm"
	"fluentps/comm/inflight"
)

// flow counts the control messages of one receiver and tag, so that no more than comm.BacklogMax are unmet there. MPI
// tells nothing about an ordinary short send but that it took the bytes, and buffers as many as come. So every
// markEvery-th is a synchronous one, which completes when it is met, and so are all before it by then.
type flow struct {
	unmarked int // since the last marked one; less than markEvery
	marks    int // marked and not met; at most marksMax
}

const (
	marksMax  = 2 // the next half goes out while the last one is on its way
	markEvery = comm.BacklogMax / marksMax
)

// admit tells whether a send may go out now; if not, it is held until resume.
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

// count marks a send that goes out, if it is its turn.
func (f *flow) count(o *operation) {
	if f.unmarked++; f.unmarked == markEvery {
		f.unmarked = 0
		f.marks++
		o.marked = true
	}
}

// resume lets go what was held for marks that have been met.
func (t *transport) resume() {
	for i := 0; i < len(t.met); i++ { // a refused send adds to it
		stream := t.met[i]
		f := t.flows[stream]
		f.marks--
		for slot := t.held.First(stream); slot != inflight.None && f.marks < marksMax; slot = t.held.First(stream) {
			t.held.Remove(slot)
			f.count(t.ops.At(slot))
			t.launch(slot)
		}
	}
	t.met = t.met[:0]
}
