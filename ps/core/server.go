package core

import (
	"fmt"
	"slices"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
	"fluentps/ps/send"
	"fluentps/ps/shard"
)

// ServerConfig is all that a Server is made from.
type ServerConfig struct {
	Me            int32
	Plan          *shard.Plan
	Workers       int
	Schemes       map[int32]ShardScheme          // by shard ID, for every shard of this server
	Budget        Budget                         // looked at only by the server of shard 0
	SnapshotEvery int64                          // samples committed between two snapshots of a shard; 0: none
	Decided       Decided                        // may be nil
	Send          send.Policy                    // orders the pieces of replies; nil: a reply leaves whole
	Acks          bool                           // every push that has landed is acknowledged: its worker works in rounds
	Near          func(shard, worker int32) bool // they share memory, for that shard (near.go); nil: none do
	Saves         bool                           // versions are saved or held while training goes on, one at a time: there is one more buffer
	Parts         int                            // that an iteration comes in, at most; 0 and 1: it is one push of its worker (parts.go)
	Together      bool                           // some shard of the run closes iterations as a whole: all workers pause at the same one
}

// Decided is told each event that a scheme of this server was told, and what it decided; the slice is reused. What a
// scheme decides follows from its events alone, so a record of them replays it.
type Decided func(ev scheme.Event, decisions []scheme.Decision)

// Server owns the shards of one server rank. Each shard decides alone.
type Server struct {
	me       int32
	plan     *shard.Plan
	workers  int
	budget   Budget
	every    int64
	shards   []*ownShard // by ID; nil where another server owns it
	order    []int32     // the IDs of this server's, ascending
	left     []bool
	here     int                   // workers that have not left
	leaving  map[int32]wire.Header // Left of a worker some of whose pushes have not landed
	life     []int64               // of each worker: how often it came back
	ended    int64                 // lives of workers that have ended, all together
	hearings map[int32]*hearing    // by leading shard
	own      []own                 // announcements of this step
	saveInto int64                 // the pushes of this iteration are marked, -1: of none
	furthest int64                 // the largest iteration that a worker begins with; 0 where none goes on from a checkpoint
	done     bool
	halt
	now      time.Duration     // At of the input being stepped
	pend     []scheme.Decision // scratch
	decided  Decided
	policy   send.Policy // of replies, nil: they leave whole
	let      []int32     // scratch for it
	acks     bool
	together bool
}

// NewServer makes server c.Me. Every shard of it needs a scheme.
func NewServer(c ServerConfig) *Server {
	s := &Server{
		me: c.Me, plan: c.Plan, workers: c.Workers, budget: c.Budget, every: c.SnapshotEvery,
		shards: make([]*ownShard, len(c.Plan.Shards)), hearings: map[int32]*hearing{}, order: c.Plan.OfServer(c.Me), left: make([]bool, c.Workers), life: make([]int64, c.Workers), here: c.Workers, saveInto: -1, leaving: map[int32]wire.Header{},
		decided: c.Decided, policy: c.Send, acks: c.Acks, together: c.Together,
	}
	for _, id := range s.order {
		s.shards[id] = newOwnShard(id, len(c.Plan.Shards[id].Pieces), c.Workers, Buffers(c.Workers, c.Saves), c.Schemes[id])
		s.shards[id].makeParts(c.Parts, c.Workers)
	}
	s.makeAccords(c.Schemes)
	s.makeUnsent()
	s.makeNear(c.Near)
	if c.Parts > 1 && slices.ContainsFunc(s.order, func(id int32) bool {
		return c.Schemes[id].Norms || c.Schemes[id].Shared || slices.Contains(s.shards[id].near, true)
	}) {
		panic(fmt.Sprintf("core: server %d: iterations in parts, and pushes in shared memory, with norms or with grants", c.Me))
	}
	return s
}

// Step advances the server by one input.
func (s *Server) Step(in Input, out []Effect) []Effect {
	s.now = in.At
	return s.maybeDone(s.settle(s.step(in, out)))
}

