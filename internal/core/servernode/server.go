// Package servernode holds the node of a server rank: what it makes of the pushes and pulls of its shards, as their schemes decide, as a
// pure state machine.
//
// Each shard decides alone (ownshard.go, and peer.go for what it knows of one worker). A push is staged in a slot, and folded into the
// pending sums; a commit makes a version, whose buffer no commit touches while a reply leaves from it (versions.go). Beside that, a shard
// may change its scheme at a clock, or when a straggler shows (change.go), agree with other shards on contributors (agree.go), and on the
// norm of what these have pushed (clip.go), publish
// versions without a pull (publish.go), add up the parts of an iteration (parts.go), and grant pushes (grants.go). Workers leave and come
// back in member.go; runs stop, pause and resume in stop.go and resume.go.
package servernode

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/send"
	"fluentps/ps/scheme"
)

// Config is everything that a Server is made from.
type Config struct {
	Me            int32
	Plan          *shard.Plan
	Workers       int
	Schemes       map[int32]inturn.ShardScheme   // by shard ID, for every shard of this server
	Budget        Budget                         // read only by the server of shard 0
	SnapshotEvery int64                          // samples committed between two snapshots of a shard; 0: none
	Decided       Decided                        // may be nil
	Send          send.Policy                    // orders the pieces of replies; nil: a reply leaves whole
	Acks          bool                           // every push that has landed is acknowledged: its worker works in rounds
	Near          func(shard, worker int32) bool // shard and worker share memory for that shard (near.go); nil: none do
	// Versions are saved or held while training runs, one at a time: each shard has one more buffer.
	Saves bool
	// The largest number of parts of an iteration. 0 and 1: an iteration is one push of its worker (parts.go).
	Parts int
	// Some shard of the run closes iterations as a whole: a pause stops all workers at the same iteration.
	Together bool
	Locally  *Locally // nil: every step of a worker is an exchange
	// what the schemes of some rules wait for, in turn; nil: none waits. Read only by the server of shard 0, as SkipsAhead is
	Awaits []scheme.Await
	// Per turn: no scheme of the run bounds the lead, so workers skip to the iteration that announces a change.
	SkipsAhead []bool
	Ahead      *core.Ahead // nil: workers pull when they have pushed
	Clip       optim.Clip  // of the mean: all trained shards must agree on contributors
}

// Decided receives each event that a scheme of this server was told, and what the scheme decided. The slice is reused.
// A scheme's decisions follow from its events alone, so a record of its events replays them.
type Decided func(ev scheme.Event, decisions []scheme.Decision)

// Server owns the shards of one server rank. Each shard decides alone.
type Server struct {
	me            int32
	plan          *shard.Plan
	workers       int
	budget        Budget
	snapshotEvery int64
	decided       Decided
	policy        send.Policy // of replies; nil: replies leave whole
	acks          bool
	together      bool
	locally       *Locally // nil: every step of a worker is an exchange

	shards           []*ownShard // by ID; nil where another server owns it
	owned            []int32     // the IDs of this server's shards, ascending
	members          members
	inboxes          map[int32]*inbox  // by leading shard
	ownAnnouncements []ownAnnouncement // announcements of this step that shards of this server follow
	saveIter         int64             // pushes of this iteration carry the Save flag; -1: of none
	watch            watch             // for stragglers; idle except on the server of shard 0
	halt             halt
	ballot           ballot
	atCut            []wire.Header // questions to workers that wait at a cut of this server, asked in this step
	ahead            *aheadState   // nil: workers pull when they have pushed
	clip             *clipping     // nil: means are not clipped

	now       time.Duration     // At of the input being stepped
	decisions []scheme.Decision // scratch
	released  []int32           // scratch: what the policy releases in one step
}

// New makes server c.Me. Each of its shards needs a scheme.
func New(c Config) *Server {
	if c.Ahead != nil {
		c.Parts = max(c.Parts, 2) // a worker may push for others
	}
	s := &Server{
		me: c.Me, plan: c.Plan, workers: c.Workers, budget: c.Budget, snapshotEvery: c.SnapshotEvery,
		decided: c.Decided, policy: c.Send, acks: c.Acks, together: c.Together, locally: c.Locally,
		shards: make([]*ownShard, len(c.Plan.Shards)), owned: c.Plan.OfServer(c.Me), members: newMembers(c.Workers),
		inboxes: map[int32]*inbox{}, saveIter: -1, watch: newWatch(c.Awaits, c.SkipsAhead, c.Workers),
	}
	for _, id := range s.owned {
		s.shards[id] = newOwnShard(id, len(c.Plan.Shards[id].Pieces), c.Workers, Buffers(c.Workers, c.Saves), c.Schemes[id])
		s.shards[id].makeParts(c.Parts)
	}
	s.makeAgreements(c.Schemes)
	s.makeUnsent()
	s.makeNear(c.Near)
	s.makeTally()
	s.makeAhead(c.Ahead)
	s.clip = newClipping(c.Clip, c.Plan, c.Me)
	if c.Parts > 1 && slices.ContainsFunc(s.owned, func(id int32) bool {
		return c.Schemes[id].Norms || c.Schemes[id].Shared || slices.ContainsFunc(s.shards[id].peers, func(k peer) bool { return k.near })
	}) {
		panic(fmt.Sprintf("core: server %d: iterations in parts do not go with shared memory, norms or grants", c.Me))
	}
	return s
}

