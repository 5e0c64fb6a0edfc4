// Package link is one rank's end of the messages between ranks. It delivers the records of control messages to the
// handlers of their kinds, sends bulk messages after them, gathers, broadcasts and agrees on values of all ranks, and
// counts the traffic. It knows no feature: a feature that sends or receives registers handlers.
package link

import (
	"fmt"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
)

// Handler handles a record of a control message. It never blocks.
type Handler func(from int, m *wire.Record)

// Traffic counts bytes of training.
type Traffic struct {
	Sent     int64
	Between  int64 // part of Sent that went to other hosts
	Received int64
	Shared   int64 // read from the shared memory of other ranks, instead of received
}

// Link belongs to the goroutine that drives the transport.
type Link struct {
	t     comm.Transport
	me    int
	hosts []string // of every rank; nil until they are known

	handlers [wire.Kinds]Handler
	ring     ring
	frames   frames
	clock    clock
	// BeforeSending and AfterSending are called at the end of a batch: before its messages leave, and after that.
	BeforeSending, AfterSending func()

	matching comm.Matching // nil: a bulk message counts as sent when MPI has taken it

	// The senders and receivers of bulk count into Traffic, too.
	Traffic       Traffic
	open          int         // operations in flight and calls of Hold without Let
	until         func() bool // the condition that Drive waits for
	untilOrFailed func() bool // until holds, or a handler has failed; made once
	err           error       // the first failure inside a handler; ends every Drive
}

// Options configure how a link sends.
type Options struct {
	Apart bool // every header begins a message of its own, as with PS-Lite
}

// New returns the link of a rank. It receives nothing before Open.
func New(t comm.Transport, o Options) *Link {
	l := &Link{t: t, me: t.Rank()}
	l.untilOrFailed = func() bool { return l.err != nil || l.until() }
	l.frames = frames{l: l, open: make([]*frame, t.Size()), apart: o.Apart}
	return l
}

// Handle sets the handler of a kind of record. A second handler for a kind is the caller's bug and panics.
func (l *Link) Handle(kind wire.Kind, h Handler) {
	if l.handlers[kind] != nil {
		panic(fmt.Sprintf("link: a second handler for %v", kind))
	}
	l.handlers[kind] = h
}

// HandleHeader is Handle for a handler that needs only the header.
func (l *Link) HandleHeader(kind wire.Kind, h func(h *wire.Header)) {
	l.Handle(kind, func(_ int, m *wire.Record) { h(&m.Header) })
}

// MatchBulk lets a bulk message count as sent only when its receiver has met it with a receive, if the transport can
// tell. So a window of bytes in flight bounds what lies in the queues of hosts and switches, too.
func (l *Link) MatchBulk() { l.matching, _ = l.t.(comm.Matching) }

// Fail records the first failure of a handler, which ends every Drive. A nil error is ignored.
func (l *Link) Fail(err error) {
	if err != nil && l.err == nil {
		l.err = err
	}
}

// Err returns that failure, or nil.
func (l *Link) Err() error { return l.err }

// Drive returns when the condition holds, with the first failure of a handler, or with the transport's error.
func (l *Link) Drive(until func() bool) error {
	l.until = until
	if err := l.t.Drive(l.untilOrFailed); err != nil {
		return err
	}
	return l.err
}

// Hold keeps the link open until a matching Let, for example while a message is in flight.
func (l *Link) Hold() { l.open++ }

// Let ends a Hold.
func (l *Link) Let() { l.open-- }

// Idle returns whether no operation holds the link open, control messages included.
func (l *Link) Idle() bool { return l.open == 0 }

// Sent counts n bytes of training sent to a rank.
func (l *Link) Sent(to, n int) {
	l.Traffic.Sent += int64(n)
	if l.hosts[to] != l.hosts[l.me] {
		l.Traffic.Between += int64(n)
	}
}

// Whole returns whether a receive took all the n bytes that it was posted for, and fails the run if not.
func (l *Link) Whole(d comm.Done, n int, what string, args ...any) bool {
	switch {
	case d.Err != nil:
		l.Fail(fmt.Errorf("link: "+what+": %w", append(args, d.Err)...))
	case d.N != n:
		l.Fail(fmt.Errorf("link: "+what+": %d bytes of %d from rank %d", append(args, d.N, n, d.Peer)...))
	default:
		return true
	}
	return false
}

// clock is the time of a batch.
type clock struct {
	batches int // batches begun and not ended: a handler sends the effects of a record within the record's batch
	at      time.Duration
	read    bool // at was read in this batch
}

// Begin opens a batch; every Begin needs an End.
func (l *Link) Begin() { l.clock.batches++ }

// Clock returns the world's time: the same throughout a batch, from the first call on, except that Lap advances it.
func (l *Link) Clock() time.Duration {
	c := &l.clock
	if c.batches == 0 {
		return l.t.Now()
	}
	if !c.read {
		c.at, c.read = l.t.Now(), true
	}
	return c.at
}

// Lap returns the time since Clock was last read in this batch, and advances Clock.
func (l *Link) Lap() time.Duration {
	from := l.Clock()
	l.clock.at = l.t.Now()
	return l.clock.at - from
}

// End ends a batch. The outermost End sends its messages.
func (l *Link) End() {
	c := &l.clock
	if c.batches > 1 {
		c.batches--
		return
	}
	if l.BeforeSending != nil {
		l.BeforeSending()
	}
	l.frames.flush()
	if l.AfterSending != nil {
		l.AfterSending()
	}
	c.batches--
	c.read = false
}
