package sim

import (
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/servernode"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/timeline"
	"fluentps/ps/scheme"
)

// server is one server. It does one thing at a time, in the order of arrival.
type server struct {
	node *servernode.Server
	rank int
	host int

	busy    bool
	waiting backlog[event]    // events that arrived while it was busy
	later   backlog[outgoing] // sends that follow its current work
	spans   metrics.Spans
	done    bool
	lives   []uint16 // per worker: the life that the server knows

	timeline *timeline.Server
}

// outgoing is a message that a server sends, or a piece of a reply. The parameters in buffer src follow a reply, unless its pieces
// leave one by one.
type outgoing struct {
	to, src int32
	piece   int32 // -1: the message head
	head    wire.Header
	server  bool // to is a server
	apart   bool // the pieces of the reply leave one by one
}

// backlog is a first-in, first-out queue that reuses its memory.
type backlog[T any] struct {
	all  []T
	head int
}

func (b *backlog[T]) push(v T) { b.all = append(b.all, v) }

func (b *backlog[T]) empty() bool { return b.head == len(b.all) }

func (b *backlog[T]) pop() T {
	v := b.all[b.head]
	if b.head++; b.head == len(b.all) {
		b.all, b.head = b.all[:0], 0
	} else if b.head > 4096 && 2*b.head > len(b.all) {
		b.all, b.head = b.all[:copy(b.all, b.all[b.head:])], 0
	}
	return v
}

// tally has the costs and counters of one shard.
type tally struct {
	unmeasured []unmeasured // per worker: its push in flight; nil unless the scheme needs norms
	fold       int64        // nanoseconds to fold one push
	commit     int64        // nanoseconds to make a version
	seen       []int64      // versions that the pushes folded since the last commit were computed on
	slots      []int32      // per worker: the slot that receives its push
	iters      []int64      // per worker: the iteration of that push; nil if workers pull before every iteration
	squares    float64      // of the pending sums, where means are clipped
	stale      metrics.Hist
	lead       metrics.Hist
}

// serve gives a server an event. A busy server handles it later.
func (s *Simulation) serve(ev event) {
	if ev.kind == evStop {
		ev.node = int32(len(s.workers)) // the server of the lead shard
	}
	m := &s.servers[int(ev.node)-len(s.workers)]
	switch ev.kind {
	case evEffect:
		for range ev.arg {
			s.send(m, m.later.pop())
		}
		return
	case evFree:
		m.busy = false
		for !m.busy && !m.waiting.empty() {
			s.handle(m, m.waiting.pop())
		}
		return
	}
	if m.busy {
		m.waiting.push(ev)
		return
	}
	s.handle(m, ev)
}

// handle turns an event into an input of the node.
func (s *Simulation) handle(m *server, ev event) {
	switch ev.kind {
	case evControl:
		msg := s.traffic.messages.take(ev.arg)
		head := msg.head
		if head.Kind == wire.Joined {
			m.lives[head.Worker] = msg.life
		}
		s.observer.ServerHears(m.node.Me(), head)
		s.stepServer(m, ev.node, core.Input{Kind: core.Arrived, Msg: head})
		if m.done && !m.node.Done() { // all workers had left, and one has rejoined
			m.done = false
			s.undone++
		}
	case evLanded, evAhead:
		if s.holdAhead(ev.arg) {
			return
		}
		t := s.traffic.transfers.take(ev.arg)
		s.observer.PushLanded(t.Shard, t.Worker)
		in := core.Input{Kind: core.PieceLanded, Piece: t.Piece, Shard: t.Shard, Worker: t.Worker, Slot: s.tallies[t.Shard].slots[t.Worker]}
		if s.values != nil {
			s.values.PushLanded(ev.arg, t, in.Slot)
		}
		s.measure(m, &in)
		s.stepServer(m, ev.node, in)
	case evSent:
		t := s.traffic.replies.take(ev.arg)
		if t.IsPiece {
			s.observer.ReplyPieceLeft(t.Shard, t.Worker)
			s.stepServer(m, ev.node, core.Input{Kind: core.ReplyPieceSent, Piece: t.Piece, Worker: t.Worker})
			return
		}
		s.observer.ReplyLeft(t.Shard, t.Buf)
		s.stepServer(m, ev.node, core.Input{Kind: core.ReplySent, Shard: t.Shard, Buf: t.Buf, Worker: t.Worker})
	case evDeath:
		msg := s.traffic.messages.take(ev.arg)
		s.dropAhead(m, msg.head.Worker)
		s.observer.ServerLoses(m.node.Me(), msg.head.Worker)
		s.stepServer(m, ev.node, core.Input{Kind: core.Arrived, Msg: msg.head})
	case evNormed:
		in := core.Input{Kind: core.Normed, Shard: ev.arg, Squares: s.tallies[ev.arg].squares}
		s.stepServer(m, ev.node, in)
	case evAlarm:
		s.stepServer(m, ev.node, core.Input{Kind: core.Alarm, Shard: ev.arg})
	case evStop:
		s.stepServer(m, ev.node, core.Input{Kind: core.StopNow})
	}
}