func (s *Server) step(in Input, out []Effect) []Effect {
	switch in.Kind {
	case Arrived:
		return s.arrived(in, out)
	case PieceLanded:
		sh := s.shards[in.Shard]
		p := sh.landing[in.Worker]
		s.must(p != nil && p.slot == in.Slot, in)
		if p.missing--; p.missing > 0 {
			return out
		}
		sh.landing[in.Worker] = nil
		m := p.head
		if isPart(&m) {
			out = s.partLanded(sh, p, in, out)
		} else {
			out = s.landed(sh, p, in, out)
		}
		if s.acks || m.Owner != m.Worker {
			out = append(out, acknowledge(&m))
		}
		return out
	case ReplySent:
		sh := s.shards[in.Shard]
		return s.replySent(sh, in, out)
	case ReplyPieceSent:
		return s.pieceSent(in, out)
	case Alarm:
		return s.decide(s.shards[in.Shard], scheme.Event{Kind: scheme.Alarm, Shard: in.Shard}, out)
	case SaveSoon:
		s.saveSoon()
		return out
	case Written:
		s.written(in)
		return out
	case StopNow:
		s.stopped()
		return out
	case PauseNow:
		s.paused()
		return out
	default:
		panic(fmt.Sprintf("core: server %d: no such input: %v", s.me, in))
	}
}

func (s *Server) arrived(in Input, out []Effect) []Effect {
	m := in.Msg
	s.must(m.Worker >= 0 && int(m.Worker) < s.workers, in)
	switch m.Kind {
	case wire.Push:
		sh := s.shards[m.Shard]
		return s.offered(sh, m, s.wasRead(sh, m, out))
	case wire.Pull:
		sh := s.shards[m.Shard]
		s.must(!sh.asked[m.Worker], in)
		sh.asked[m.Worker], sh.wants[m.Worker] = true, m.Iter
		return s.wanted(sh, m.Worker, out)
	case wire.PushReady:
		return s.pushReady(in, out)
	case wire.Taken:
		sh := s.shards[m.Shard]
		return s.taken(sh, m.Worker, s.wasRead(sh, m, out))
	case wire.Left:
		return s.ends(m, out)
	case wire.Joined:
		return s.join(m.Worker, m.Clock, m.Iter, out)
	case wire.Closed:
		return s.hear(m, out)
	default:
		panic(fmt.Sprintf("core: server %d: %v is not for a server", s.me, in))
	}
}

// offered takes the header of a push. A push that this shard has, or that is on its way, is acknowledged and
// ignored: exactly once.
func (s *Server) offered(sh *ownShard, m wire.Header, out []Effect) []Effect {
	p := sh.landing[m.Worker]
	if isPart(&m) && sh.parts == nil {
		panic(fmt.Sprintf("core: server %d: %s, and iterations are one push of their worker here", s.me, Describe(m)))
	}
	if s.left[m.Worker] || s.known(sh, &m) {
		sh.stats.Duplicates++
		if s.acks || m.Owner != m.Worker && sh.isLanding(&m) {
			return out // the push itself is acknowledged, when it has landed
		}
		return append(out, acknowledge(&m))
	}
	if p != nil && sh.early != nil {
		sh.early[m.Worker] = append(sh.early[m.Worker], m)
		return out
	}
	if p != nil {
		panic(fmt.Sprintf("core: server %d: %s while the push of iteration %d is on its way", s.me, Describe(m), p.head.Iter))
	}
	slot := sh.takeSlot()
	sh.landing[m.Worker] = sh.record(pushed{head: m, slot: slot, missing: sh.pieces, own: !sh.lent(m.Worker)})
	out = append(out, Effect{Kind: Stage, To: m.Worker, Shard: sh.id, Slot: slot, Iter: m.Iter, Samples: m.Samples})
	if m.Iter < sh.clock[m.Owner] || m.Iter >= sh.cut.at || isPart(&m) {
		return out // of another scheme than the current one, or a part: the scheme hears of what is whole
	}
	return s.decide(sh, event(scheme.Offered, m), out)
}

