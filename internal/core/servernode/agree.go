package servernode

import (
	"slices"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

// The shards of a rule may agree on who contributes to an iteration (contributors: step). The first of them then leads.
// Its server announces to the others which iterations it has closed and with whose pushes. An announcement is one
// message for each 64 workers of whom any contributed, and at least one message. The announcements of a shard are
// numbered, and delivered in order. Their number is bounded: nobody starts an iteration before a shard has closed the
// previous one.

// LeadShard is the shard that decides for all shards of the same rule where they agree: the one with the lowest ID.
func LeadShard(p *shard.Plan, id int32) int32 {
	return int32(slices.IndexFunc(p.Shards, func(s shard.Shard) bool { return s.Rule == p.Shards[id].Rule }))
}

// agreement is a shard's role where shards agree on contributors. The zero value is a shard that does not take part.
type agreement struct {
	leads         bool
	followers     []int32 // leads: the servers of the other shards, ascending
	announcements int64   // leads: announcements so far
	contributors  []int32 // leads: the workers whose pushes were folded since the last announcement
	follows       bool
	// follows: announcements that the current scheme is not told, because they are past the change to the next scheme
	untold           []announcement
	leaderEndedLives int64 // follows: the lives that had ended at the leading server when nobody was in the run there
}

// announcement says that an iteration was closed and by whose pushes, or that nobody is in the run any more.
type announcement struct {
	iter         int64
	contributors []int32 // ascending
	allLeft      bool
	endedLives   int64 // with allLeft: lives of workers that had ended
}

// inbox assembles the announcements of one leading shard, on a server with shards that follow it.
type inbox struct {
	followers  []int32                        // the shards that follow, ascending
	next       int64                          // number of the next announcement to deliver
	incomplete map[int64]*partialAnnouncement // by number: announcements that were not delivered yet
}

type partialAnnouncement struct {
	announcement
	missing int32 // messages that have not arrived
}

// makeAgreements finds the role of each shard of this server.
func (s *Server) makeAgreements(schemes map[int32]inturn.ShardScheme) {
	for _, id := range s.owned {
		if !schemes[id].Accord {
			continue
		}
		a := &s.shards[id].agreement
		lead := LeadShard(s.plan, id)
		if a.follows = lead != id; a.follows {
			if s.inboxes[lead] == nil {
				s.inboxes[lead] = &inbox{incomplete: map[int64]*partialAnnouncement{}}
			}
			s.inboxes[lead].followers = append(s.inboxes[lead].followers, id)
			continue
		}
		a.leads = true
		for i := range s.plan.Shards {
			other := &s.plan.Shards[i]
			if LeadShard(s.plan, other.ID) == id && other.Server != s.me && !slices.Contains(a.followers, other.Server) {
				a.followers = append(a.followers, other.Server)
			}
		}
		slices.Sort(a.followers)
	}
}

// closeIteration obeys Close: v of the shard becomes iter+1, and where the shard leads the others are told.
func (s *Server) closeIteration(sh *ownShard, iter int64, out []core.Effect) []core.Effect {
	sh.closed = max(sh.closed, iter+1)
	out = append(out, core.Effect{Kind: core.Close, Shard: sh.id, Iter: iter})
	if !sh.agreement.leads {
		return out
	}
	slices.Sort(sh.agreement.contributors)
	out = s.announce(sh, announcement{iter: iter, contributors: slices.Clone(sh.agreement.contributors)}, out)
	sh.agreement.contributors = sh.agreement.contributors[:0]
	return out
}

// announce tells all other shards of the rule; those on this server are told at the end of the step.
func (s *Server) announce(sh *ownShard, c announcement, out []core.Effect) []core.Effect {
	a := &sh.agreement
	for _, to := range a.followers {
		m := wire.Header{Kind: wire.Closed, Shard: sh.id, Iter: c.iter, Version: a.announcements}
		if c.allLeft {
			m.Flags, m.Clock = wire.Over, c.endedLives
		}
		words := wordsOf(c.contributors)
		m.Parts = int32(max(1, len(words)))
		if len(words) == 0 {
			out = append(out, core.Effect{Kind: core.SendServer, To: to, Msg: m})
		}
		for _, w := range words {
			m.Part, m.Samples = w.index, int64(w.bits)
			out = append(out, core.Effect{Kind: core.SendServer, To: to, Msg: m})
		}
	}
	a.announcements++
	if s.inboxes[sh.id] != nil {
		s.ownAnnouncements = append(s.ownAnnouncements, ownAnnouncement{sh.id, c})
	}
	return out
}

// ownAnnouncement is an announcement of a shard of this server that other shards of this server follow.
type ownAnnouncement struct {
	leadShard int32
	announcement
}

// word is 64 workers as bits.
type word struct {
	index int32
	bits  uint64
}

func wordsOf(who []int32) (words []word) {
	for _, w := range who {
		if n := len(words); n == 0 || words[n-1].index != w/64 {
			words = append(words, word{index: w / 64})
		}
		words[len(words)-1].bits |= 1 << (w % 64)
	}
	return words
}

// receiveClosed handles one message of an announcement, then delivers the complete announcements in order.
func (s *Server) receiveClosed(m wire.Header, out []core.Effect) []core.Effect {
	h := s.inboxes[m.Shard]
	p := h.incomplete[m.Version]
	if p == nil {
		p = &partialAnnouncement{announcement: announcement{iter: m.Iter, allLeft: m.Flags&wire.Over != 0, endedLives: m.Clock}, missing: m.Parts}
		h.incomplete[m.Version] = p
	}
	for w := range int32(64) {
		if uint64(m.Samples)>>w&1 == 1 {
			p.contributors = append(p.contributors, 64*m.Part+w)
		}
	}
	p.missing--
	for p := h.incomplete[h.next]; p != nil && p.missing == 0; p = h.incomplete[h.next] {
		slices.Sort(p.contributors)
		delete(h.incomplete, h.next)
		h.next++
		out = s.deliver(h, p.announcement, out)
	}
	return out
}

// deliver gives an announcement to each shard that follows.
func (s *Server) deliver(h *inbox, c announcement, out []core.Effect) []core.Effect {
	for _, id := range h.followers {
		sh := s.shards[id]
		if c.allLeft {
			sh.agreement.leaderEndedLives = c.endedLives
		} else {
			sh.agreement.untold = append(sh.agreement.untold, c)
		}
		out = s.follow(sh, out)
	}
	return out
}

// follow tells a shard's scheme of the closed iterations that belong to it. Those past the change wait for the next
// scheme.
func (s *Server) follow(sh *ownShard, out []core.Effect) []core.Effect {
	a := &sh.agreement
	if !a.follows {
		return out
	}
	for len(a.untold) > 0 && (a.untold[0].iter < sh.closed || sh.agrees && a.untold[0].iter < sh.cut.at) {
		c := a.untold[0]
		a.untold = a.untold[1:]
		if c.iter >= sh.closed {
			out = s.changeScheme(sh, s.tellClosed(sh, c, out))
		}
	}
	// Nobody is in the run at either server: no announcement will close the iterations that are still open.
	if last := min(reachedMax(sh.peers), sh.cut.at) - 1; sh.agrees && s.heardAll(sh) && last >= sh.closed {
		out = s.tellClosed(sh, announcement{iter: last}, out)
	}
	return out
}

func (s *Server) tellClosed(sh *ownShard, c announcement, out []core.Effect) []core.Effect {
	ev := scheme.Event{Kind: scheme.Closed, Shard: sh.id, Iter: c.iter, Worker: scheme.NoWorker, Parts: int32(len(c.contributors))}
	if len(c.contributors) == 0 {
		return s.decide(sh, ev, out)
	}
	for _, ev.Worker = range c.contributors {
		out = s.decide(sh, ev, out)
	}
	return out
}

// heardAll says whether a shard that follows has heard everything there is to hear while no worker comes back.
func (s *Server) heardAll(sh *ownShard) bool {
	return !sh.agreement.follows || s.members.present == 0 && sh.agreement.leaderEndedLives == s.members.endedLives
}

// deliverOwn ends a step: it delivers the announcements of this server's shards to this server's other shards.
func (s *Server) deliverOwn(out []core.Effect) []core.Effect {
	for len(s.ownAnnouncements) > 0 {
		c := s.ownAnnouncements[0]
		s.ownAnnouncements = s.ownAnnouncements[1:]
		out = s.deliver(s.inboxes[c.leadShard], c.announcement, out)
	}
	return out
}

// announceAllLeft tells the shards that follow one of this server's shards that nobody is in the run.
func (s *Server) announceAllLeft(out []core.Effect) []core.Effect {
	for _, id := range s.owned {
		if sh := s.shards[id]; sh.agreement.leads {
			out = s.announce(sh, announcement{allLeft: true, endedLives: s.members.endedLives}, out)
		} else if sh.agreement.follows {
			out = s.follow(sh, out)
		}
	}
	return out
}
