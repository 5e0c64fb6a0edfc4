// Package faulty wraps a Transport and injects faults: it holds messages back, so that those of different (destination,
// channel, tag) overtake each other, and a rank may fall silent or abort. The fate of a rank's i-th send is a function
// of the seed, the rank and i. Messages of one (destination, channel, tag) never overtake each other, as the contract
// promises.
package faulty

import (
	"fmt"
	"math/rand/v2"

	"fluentps/internal/comm"
)

// Options say which faults to inject; the zero value injects none.
type Options struct {
	Seed     uint64
	DelayMax int   // a send waits 0 to DelayMax batches of its rank's progress
	Drop     *Drop // nil: every rank lives
}

// Drop makes one rank fail.
type Drop struct {
	Rank      int
	AfterSend int // its first AfterSend sends go out
	Code      int // the next send aborts the world with this code; 0: further sends vanish, though they complete
}

// New wraps one rank. All ranks of a world should have the same Options.
func New(inner comm.Transport, o Options) comm.Transport {
	if o.DelayMax < 0 {
		panic(fmt.Sprintf("faulty: DelayMax is %d", o.DelayMax))
	}
	return &transport{Transport: inner, o: o, rng: rand.New(rand.NewPCG(o.Seed, uint64(inner.Rank())))}
}

// Wrap wraps all ranks of a world in one process.
func Wrap(world []comm.Transport, o Options) []comm.Transport {
	wrapped := make([]comm.Transport, len(world))
	for i, inner := range world {
		wrapped[i] = New(inner, o)
	}
	return wrapped
}

type transport struct {
	comm.Transport
	o   Options
	rng *rand.Rand

	sends   int    // submitted
	round   int    // batches since the start, counted while a send is held
	held    []send // in order of submission
	turning bool   // turn is posted and has not run
}

// send is a submission held back.
type send struct {
	op       comm.Op
	class    class
	buf      *comm.Buf // nil for an empty message
	off, n   int
	handler  comm.Handler
	dueRound int
}

// class is a stream of messages that must keep their order.
type class struct {
	to  comm.Peer
	ch  comm.Chan
	tag uint32
}

// ownOps distinguishes the operations of this package from the inner transport's receives.
const ownOps comm.Op = 1 << 63

func (t *transport) Isend(to comm.Peer, ch comm.Chan, tag uint32, b *comm.Buf, off, n int, h comm.Handler) comm.Op {
	comm.CheckSend(t.Size(), to, ch, tag, b, off, n)
	comm.Span(b, off, n)
	t.sends++
	op := ownOps | comm.Op(t.sends)
	delay := t.rng.IntN(t.o.DelayMax + 1)
	t.held = append(t.held, send{op, class{to, ch, tag}, b, off, n, h, t.round + delay})
	if d := t.o.Drop; d != nil && d.Rank == t.Rank() && d.Code != 0 && t.sends > d.AfterSend {
		t.Abort(d.Code)
	}
	t.postTurn()
	return op
}

// postTurn has turn called in the next batch; the Post also keeps Drive awake while a send is held.
func (t *transport) postTurn() {
	if len(t.held) > 0 && !t.turning {
		t.turning = true
		t.Post(t.turn)
	}
}

// turn releases the sends that are due and not behind a held send of their class.
func (t *transport) turn() {
	t.turning = false
	t.round++
	waiting := make(map[class]bool)
	list := t.held
	t.held = nil // handlers of vanished sends may submit
	var kept []send
	for _, s := range list {
		if waiting[s.class] || s.dueRound > t.round {
			waiting[s.class] = true
			kept = append(kept, s)
			continue
		}
		t.forward(s)
	}
	t.held = append(kept, t.held...)
	t.postTurn()
}

func (t *transport) forward(s send) {
	done := func(d comm.Done) {
		d.Op = s.op
		if s.handler != nil {
			s.handler(d)
		}
	}
	if s.buf != nil {
		defer s.buf.Release()
	}
	number := int(s.op &^ ownOps)
	if d := t.o.Drop; d != nil && d.Rank == t.Rank() && number > d.AfterSend {
		done(comm.Done{Peer: s.class.to, Tag: s.class.tag, N: s.n})
		return
	}
	t.Transport.Isend(s.class.to, s.class.ch, s.class.tag, s.buf, s.off, s.n, done)
}

// Cancel leaves sends alone, also those of this package.
func (t *transport) Cancel(op comm.Op) {
	if op&ownOps == 0 {
		t.Transport.Cancel(op)
	}
}

// Close refuses while sends are held, unless the world was aborted.
func (t *transport) Close() error {
	held := t.held
	if len(held) == 0 {
		return t.Transport.Close()
	}
	// Only an aborted world refuses to drive.
	if err := t.Drive(func() bool { return true }); err == nil {
		return fmt.Errorf("faulty: rank %d closes with %d sends held back, the first to rank %d, channel %d, tag %d: wait for sends",
			t.Rank(), len(held), held[0].class.to, held[0].class.ch, held[0].class.tag)
	}
	for _, s := range held {
		if s.buf != nil {
			s.buf.Release()
		}
	}
	t.held = nil
	return t.Transport.Close()
}