// Step advances the server by one input.
func (s *Server) Step(in core.Input, out []core.Effect) []core.Effect {
	s.now = in.At
	if in.Kind == core.Normed || in.Kind == core.Arrived && in.Msg.Kind == wire.Normed {
		return s.finishIfDone(s.normed(in, out))
	}
	earlier := len(out)
	out = s.step(in, out)
	out = s.answerAtCuts(out)
	out = s.deliverOwn(out)
	out = s.answerAhead(out)
	out = s.holdBack(earlier, s.noteChanged(out))
	return s.finishIfDone(out)
}

func (s *Server) step(in core.Input, out []core.Effect) []core.Effect {
	switch in.Kind {
	case core.Arrived:
		return s.arrived(in, out)
	case core.PieceLanded:
		sh := s.shards[in.Shard]
		k := &sh.peers[in.Worker]
		p := k.landing
		s.must(p != nil && p.slot == in.Slot, in)
		if p.missing--; p.missing > 0 {
			return out
		}
		k.landing = nil
		m := p.head
		if !s.isApart() && (isPart(&m) || sh.hasParts && sh.hasPart(&m)) {
			out = s.partLanded(sh, p, in, out)
		} else {
			out = s.pushLanded(sh, p, in, out)
		}
		if s.acks || m.Owner != m.Worker {
			out = append(out, acknowledge(&m))
		}
		return out
	case core.ReplySent:
		sh := s.shards[in.Shard]
		return s.replySent(sh, in, out)
	case core.ReplyPieceSent:
		return s.pieceSent(in, out)
	case core.Alarm:
		return s.alarm(in, out)
	case core.SaveSoon:
		s.saveSoon()
		return out
	case core.Written:
		s.written(in)
		return out
	case core.StopNow:
		s.stopWorkers()
		return out
	case core.PauseNow:
		s.pauseWorkers()
		return out
	default:
		panic(fmt.Sprintf("core: server %d: unknown input: %v", s.me, in))
	}
}

func (s *Server) arrived(in core.Input, out []core.Effect) []core.Effect {
	m := in.Msg
	s.must(m.Worker >= 0 && int(m.Worker) < s.workers, in)
	switch m.Kind {
	case wire.Push:
		sh := s.shards[m.Shard]
		return s.receivePush(sh, m, s.noteRead(sh, m, out))
	case wire.Pull:
		sh := s.shards[m.Shard]
		s.must(!sh.peers[m.Worker].pullPending, in)
		sh.peers[m.Worker].ask(m.Iter)
		s.pullArrives(&m)
		return s.tryPull(sh, m.Worker, out)
	case wire.PushReady:
		return s.tellReady(in, out)
	case wire.Taken:
		sh := s.shards[m.Shard]
		return s.versionTaken(sh, m.Worker, s.noteRead(sh, m, out))
	case wire.Left:
		return s.workerLeft(m, out)
	case wire.Joined:
		return s.workerJoined(m.Worker, m.Clock, m.Iter, out)
	case wire.Vote:
		return s.receiveVote(m, out)
	case wire.Waits:
		return s.tellElsewhere(&m, out)
	case wire.Closed:
		return s.receiveClosed(m, out)
	default:
		panic(fmt.Sprintf("core: server %d: %v is not for a server", s.me, in))
	}
}

// receivePush handles the header of a push. A push that the shard already has, or that is in flight, is acknowledged
// and ignored, so that each push counts exactly once.
func (s *Server) receivePush(sh *ownShard, m wire.Header, out []core.Effect) []core.Effect {
	k := &sh.peers[m.Worker]
	if isPart(&m) && !sh.hasParts {
		panic(fmt.Sprintf("core: server %d: %s is a part, and iterations have no parts here", s.me, core.Describe(m)))
	}
	if s.members.left[m.Worker] || s.hasPush(sh, &m) {
		sh.stats.Duplicates++
		if s.acks || m.Owner != m.Worker && k.isLanding(&m) {
			return out // the push itself is acknowledged when it has landed
		}
		return append(out, acknowledge(&m))
	}
	if k.landing != nil && sh.queuesPushes() {
		k.queued = append(k.queued, m)
		return out
	}
	if k.landing != nil {
		panic(fmt.Sprintf("core: server %d: %s arrived while the push of iteration %d is in flight", s.me, core.Describe(m), k.landing.head.Iter))
	}
	s.watchPush(sh, &m)
	sh.noteOffered(&m)
	slot := sh.takeSlot()
	k.landing = sh.slots.record(pushed{head: m, slot: slot, missing: sh.pieces, onServer: !sh.pushIsReadInPlace(m.Worker)})
	out = append(out, core.Effect{Kind: core.Stage, To: m.Worker, Shard: sh.id, Slot: slot, Iter: m.Iter, Samples: m.Samples})
	if m.Iter < sh.peers[m.Owner].clock || m.Iter >= sh.cut.at || isPart(&m) {
		return out // the push belongs to another scheme than the current one, or is a part: a scheme hears of whole pushes only
	}
	return s.decide(sh, schemeEvent(scheme.Offered, m), out)
}

