//go:build mpi

package mpi

/*
#include "shim.h"
// These neither keep Go memory nor call back, which saves an allocation and some work per call.
#cgo noescape fp_send
#cgo nocallback fp_send
#cgo noescape fp_recv
#cgo nocallback fp_recv
#cgo noescape fp_poll
#cgo nocallback fp_poll
*/
import "C"

import (
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"fluentps/comm"
	"fluentps/comm/inflight"
)

type kind uint8

const (
	sending kind = iota
	receiving
	waiting // in a barrier or another collective
)

func (k kind) String() string {
	return [...]string{"send to", "receive from", "collective with"}[k]
}

// operation is what a slot holds from submission until its handler runs.
type operation struct {
	kind    kind
	settled bool // MPI is done with it
	marked  bool // a synchronous send: see flow
	ch      comm.Chan
	tag     uint32
	peer    comm.Peer
	n       int
	mem     uintptr // of a send: its bytes, outside the Go heap
	handler comm.Handler
	buf     *comm.Buf
	done    comm.Done
}

// stream names the receives that MPI fills in posting order.
func (o *operation) stream() uint64 {
	return uint64(o.peer+1)<<32 | uint64(o.ch)<<28 | uint64(o.tag)
}

func (t *transport) Isend(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	comm.CheckSend(t.size, to, ch, tag, b, off, n)
	mem := address(comm.Span(b, off, n))
	slot := t.ops.Put(operation{kind: sending, handler: h, buf: b, peer: to, ch: ch, tag: tag, n: n, mem: mem})
	op := t.ops.Op(slot)
	if ch != comm.Ctl || t.admit(slot) {
		t.launch(slot)
	}
	return op
}

// launch gives a send to MPI.
func (t *transport) launch(slot uint32) {
	o := t.ops.At(slot)
	rc := C.fp_send(C.int(o.ch), C.int(o.peer), C.int(o.tag), C.uintptr_t(o.mem), C.int(o.n), C.uint32_t(slot), C.int(b2i(o.marked)))
	if rc == C.FP_LEFT {
		t.settle(slot, comm.Done{Op: t.ops.Op(slot), Peer: o.peer, Tag: o.tag, N: o.n}, false)
		return
	}
	t.submitted(slot, rc)
}

// address is that of memory outside the Go heap.
func address(span []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(span))) }

func (t *transport) Irecv(from comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	comm.CheckRecv(t.size, from, ch, tag, b, off, n)
	span := comm.Span(b, off, n)
	slot := t.ops.Put(operation{kind: receiving, handler: h, buf: b, peer: from, ch: ch, tag: tag, n: n})
	stream := t.ops.At(slot).stream()
	before := t.streams.Last(stream)
	for before != inflight.None && t.ops.At(before).settled { // complete for MPI, and C has forgotten it
		before = t.streams.Prev(before)
	}
	t.streams.Push(stream, slot)
	rc := C.fp_recv(C.int(ch), C.int(from), C.int(tag), C.uintptr_t(address(span)), C.int(n), C.uint32_t(slot), C.uint32_t(before))
	return t.submitted(slot, rc)
}

// submitted turns a refusal by MPI into a completion of the next batch.
func (t *transport) submitted(slot uint32, rc C.int) comm.Op {
	op := t.ops.Op(slot)
	if rc != 0 {
		o := t.ops.At(slot)
		t.settle(slot, comm.Done{Op: op, Peer: o.peer, Tag: o.tag, Err: t.failure(o, rc)}, true)
	}
	return op
}

func (t *transport) failure(o *operation, code C.int) error {
	return fmt.Errorf("mpi: %s rank %d, channel %d, tag %d, %d bytes: %s", o.kind, o.peer, o.ch, o.tag, o.n, errorText(code))
}

func (t *transport) Cancel(op comm.Op) {
	slot, live := t.ops.Find(op)
	if !live {
		return
	}
	if o := t.ops.At(slot); o.kind != receiving || o.settled {
		return
	}
	if rc := C.fp_cancel(C.uint32_t(slot)); rc != 0 {
		panic(fmt.Sprintf("mpi: MPI_Cancel of a pending receive: %s", errorText(rc)))
	}
}

// settle records a completion. Receives of one stream become ready in posting order, although a
// short message may be complete while the long one before it is still on its way.
func (t *transport) settle(slot uint32, d comm.Done, refused bool) {
	o := t.ops.At(slot)
	o.settled, o.done = true, d
	if o.kind != receiving {
		t.ready = append(t.ready, slot)
		if o.marked {
			t.met = append(t.met, o.stream())
		}
		return
	}
	stream := o.stream()
	if d.Err == comm.ErrCancelled || refused { // took no message: its turn is now
		t.streams.Remove(slot)
		t.ready = append(t.ready, slot)
	}
	for first := t.streams.First(stream); first != inflight.None && t.ops.At(first).settled; first = t.streams.First(stream) {
		t.streams.Remove(first)
		t.ready = append(t.ready, first)
	}
}

