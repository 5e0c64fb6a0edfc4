//go:build mpi

package mpi

// #include "shim.h"
import "C"

import (
	"fmt"
	"runtime"
	"slices"
	"unsafe"

	"fluentps/comm"
)

type kind uint8

const (
	free kind = iota
	sending
	receiving
	waiting // in the barrier
)

func (k kind) String() string {
	return [...]string{"free slot", "send to", "receive from", "barrier"}[k]
}

// stream is a set of receives that MPI fills in posting order.
type stream struct {
	from comm.Peer
	ch   comm.Chan
	tag  uint32
}

// operation is what a slot holds from submission until its handler runs.
type operation struct {
	kind    kind
	settled bool   // MPI is done with it
	uses    uint32 // of this slot so far: tells a stale Op from a live one
	handler comm.Handler
	buf     *comm.Buf
	peer    comm.Peer
	stream  stream // of a receive also the queue it is in
	n       int
	done    comm.Done
}

func opOf(slot, uses uint32) comm.Op { return comm.Op(uses)<<32 | comm.Op(slot) }

func (t *transport) submit(o operation) uint32 {
	if len(t.idle) == 0 {
		t.ops = append(t.ops, operation{})
		t.idle = append(t.idle, uint32(len(t.ops)-1))
	}
	slot := t.idle[len(t.idle)-1]
	t.idle = t.idle[:len(t.idle)-1]
	t.open++
	o.uses = t.ops[slot].uses + 1
	t.ops[slot] = o
	return slot
}

func (t *transport) Isend(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	comm.CheckSend(t.size, to, ch, tag, b, off, n)
	span := comm.Span(b, off, n)
	slot := t.submit(operation{kind: sending, handler: h, buf: b, peer: to, stream: stream{to, ch, tag}, n: n})
	rc := C.fp_send(C.int(ch), C.int(to), C.int(tag), unsafe.Pointer(unsafe.SliceData(span)), C.int(n), C.uint32_t(slot))
	return t.submitted(slot, rc)
}

func (t *transport) Irecv(from comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	comm.CheckRecv(t.size, from, ch, tag, b, off, n)
	span := comm.Span(b, off, n)
	s := stream{from, ch, tag}
	slot := t.submit(operation{kind: receiving, handler: h, buf: b, peer: from, stream: s, n: n})
	queue := t.streams[s]
	if queue == nil {
		queue = new([]uint32)
		t.streams[s] = queue
	}
	*queue = append(*queue, slot)
	rc := C.fp_recv(C.int(ch), C.int(from), C.int(tag), unsafe.Pointer(unsafe.SliceData(span)), C.int(n), C.uint32_t(slot))
	return t.submitted(slot, rc)
}

// submitted turns a refusal by MPI into a completion of the next batch.
func (t *transport) submitted(slot uint32, rc C.int) comm.Op {
	o := &t.ops[slot]
	op := opOf(slot, o.uses)
	if rc != 0 {
		t.settle(slot, comm.Done{Op: op, Peer: o.peer, Tag: o.stream.tag, Err: t.failure(o, rc)})
	}
	return op
}

func (t *transport) failure(o *operation, code C.int) error {
	return fmt.Errorf("mpi: %s rank %d, channel %d, tag %d, %d bytes: %s", o.kind, o.peer, o.stream.ch, o.stream.tag, o.n, errorText(code))
}

func (t *transport) Cancel(op comm.Op) {
	slot := uint32(op)
	if int(slot) >= len(t.ops) {
		return
	}
	o := &t.ops[slot]
	if o.kind != receiving || o.settled || opOf(slot, o.uses) != op {
		return
	}
	if rc := C.fp_cancel(C.uint32_t(slot)); rc != 0 {
		panic(fmt.Sprintf("mpi: MPI_Cancel of a pending receive: %s", errorText(rc)))
	}
}

// settle records a completion. Receives of one stream become ready in posting order, although a
// short message may be complete while the long one before it is still on its way.
func (t *transport) settle(slot uint32, d comm.Done) {
	o := &t.ops[slot]
	o.settled, o.done = true, d
	if o.kind != receiving {
		t.ready = append(t.ready, slot)
		return
	}
	queue := t.streams[o.stream]
	if d.Err == comm.ErrCancelled { // took no message: its turn is now
		i := slices.Index(*queue, slot)
		*queue = slices.Delete(*queue, i, i+1)
		t.ready = append(t.ready, slot)
	}
	for len(*queue) > 0 && t.ops[(*queue)[0]].settled {
		t.ready = append(t.ready, (*queue)[0])
		*queue = (*queue)[1:]
	}
	if len(*queue) == 0 {
		delete(t.streams, o.stream)
	}
}