// hasPush says whether a shard has a push, landed or in flight.
func (s *Server) hasPush(sh *ownShard, m *wire.Header) bool {
	if sh.peers[m.Worker].isLanding(m) {
		return true
	}
	if sh.hasParts {
		return sh.isRepeated(m)
	}
	return m.Iter < sh.peers[m.Worker].reached
}

func schemeEvent(k scheme.EventKind, m wire.Header) scheme.Event {
	return scheme.Event{Kind: k, Worker: m.Worker, Shard: m.Shard, Part: m.Part, Parts: m.Parts, Owner: m.Owner,
		Iter: m.Iter, Seen: m.Version, Samples: m.Samples}
}

func (s *Server) pushLanded(sh *ownShard, p *pushed, in core.Input, out []core.Effect) []core.Effect {
	w := p.head.Worker
	k := &sh.peers[w]
	sh.stats.Pushes++
	sh.stats.Skipped += p.head.Iter - k.reached
	clock := p.head.Iter
	if p.head.Part == p.head.Parts-1 {
		clock++ // else more of the iteration follows
	}
	k.reached = clock
	if p.head.Iter < k.clock { // its iteration was closed without it when the scheme changed
		sh.slots.freeSlot(p.slot)
		sh.stats.drop(scheme.Late)
		return s.handleDeferred(sh, w, s.tryPull(sh, w, out))
	}
	sh.stage(p)
	sh.count(p.head.Samples)
	sh.tally.landed(&p.head, int64(s.now))
	sh.setClock(w, clock)
	out = s.noteChanged(out) // before the version that a checkpoint may save
	p.norm2, p.normInf, p.normW = in.Norm2, in.NormInf, in.NormW
	out = s.changeScheme(sh, s.tellPushed(sh, p, out))
	return s.handleDeferred(sh, w, s.tryPull(sh, w, out))
}

// tryPull hands a pull to the scheme once the worker's push before it has landed (the law "order at the gate"): a small
// pull can overtake bulk data.
func (s *Server) tryPull(sh *ownShard, w int32, out []core.Effect) []core.Effect {
	if s.ahead != nil {
		return s.tryAhead(sh, w, out)
	}
	k := &sh.peers[w]
	if !k.pullPending || k.landing != nil || s.members.left[w] || k.pullIter > k.reached {
		return out
	}
	k.pullPending = false
	sh.stats.Pulls++
	if k.pullIter >= sh.cut.at {
		sh.stats.Delayed++
		k.heldSince = s.now
		sh.cut.pulls = append(sh.cut.pulls, w)
		return out
	}
	out = s.tellWanted(sh, w, out)
	if k.pullHeld {
		sh.stats.Delayed++
		k.heldSince = s.now
	}
	return out
}

// tellWanted tells the scheme of a pull.
func (s *Server) tellWanted(sh *ownShard, w int32, out []core.Effect) []core.Effect {
	sh.peers[w].tell()
	return s.decide(sh, scheme.Event{Kind: scheme.Wanted, Worker: w, Shard: sh.id, Iter: sh.peers[w].pullIter}, out)
}

// decide tells the scheme of an event and obeys its decisions.
func (s *Server) decide(sh *ownShard, ev scheme.Event, out []core.Effect) []core.Effect {
	ev.At = s.now
	s.decisions = sh.scheme.Step(ev, s.decisions[:0])
	if s.decided != nil {
		s.decided(ev, s.decisions)
	}
	for _, d := range s.decisions {
		if d.Shard != sh.id {
			sh = s.shards[d.Shard]
		}
		switch d.Kind {
		case scheme.Fold:
			out = s.fold(sh, d, out)
		case scheme.Drop:
			s.drop(sh, d, d.Reason)
		case scheme.Commit:
			out = s.commit(sh, d, out)
		case scheme.Reply:
			out = s.reply(sh, d, out)
		case scheme.Publish:
			out = s.publish(sh, d.Worker, out)
		case scheme.Close:
			out = s.closeIteration(sh, d.Iter, out)
		default:
			out = s.obeyLink(d, out)
		}
		s.stopWhenSpent(sh)
	}
	return out
}

// must panics on an input that no driver may give in this state. Such an input is our own bug.
func (s *Server) must(ok bool, in core.Input) {
	if !ok {
		panic(fmt.Sprintf("core: server %d: input %v is not allowed in state %v", s.me, in, s))
	}
}