// doneOf translates a completion.
func (t *transport) doneOf(d *C.struct_fp_done) comm.Done {
	slot := uint32(d.slot)
	o := t.ops.At(slot)
	done := comm.Done{Op: t.ops.Op(slot), Peer: o.peer, Tag: o.tag, N: o.n}
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
			done.Peer, o.ch, o.tag, o.n, comm.ErrTruncated)
	case d.code != 0:
		done.Err = t.failure(o, d.code)
	}
	if done.Err != nil {
		done.N = 0
	}
	return done
}

// enter guards against a handler that drives; leave is the way out.
func (t *transport) enter(use string) {
	if t.driving {
		panic(fmt.Sprintf("mpi: %s on rank %d inside a handler", use, t.rank))
	}
	t.driving = true
}

func (t *transport) leave() { t.driving = false }

func (t *transport) Drive(until func() bool) error {
	t.enter("Drive")
	defer t.leave()
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
		t.rest()
	}
}

const (
	restEvery  = 8 * time.Millisecond // Go's watcher lets a goroutine run for 10
	restLookAt = 16                   // polls
)

// rest reschedules this goroutine from time to time, while much comes in. Of one that never was, Go's watcher thread takes
// the processor in each call into C that it sees, and for that looks every 20 us: on cores that all poll, each look costs a
// turn. Rescheduling passes through another thread, so who mostly sleeps does without.
func (t *transport) rest() {
	if t.polls++; t.polls%restLookAt != 0 {
		return
	}
	now := t.Now()
	busy := now-t.looked < restEvery
	t.looked = now
	if busy && now-t.rested >= restEvery {
		t.rested = now
		runtime.Gosched()
	}
}

// Tick drops the error of a failed poll: the next Drive meets it again.
func (t *transport) Tick() {
	t.enter("Tick")
	defer t.leave()
	if t.stopped() == nil {
		_ = t.progress(false)
	}
}

// Post runs f in the next batch of whoever drives this rank.
func (t *transport) Post(f func()) {
	t.mu.Lock()
	t.posts = append(t.posts, f)
	t.posted.Store(true)
	t.mu.Unlock()
	C.fp_wake()
}

// progress handles one batch; with wait there is something in it, or a Post came.
func (t *transport) progress(wait bool) error {
	if t.posted.Load() {
		t.runPosts()
		wait = false
	}
	polled := C.fp_poll(C.int(b2i(wait && len(t.ready) == 0)))
	if polled.n < 0 {
		return fmt.Errorf("mpi: rank %d: MPI_Testsome: %s", t.rank, errorText(polled.code))
	}
	// The array is C's, overwritten by the next poll: no handler runs before it is read.
	completions := unsafe.Slice(polled.done, int(polled.n))
	for i := range completions {
		t.settle(uint32(completions[i].slot), t.doneOf(&completions[i]), false)
	}
	t.resume()
	t.runReady()
	if len(t.ready) > 0 {
		t.runReady() // what left at once: mostly that is memory to be reused, and not worth a poll
	}
	return nil
}

func (t *transport) runPosts() {
	t.mu.Lock()
	posts := t.posts
	t.posts = t.posting
	t.posted.Store(false)
	t.mu.Unlock()
	for _, f := range posts {
		f()
	}
	clear(posts)
	t.posting = posts[:0]
}

// runReady runs the handlers of what is ready. What they complete waits, so that until is looked at.
func (t *transport) runReady() {
	batch := t.ready
	t.ready = t.batch[:0]
	t.batch = batch
	for _, slot := range batch {
		t.finish(slot)
	}
}

// finish frees a slot and runs its handler.
func (t *transport) finish(slot uint32) {
	o := t.ops.Take(slot)
	if o.buf != nil {
		o.buf.Release()
	}
	if o.handler != nil {
		o.handler(o.done)
	}
}

// Barrier is MPI_Ibarrier and our own poll, so that messages move and the core is shared meanwhile.
func (t *transport) Barrier() error {
	return t.collective(func(slot C.uint32_t) C.int { return C.fp_barrier(slot) })
}

// collective starts a nonblocking collective and drives until it is complete.
func (t *transport) collective(start func(slot C.uint32_t) C.int) error {
	if err := t.stopped(); err != nil {
		return err
	}
	var result *comm.Done
	slot := t.ops.Put(operation{kind: waiting, peer: comm.AnyPeer, handler: func(d comm.Done) { result = &d }})
	t.submitted(slot, start(C.uint32_t(slot)))
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
