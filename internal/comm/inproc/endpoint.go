package inproc

import (
	"fmt"
	"sync"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inflight"
)

// endpoint is one rank. Other goroutines write the fields below mu; the rest belongs to the goroutine that drives.
type endpoint struct {
	world *world
	rank  int
	peers []comm.Peer   // of this host
	wake  chan struct{} // one token: something arrived since the last look

	mu          sync.Mutex
	arrived     []message   // in order of arrival
	settled     []comm.Done // long sends of ours that the receiver has copied
	posts       []func()
	beats       []beat   // by sender; nil until the first beat arrives
	copies      int      // copies of short messages held for this rank; at most eagerMax
	spareCopies [][]byte // the memory of used copies, for reuse; each of comm.CtlMax bytes

	ops          inflight.Slots[operation]
	posted       inflight.Queues         // slots of receives, by stream
	early        inflight.Slots[message] // messages without a posted receive
	unexpected   inflight.Queues         // slots of early, by stream
	ready        []comm.Done             // complete, handler not yet run
	spareReady   []comm.Done             // handlers running now; swapped with ready
	spareArrived []message               // empty; swapped with arrived
	sparePosts   []func()                // empty; swapped with posts
	windows      []*comm.Buf             // this rank's segments, of windows not yet freed
	reduced      int64                   // collectives that this rank has joined
	driving      bool
	closed       bool
}

// stream is the part of the matching key besides the source.
type stream struct {
	ch  comm.Chan
	tag uint32
}

func (s stream) key() uint64 { return uint64(s.ch)<<32 | uint64(s.tag) }

// operation is a send or receive from its submission until its handler runs.
type operation struct {
	handler comm.Handler
	buf     *comm.Buf // nil for an empty message
	recv    bool
	from    comm.Peer // the source of a receive, possibly AnyPeer; the destination of a send
	stream  stream
	span    []byte // of a receive: its destination
}

func (o *operation) release() {
	if o.buf != nil {
		o.buf.Release()
	}
}

// message is a send as its receiver sees it.
type message struct {
	from   *endpoint
	id     comm.Op // the sender's operation
	stream stream
	data   []byte // the sender's buffer, or our copy
	copied bool   // data is our copy, and the send has completed
}

func (e *endpoint) Isend(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	return e.send(to, ch, tag, b, off, n, h, true)
}

// IsendMatched never copies a message: the sender waits until it was received.
func (e *endpoint) IsendMatched(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	return e.send(to, ch, tag, b, off, n, h, false)
}

func (e *endpoint) send(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler, mayCopy bool) comm.Op {
	comm.CheckSend(e.Size(), to, ch, tag, b, off, n)
	s := stream{ch, tag}
	id := e.ops.Op(e.ops.Put(operation{handler: h, buf: b, from: to, stream: s}))
	if e.world.ranks[to].accept(message{from: e, id: id, stream: s, data: comm.Span(b, off, n)}, mayCopy) {
		e.ready = append(e.ready, comm.Done{Op: id, Peer: to, Tag: tag, N: n})
	}
	return id
}

// accept puts a message into the inbox and returns whether it was copied. At eagerMax copies a short message is treated
// like a long one: its sender waits, and the inbox takes no more memory.
func (e *endpoint) accept(m message, mayCopy bool) bool {
	e.mu.Lock()
	if mayCopy && len(m.data) <= comm.CtlMax && e.copies < e.world.eagerMax {
		e.copies++
		m.copied = true
		if last := len(e.spareCopies) - 1; last >= 0 {
			var room []byte
			room, e.spareCopies = e.spareCopies[last], e.spareCopies[:last]
			m.data = append(room[:0], m.data...)
		} else {
			m.data = append(make([]byte, 0, comm.CtlMax), m.data...)
		}
	}
	e.arrived = append(e.arrived, m)
	e.mu.Unlock()
	e.signal()
	return m.copied
}

func (e *endpoint) Irecv(from comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	comm.CheckRecv(e.Size(), from, ch, tag, b, off, n)
	s := stream{ch, tag}
	slot := e.ops.Put(operation{handler: h, buf: b, recv: true, from: from, stream: s, span: comm.Span(b, off, n)})
	id := e.ops.Op(slot)
	for i := e.unexpected.First(s.key()); i != inflight.None; i = e.unexpected.Next(i) {
		if from == comm.AnyPeer || int(from) == e.early.At(i).from.rank {
			e.unexpected.Remove(i)
			e.deliver(slot, e.early.Take(i))
			return id
		}
	}
	e.posted.Push(s.key(), slot)
	return id
}

func (e *endpoint) Cancel(id comm.Op) {
	slot, live := e.ops.Find(id)
	if !live {
		return
	}
	o := e.ops.At(slot)
	if !o.recv {
		return
	}
	for i := e.posted.First(o.stream.key()); i != inflight.None; i = e.posted.Next(i) {
		if i == slot {
			e.posted.Remove(slot)
			e.ready = append(e.ready, comm.Done{Op: id, Peer: o.from, Tag: o.stream.tag, Err: comm.ErrCancelled})
			return
		}
	}
}

// match finds the oldest posted receive for a message, or keeps the message.
func (e *endpoint) match(m message) {
	key := m.stream.key()
	for i := e.posted.First(key); i != inflight.None; i = e.posted.Next(i) {
		if from := e.ops.At(i).from; from == comm.AnyPeer || int(from) == m.from.rank {
			e.posted.Remove(i)
			e.deliver(i, m)
			return
		}
	}
	e.unexpected.Push(key, e.early.Put(m))
}

// deliver copies a message into its receive and completes both.
func (e *endpoint) deliver(slot uint32, m message) {
	o := e.ops.At(slot)
	d := comm.Done{Op: e.ops.Op(slot), Peer: comm.Peer(m.from.rank), Tag: m.stream.tag, N: len(m.data)}
	if len(m.data) > len(o.span) {
		d.N = 0
		d.Err = fmt.Errorf("inproc: %d bytes from rank %d, tag %d, into %d: %w",
			len(m.data), m.from.rank, m.stream.tag, len(o.span), comm.ErrTruncated)
	} else {
		copy(o.span, m.data)
	}
	e.ready = append(e.ready, d)
	if m.copied {
		e.mu.Lock()
		e.copies--
		e.spareCopies = append(e.spareCopies, m.data)
		e.mu.Unlock()
		return
	}
	m.from.settle(comm.Done{Op: m.id, Peer: comm.Peer(e.rank), Tag: m.stream.tag, N: len(m.data)})
}

func (e *endpoint) settle(d comm.Done) {
	e.mu.Lock()
	e.settled = append(e.settled, d)
	e.mu.Unlock()
	e.signal()
}
