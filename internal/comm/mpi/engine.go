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
	"unsafe"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inflight"
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

// operation is the content of a slot from submission until its handler runs.
type operation struct {
	kind    kind
	settled bool // MPI has completed it
	marked  bool // a synchronous send: see flow
	matched bool // a synchronous send: see IsendMatched
	ch      comm.Chan
	tag     uint32
	peer    comm.Peer
	n       int
	mem     uintptr // of a send: address of its bytes, outside the Go heap
	handler comm.Handler
	buf     *comm.Buf
	done    comm.Done
}

// stream identifies the receives that MPI fills in posting order.
func (o *operation) stream() uint64 {
	return uint64(o.peer+1)<<32 | uint64(o.ch)<<28 | uint64(o.tag)
}

func (t *transport) Isend(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	return t.send(to, ch, tag, b, off, n, h, false)
}

// IsendMatched is MPI_Issend.
func (t *transport) IsendMatched(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	return t.send(to, ch, tag, b, off, n, h, true)
}

func (t *transport) send(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler, matched bool) comm.Op {
	comm.CheckSend(t.size, to, ch, tag, b, off, n)
	mem := address(comm.Span(b, off, n))
	slot := t.ops.Put(operation{kind: sending, matched: matched, handler: h, buf: b, peer: to, ch: ch, tag: tag, n: n, mem: mem})
	op := t.ops.Op(slot)
	if ch != comm.Ctl || t.admit(slot) {
		t.launch(slot)
	}
	return op
}

// launch passes a send to MPI.
func (t *transport) launch(slot uint32) {
	o := t.ops.At(slot)
	rc := C.fp_send(C.int(o.ch), C.int(o.peer), C.int(o.tag), C.uintptr_t(o.mem), C.int(o.n), C.uint32_t(slot),
		C.int(b2i(o.marked || o.matched)))
	if rc == C.FP_SENT {
		t.settle(slot, comm.Done{Op: t.ops.Op(slot), Peer: o.peer, Tag: o.tag, N: o.n}, false)
		return
	}
	t.submitted(slot, rc)
}

// address returns the address of memory outside the Go heap.
func address(span []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(span))) }

func (t *transport) Irecv(from comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	comm.CheckRecv(t.size, from, ch, tag, b, off, n)
	span := comm.Span(b, off, n)
	slot := t.ops.Put(operation{kind: receiving, handler: h, buf: b, peer: from, ch: ch, tag: tag, n: n})
	stream := t.ops.At(slot).stream()
	before := t.streams.Last(stream)
	for before != inflight.None && t.ops.At(before).settled { // complete for MPI, and C has dropped it
		before = t.streams.Prev(before)
	}
	t.streams.Push(stream, slot)
	rc := C.fp_recv(C.int(ch), C.int(from), C.int(tag), C.uintptr_t(address(span)), C.int(n), C.uint32_t(slot), C.uint32_t(before))
	return t.submitted(slot, rc)
}

// submitted turns an error code of MPI into a completion in the next batch.
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

// settle records a completion. Receives of one stream become ready in posting order, although a short message may be
// complete while the long one before it is still in flight.
func (t *transport) settle(slot uint32, d comm.Done, refused bool) {
	o := t.ops.At(slot)
	o.settled, o.done = true, d
	if o.kind != receiving {
		t.ready = append(t.ready, slot)
		if o.marked {
			t.matched = append(t.matched, o.stream())
		}
		return
	}
	stream := o.stream()
	if d.Err == comm.ErrCancelled || refused { // it took no message, so it is ready out of order
		t.streams.Remove(slot)
		t.ready = append(t.ready, slot)
	}
	for first := t.streams.First(stream); first != inflight.None && t.ops.At(first).settled; first = t.streams.First(stream) {
		t.streams.Remove(first)
		t.ready = append(t.ready, first)
	}
}

// doneOf translates a completion from C.
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

// beginDriving panics in a handler that drives; endDriving is its counterpart.
func (t *transport) beginDriving(use string) {
	if t.driving {
		panic(fmt.Sprintf("mpi: %s on rank %d inside a handler", use, t.rank))
	}
	t.driving = true
}

func (t *transport) endDriving() { t.driving = false }

func (t *transport) Drive(until func() bool) error {
	t.beginDriving("Drive")
	defer t.endDriving()
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

// Tick ignores the error of a failed poll: the next Drive reports it.
func (t *transport) Tick() {
	t.beginDriving("Tick")
	defer t.endDriving()
	if t.stopped() == nil {
		_ = t.progress(false)
	}
}

// Post adds f to the next batch of the goroutine that drives this rank.
func (t *transport) Post(f func()) {
	p := &t.posts
	p.mu.Lock()
	p.list = append(p.list, f)
	p.some.Store(true)
	p.mu.Unlock()
	C.fp_wake()
}

// progress handles one batch. With wait it returns after a nonempty batch or a Post.
func (t *transport) progress(wait bool) error {
	if t.posts.some.Load() {
		t.runPosts()
		wait = false
	}
	polled := C.fp_poll(C.int(b2i(wait && len(t.ready) == 0)))
	if polled.n < 0 {
		return fmt.Errorf("mpi: rank %d: MPI_Testsome: %s", t.rank, errorText(polled.code))
	}
	// C owns the array and overwrites it at the next poll: no handler may run before it is read.
	completions := unsafe.Slice(polled.done, int(polled.n))
	for i := range completions {
		t.settle(uint32(completions[i].slot), t.doneOf(&completions[i]), false)
	}
	t.releaseHeld()
	t.runReady()
	if len(t.ready) > 0 {
		t.runReady() // sends that completed at once: mostly they free memory for reuse, which is not worth a poll
	}
	t.woken += int64(polled.woken)
	if polled.tired != 0 {
		t.rests++
		runtime.Gosched()
	}
	return nil
}

func (t *transport) runPosts() {
	p := &t.posts
	p.mu.Lock()
	list := p.list
	p.list = p.spare
	p.some.Store(false)
	p.mu.Unlock()
	for _, f := range list {
		f()
	}
	clear(list)
	p.spare = list[:0]
}

// runReady runs the handlers of the ready slots. Operations that handlers complete wait for the next batch, so that
// Drive checks its condition first.
func (t *transport) runReady() {
	batch := t.ready
	t.ready = t.spareReady[:0]
	t.spareReady = batch
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

// Barrier is MPI_Ibarrier with our own polling, so that messages move and the core is shared meanwhile.
func (t *transport) Barrier() error {
	return t.collective(func(slot C.uint32_t) C.int { return C.fp_barrier(slot) })
}

// collective starts a nonblocking collective and drives until it has completed.
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
