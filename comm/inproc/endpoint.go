package inproc

import (
	"fmt"
	"sync"

	"fluentps/comm"
)

// endpoint is one rank. Below mu are the fields that other goroutines write; the rest belongs to
// the goroutine that drives.
type endpoint struct {
	world *world
	rank  int
	wake  chan struct{} // one token: something arrived since the last look

	mu      sync.Mutex
	arrived []message   // in order of arrival
	settled []comm.Done // long sends of ours that the receiver has copied
	posts   []func()
	kept    int      // copies of short messages held for this rank; at most eagerMax
	spare   [][]byte // their memory, for reuse

	last       comm.Op
	ops        map[comm.Op]*operation // in flight
	posted     map[stream][]*operation
	unexpected map[stream][]message
	ready      []comm.Done // complete, handler not yet run
	batch      []comm.Done // handlers running now; the other half of ready
	emptied    []message   // the other half of arrived
	driving    bool
	closed     bool
}

// stream is what the matching goes by, besides the source.
type stream struct {
	ch  comm.Chan
	tag uint32
}

// operation is a send or receive from its submission until its handler runs.
type operation struct {
	id      comm.Op
	handler comm.Handler
	buf     *comm.Buf // nil for an empty message
	recv    bool
	from    comm.Peer // of a receive; may be AnyPeer
	stream  stream
	span    []byte // of a receive: where the message goes
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
	copied bool   // the send has completed already
}

func (e *endpoint) submit(o *operation, h comm.Handler, b *comm.Buf) *operation {
	e.last++
	o.id, o.handler, o.buf = e.last, h, b
	e.ops[o.id] = o
	return o
}

func (e *endpoint) Isend(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	comm.CheckSend(e.Size(), to, ch, tag, b, off, n)
	o := e.submit(&operation{}, h, b)
	m := message{from: e, id: o.id, stream: stream{ch, tag}, data: comm.Span(b, off, n)}
	if e.world.ranks[to].accept(m) {
		e.ready = append(e.ready, comm.Done{Op: o.id, Peer: to, Tag: tag, N: n})
	}
	o.from, o.stream = to, m.stream
	return o.id
}

// accept puts a message into the inbox and tells whether it was copied. Past eagerMax a short
// message is treated as a long one: its sender waits, the inbox does not grow.
func (e *endpoint) accept(m message) bool {
	e.mu.Lock()
	if len(m.data) <= comm.CtlMax && e.kept < e.world.eagerMax {
		e.kept++
		m.copied = true
		var room []byte
		if last := len(e.spare) - 1; last >= 0 {
			room, e.spare = e.spare[last], e.spare[:last]
		}
		m.data = append(room[:0], m.data...)
	}
	e.arrived = append(e.arrived, m)
	e.mu.Unlock()
	e.signal()
	return m.copied
}

func (e *endpoint) Irecv(from comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	comm.CheckRecv(e.Size(), from, ch, tag, b, off, n)
	o := e.submit(&operation{recv: true, from: from, stream: stream{ch, tag}, span: comm.Span(b, off, n)}, h, b)
	for i, m := range e.unexpected[o.stream] {
		if from == comm.AnyPeer || int(from) == m.from.rank {
			remove(e.unexpected, o.stream, i)
			e.land(o, m)
			return o.id
		}
	}
	e.posted[o.stream] = append(e.posted[o.stream], o)
	return o.id
}

func (e *endpoint) Cancel(id comm.Op) {
	o := e.ops[id]
	if o == nil || !o.recv {
		return
	}
	for i, p := range e.posted[o.stream] {
		if p == o {
			remove(e.posted, o.stream, i)
			e.ready = append(e.ready, comm.Done{Op: id, Peer: o.from, Tag: o.stream.tag, Err: comm.ErrCancelled})
			return
		}
	}
}

// match finds the oldest posted receive for a message, or keeps the message.
func (e *endpoint) match(m message) {
	for i, o := range e.posted[m.stream] {
		if o.from == comm.AnyPeer || int(o.from) == m.from.rank {
			remove(e.posted, m.stream, i)
			e.land(o, m)
			return
		}
	}
	e.unexpected[m.stream] = append(e.unexpected[m.stream], m)
}

// land copies a message into its receive and completes both.
func (e *endpoint) land(o *operation, m message) {
	d := comm.Done{Op: o.id, Peer: comm.Peer(m.from.rank), Tag: m.stream.tag, N: len(m.data)}
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
		e.kept--
		e.spare = append(e.spare, m.data)
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

// remove deletes element i of a queue. The common case, the head, costs nothing.
func remove[T any](queues map[stream][]T, s stream, i int) {
	q := queues[s]
	copy(q[1:i+1], q[:i])
	var none T
	q[0] = none
	if q = q[1:]; len(q) == 0 {
		delete(queues, s)
		return
	}
	queues[s] = q
}
