// Package link is one rank's end of the messages between ranks: control messages whose records go to the handlers of their
// kinds, bulk messages behind them, values that all ranks gather, spread and agree on, and the traffic that is counted. It
// knows no feature: who has something to say or to hear registers a handler.
package link

import (
	"fmt"
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
)

// Handler acts on a record of a control message. It never waits.
type Handler func(from int, m *wire.Record)

// Traffic counts bytes of training.
type Traffic struct {
	Sent     int64
	Between  int64 // of these, to other hosts
	Received int64
	Shared   int64 // read in the memory of others, in place of receiving it
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
	// BeforeSending and AfterSending are called when a batch is over: before what it has to say leaves, and behind it.
	BeforeSending, AfterSending func()

	// Traffic is counted by those who send and receive bulk, too.
	Traffic Traffic
	open    int         // operations and files that somebody holds the link open for
	until   func() bool // what Drive waits for
	holds   func() bool // that, or a failure: made once
	err     error       // the first failure inside a handler; ends every Drive
}

// Options are how a link sends.
type Options struct {
	Apart bool // every header begins a message of its own, as with PS-Lite
}

// New makes the link of a rank. Nothing is received before Open.
func New(t comm.Transport, o Options) *Link {
	l := &Link{t: t, me: t.Rank()}
	l.holds = func() bool { return l.err != nil || l.until() }
	l.frames = frames{l: l, open: make([]*frame, t.Size()), apart: o.Apart}
	return l
}

// Handle has records of a kind go to h. A second handler for a kind is the caller's bug and panics.
func (l *Link) Handle(kind wire.Kind, h Handler) {
	if l.handlers[kind] != nil {
		panic(fmt.Sprintf("link: a second handler for %v", kind))
	}
	l.handlers[kind] = h
}

// HandleHeader is Handle for who wants to know nothing but the header.
func (l *Link) HandleHeader(kind wire.Kind, h func(h *wire.Header)) {
	l.Handle(kind, func(_ int, m *wire.Record) { h(&m.Header) })
}

// Fail keeps the first failure that a handler met.
func (l *Link) Fail(err error) {
	if err != nil && l.err == nil {
		l.err = err
	}
}

// Err is that failure, nil if there was none.
func (l *Link) Err() error { return l.err }

// Drive waits for a condition, a failure, or the end of the world.
func (l *Link) Drive(until func() bool) error {
	l.until = until
	if err := l.t.Drive(l.holds); err != nil {
		return err
	}
	return l.err
}

// Hold keeps the link open until Let is called as often: somebody's message is on its way.
func (l *Link) Hold() { l.open++ }

// Let ends a Hold.
func (l *Link) Let() { l.open-- }

// Idle says that nothing is on its way that holds the link open, control messages included.
func (l *Link) Idle() bool { return l.open == 0 }

// Sent counts n bytes of training that went to a rank.
func (l *Link) Sent(to, n int) {
	l.Traffic.Sent += int64(n)
	if l.hosts[to] != l.hosts[l.me] {
		l.Traffic.Between += int64(n)
	}
}

// Whole says whether a receive took all the bytes that it was posted for, and fails the run if not.
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
	batches int // begun and not ended: effects are obeyed inside the input that led to them
	at      time.Duration
	read    bool // at is of this batch
}

// Begin opens a batch; every Begin has its End.
func (l *Link) Begin() { l.clock.batches++ }

// Clock is the time on the world's clock: what it was when this batch first asked, or a lap ended.
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

// Lap is the time since Clock was last looked at in this batch.
func (l *Link) Lap() time.Duration {
	from := l.Clock()
	l.clock.at = l.t.Now()
	return l.clock.at - from
}

// End sends what the batch has to say, if it is not inside another.
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