// acknowledge says that a push needs not come again.
func acknowledge(m *wire.Header) Effect {
	return Effect{Kind: Send, To: m.Worker, Msg: wire.Header{Kind: wire.Ack, Worker: m.Worker, Owner: m.Owner, Shard: m.Shard, Iter: m.Iter, Part: m.Part}}
}

// isLanding says whether a push is on its way.
func (sh *ownShard) isLanding(m *wire.Header) bool {
	p := sh.landing[m.Worker]
	return p != nil && p.head.Iter == m.Iter && p.head.Owner == m.Owner && p.head.Part == m.Part
}

// known says whether a shard has a push, or it is on its way.
func (s *Server) known(sh *ownShard, m *wire.Header) bool {
	if sh.isLanding(m) {
		return true
	}
	if isPart(m) {
		return sh.hasPart(m)
	}
	return m.Iter < sh.reached[m.Worker]
}

func event(k scheme.EventKind, m wire.Header) scheme.Event {
	return scheme.Event{Kind: k, Worker: m.Worker, Shard: m.Shard, Part: m.Part, Parts: m.Parts, Owner: m.Owner, Iter: m.Iter, Seen: m.Version, Samples: m.Samples}
}

func (s *Server) landed(sh *ownShard, p *pushed, in Input, out []Effect) []Effect {
	w := p.head.Worker
	sh.stats.Pushes++
	sh.stats.Skipped += p.head.Iter - sh.reached[w]
	sh.reached[w] = p.head.Iter + 1
	if p.head.Iter < sh.clock[w] { // closed without it when the scheme changed
		sh.freeSlot(p.slot)
		sh.stats.drop(scheme.Late)
		return s.caughtUp(sh, w, s.wanted(sh, w, out))
	}
	sh.stage(p)
	sh.count(p.head.Samples)
	sh.setClock(w, p.head.Iter+1)
	p.norm2, p.normInf, p.normW = in.Norm2, in.NormInf, in.NormW
	out = s.change(sh, s.tell(sh, p, out))
	return s.caughtUp(sh, w, s.wanted(sh, w, out))
}

// wanted hands a pull to the scheme once the push before it has landed: a small pull can overtake bulk data
// (the law "order at the gate").
func (s *Server) wanted(sh *ownShard, w int32, out []Effect) []Effect {
	if !sh.asked[w] || sh.landing[w] != nil || s.left[w] || sh.wants[w] > sh.reached[w] {
		return out
	}
	sh.asked[w] = false
	sh.stats.Pulls++
	if sh.wants[w] >= sh.cut.at {
		sh.stats.Delayed++
		sh.since[w] = s.now
		sh.cut.pulls = append(sh.cut.pulls, w)
		return out
	}
	out = s.ask(sh, w, out)
	if sh.waits[w] {
		sh.stats.Delayed++
		sh.since[w] = s.now
	}
	return out
}

// ask tells the scheme of a pull.
func (s *Server) ask(sh *ownShard, w int32, out []Effect) []Effect {
	sh.waits[w] = true
	return s.decide(sh, scheme.Event{Kind: scheme.Wanted, Worker: w, Shard: sh.id, Iter: sh.wants[w]}, out)
}

// decide tells the scheme, and obeys.
func (s *Server) decide(sh *ownShard, ev scheme.Event, out []Effect) []Effect {
	ev.At = s.now
	s.pend = sh.scheme.Step(ev, s.pend[:0])
	if s.decided != nil {
		s.decided(ev, s.pend)
	}
	for _, d := range s.pend {
		if d.Shard != sh.id {
			sh = s.shards[d.Shard]
		}
		switch d.Kind {
		case scheme.Fold:
			out = s.fold(sh, d, out)
		case scheme.Drop:
			s.dropped(sh, d, d.Reason)
		case scheme.Commit:
			out = s.commit(sh, d, out)
		case scheme.Reply:
			out = s.reply(sh, d, out)
		case scheme.Publish:
			out = s.publish(sh, d.Worker, out)
		case scheme.Close:
			out = s.closed(sh, d.Iter, out)
		default:
			out = s.schedule(d, out)
		}
		s.stopWhenSpent(sh)
	}
	return out
}