// stepServer steps a server and applies the effects. Folding and committing take time: later sends of the node and its next input
// wait for them.
func (s *Simulation) stepServer(m *server, id int32, in core.Input) {
	in.At = time.Duration(s.now)
	s.out = m.node.Step(in, s.out[:0])
	s.count(id, &in, m.node)
	m.timeline.Stepped(&in)
	var work int64
	held := int32(0) // sends that wait for work
	hold := func() {
		if held > 0 {
			s.q.after(s.now, work, evEffect, id, held)
			held = 0
		}
	}
	for i := range s.out {
		e := &s.out[i]
		t := &s.tallies[e.Shard]
		s.observer.ServerDid(e)
		if s.values != nil {
			s.values.ServerDid(e)
		}
		switch e.Kind {
		case core.Stage:
			s.staged(id, e)
		case core.Fold:
			hold()
			work += t.fold
			if e.From == scheme.SlotPush {
				m.timeline.FoldAt(e, in.At+time.Duration(work-t.fold), in.At+time.Duration(work))
				t.seen = append(t.seen, e.Msg.Version)
			}
		case core.Merge:
			hold()
			work += t.fold
		case core.Norm: // a pass over the sums, as a fold is
			hold()
			work += t.fold
			s.takeNorm(t, e, id, work)
		case core.Commit:
			hold()
			work += t.commit
			m.timeline.CommitAt(e, in.At+time.Duration(work-t.commit), in.At+time.Duration(work))
			for _, v := range t.seen {
				t.stale.Add(e.Iter - 1 - v)
			}
			t.seen = t.seen[:0]
		case core.Reply, core.Send, core.SendServer, core.ReplyPiece:
			o := s.outgoing(e, t)
			m.timeline.ReplyAt(e, in.At+time.Duration(work), in.At+time.Duration(work))
			if work == 0 {
				s.send(m, o)
				continue
			}
			m.later.push(o)
			held++
		case core.Changed:
			s.changes = append(s.changes, layout.Changes(s.cfg, s.plan, e)...)
		case core.WakeAt:
			s.q.after(s.now, max(0, int64(e.At)-s.now), evAlarm, id, e.Shard)
		case core.Done:
			m.done = true
			s.undone--
		}
	}
	hold()
	if work > 0 {
		m.busy = true
		m.spans.Add(metrics.Fold, time.Duration(work))
		s.q.after(s.now, work, evFree, id, 0)
	}
}

// takeNorm takes the squares of the pending sums of a shard; without values they are 0. The node hears of them after the work.
func (s *Simulation) takeNorm(t *tally, e *core.Effect, id int32, work int64) {
	if s.values != nil {
		t.squares = s.values.Squares(e.Shard, e.Weight)
	}
	s.q.after(s.now, work, evNormed, id, e.Shard)
}

// outgoing returns the message, or the piece of a reply, that an effect of a server sends.
func (s *Simulation) outgoing(e *core.Effect, t *tally) outgoing {
	o := outgoing{to: e.To, src: e.Src, piece: -1, head: e.Msg, server: e.Kind == core.SendServer, apart: e.Apart}
	switch {
	case e.Kind == core.ReplyPiece:
		o.piece = e.Piece
	case e.Kind == core.Reply && e.Msg.Kind != wire.Publish:
		t.lead.Add(e.Msg.Iter - e.Msg.Clock)
	}
	return o
}

// send sends a message of a server, and after a reply the parameters.
func (s *Simulation) send(m *server, o outgoing) {
	if o.server {
		s.control(int32(len(s.workers))+o.to, message{head: o.head}, m.host == s.servers[o.to].host)
		return
	}
	t := Transfer{Reply: true, Published: o.head.Kind == wire.Publish, Life: m.lives[o.to], Worker: o.to, Server: m.node.Me(), Buf: o.src}
	if o.piece >= 0 {
		p := &s.plan.Pieces[o.piece]
		t.IsPiece, t.Piece, t.Shard, t.Bytes = true, p.ID, p.Shard, p.ReplyBytes
		s.move(t)
		return
	}
	s.control(o.to, message{o.head, m.lives[o.to]}, m.host == s.workers[o.to].host)
	if k := o.head.Kind; !o.apart && (k == wire.Reply || k == wire.Publish) {
		sh := &s.plan.Shards[o.head.Shard]
		_, reply := sh.WireBytes()
		t.Shard, t.Bytes = sh.ID, reply
		s.move(t)
	}
}