// doneOf translates a completion.
func (t *transport) doneOf(d *C.struct_fp_done) comm.Done {
	slot := uint32(d.slot)
	o := &t.ops[slot]
	done := comm.Done{Op: opOf(slot, o.uses), Peer: o.peer, Tag: o.stream.tag, N: o.n}
	if o.kind == receiving {
		done.N = int(d.bytes)
		if d.cancelled == 0 && o.peer == comm.AnyPeer {
			done.Peer = comm.Peer(d.source)
		}
	}
	switch {
	case d.cancelled != 0:
		done.Err = comm.ErrCancelled
	case d.truncated != 0:
		done.Err = fmt.Errorf("mpi: from rank %d, channel %d, tag %d, into %d bytes: %w",
			done.Peer, o.stream.ch, o.stream.tag, o.n, comm.ErrTruncated)
	case d.code != 0:
		done.Err = t.failure(o, d.code)
	}
	if done.Err != nil {
		done.N = 0
	}
	return done
}

// enter guards against a handler that drives; it returns the way out.
func (t *transport) enter(use string) func() {
	if t.driving {
		panic(fmt.Sprintf("mpi: %s on rank %d inside a handler", use, t.rank))
	}
	t.driving = true
	return func() { t.driving = false }
}

func (t *transport) Drive(until func() bool) error {
	defer t.enter("Drive")()
	// One thread for the whole wait keeps its cache and its timer slack.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		if err := t.stopped(); err != nil {
			return err
		}
		if until() {
			return nil
		}
		if err := t.progress(true); err != nil {
			return err
		}
	}
}

// Tick drops the error of a failed poll: the next Drive meets it again.
func (t *transport) Tick() {
	defer t.enter("Tick")()
	if t.stopped() == nil {
		_ = t.progress(false)
	}
}

// Post runs f in the next batch of whoever drives this rank.
func (t *transport) Post(f func()) {
	t.mu.Lock()
	t.posts = append(t.posts, f)
	t.mu.Unlock()
	C.fp_wake()
}

// progress handles one batch; with wait there is something in it, or a Post came.
func (t *transport) progress(wait bool) error {
	t.mu.Lock()
	posts := t.posts
	t.posts = nil
	t.mu.Unlock()
	for _, f := range posts {
		f()
	}
	wait = wait && len(posts) == 0 && len(t.ready) == 0
	var out *C.struct_fp_done
	var code C.int
	n := C.fp_poll(C.int(b2i(wait)), &out, &code)
	if n < 0 {
		return fmt.Errorf("mpi: rank %d: MPI_Testsome: %s", t.rank, errorText(code))
	}
	if n > 0 {
		// The array is C's, overwritten by the next poll: no handler runs before it is read.
		completions := unsafe.Slice(out, int(n))
		for i := range completions {
			t.settle(uint32(completions[i].slot), t.doneOf(&completions[i]))
		}
	}
	batch := t.ready
	t.ready = t.batch[:0] // what handlers complete waits for the next batch, so that until is looked at
	t.batch = batch
	for _, slot := range batch {
		t.finish(slot)
	}
	return nil
}

// finish frees a slot and runs its handler.
func (t *transport) finish(slot uint32) {
	o := t.ops[slot]
	t.ops[slot] = operation{uses: o.uses}
	t.idle = append(t.idle, slot)
	t.open--
	if o.buf != nil {
		o.buf.Release()
	}
	if o.handler != nil {
		o.handler(o.done)
	}
}

// Barrier is MPI_Ibarrier and our own poll, so that messages move and the core is shared meanwhile.
func (t *transport) Barrier() error {
	if err := t.stopped(); err != nil {
		return err
	}
	var result *comm.Done
	slot := t.submit(operation{kind: waiting, handler: func(d comm.Done) { result = &d }})
	t.submitted(slot, C.fp_barrier(C.uint32_t(slot)))
	if err := t.Drive(func() bool { return result != nil }); err != nil {
		return err
	}
	return result.Err
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