func (s *Server) reply(sh *ownShard, d scheme.Decision, out []Effect) []Effect {
	w := d.Worker
	sh.waits[w] = false
	if sh.since[w] > 0 {
		sh.stats.DelayedFor += s.now - sh.since[w]
		sh.since[w] = 0
	}
	if sh.sending[w] >= 0 { // its last reply has arrived, only the transport has not said so yet
		sh.held[w] = d.Iter
		return out
	}
	return s.send(sh, w, d.Iter, out)
}

func (s *Server) send(sh *ownShard, w int32, iter int64, out []Effect) []Effect {
	m := wire.Header{Kind: wire.Reply, Worker: w, Shard: sh.id, Iter: iter, Version: sh.version, Clock: sh.minClock(iter)}
	if sh.feeds != nil {
		sh.feeds[w].due = false // this is the newest there is
		sh.feeds[w].last = sh.feeds[w].last || s.asks(sh)
	}
	return s.ship(sh, m, iter, s.takeOver(sh, w, out))
}

// ship sends the current version, with which its worker may start an iteration up to into.
func (s *Server) ship(sh *ownShard, m wire.Header, into int64, out []Effect) []Effect {
	s.stopWhenSpent(sh)
	if s.asks(sh) {
		m.Flags |= wire.Ask
	}
	if sh.id == 0 && s.stop && into >= s.stopAt {
		m.Flags |= wire.Stop
	} else if sh.id == 0 {
		sh.letInto = max(sh.letInto, into)
	}
	if sh.id == 0 && into == s.saveInto {
		m.Flags |= wire.Save
	}
	sh.sending[m.Worker] = sh.cur
	sh.refs[sh.cur]++
	if sh.isNear(m.Worker) {
		m.Part = sh.cur
		sh.reads[m.Worker] = reading{m.Kind, m.Iter}
		return append(out, Effect{Kind: Reply, To: m.Worker, Shard: sh.id, Src: sh.cur, Msg: m, Near: true})
	}
	out = append(out, Effect{Kind: Reply, To: m.Worker, Shard: sh.id, Src: sh.cur, Msg: m, Apart: s.policy != nil})
	return s.handOut(sh, m.Worker, m.Kind, out)
}

func (s *Server) replySent(sh *ownShard, in Input, out []Effect) []Effect {
	s.must(sh.sending[in.Worker] == in.Buf && sh.refs[in.Buf] > 0, in)
	sh.sending[in.Worker] = -1
	sh.refs[in.Buf]--
	if iter := sh.held[in.Worker]; iter >= 0 {
		sh.held[in.Worker] = -1
		out = s.send(sh, in.Worker, max(iter, sh.closed), out) // v may have gone past it without this worker
	}
	out = s.publishDue(sh, in.Worker, out)
	return s.sent(sh, in.Worker, out)
}

func (s *Server) maybeDone(out []Effect) []Effect {
	if s.done || s.here > 0 {
		return out
	}
	for _, id := range s.order {
		if !s.over(s.shards[id]) {
			return out
		}
		for _, buf := range s.shards[id].sending {
			if buf >= 0 {
				return out
			}
		}
	}
	s.done = true
	return append(out, Effect{Kind: Done})
}

// must panics on an input that no driver may send in this state: it is a bug of ours.
func (s *Server) must(ok bool, in Input) {
	if !ok {
		panic(fmt.Sprintf("core: server %d: %v must not come in state %v", s.me, in, s))
	}
}
