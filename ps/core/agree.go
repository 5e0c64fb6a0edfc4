package core

import (
	"slices"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
)

// Where the shards of a rule agree on who contributes to an iteration (contributors: step), the first of them leads. Its
// server tells the others which iterations it closed and with whose pushes: one message for each 64 workers of whom any
// contributed, and at least one. The announcements of a shard are numbered, and heard in their order. They are bounded:
// nobody starts an iteration that a shard has not closed the one before of.

// LeadShard is the shard of the same rule that decides for all of them where they agree: the one with the lowest ID.
func LeadShard(p *shard.Plan, id int32) int32 {
	return int32(slices.IndexFunc(p.Shards, func(s shard.Shard) bool { return s.Rule == p.Shards[id].Rule }))
}

// accord is a shard's part in it. The zero value is a shard that has none.
type accord struct {
	leads   bool
	tells   []int32 // leads: the servers of the other shards, ascending
	number  int64   // leads: announcements so far
	set     []int32 // leads: the workers whose pushes were folded since the last one
	follows bool
	heard   []announced // follows: what the scheme was not told, as it is past the change to the next one
	over    int64       // follows: how many lives had ended at the leading shard's server when nobody was in the run there
}

// announced is a closing: an iteration with its contributors, or the word that nobody is in the run any more.
type announced struct {
	iter  int64
	who   []int32 // ascending
	over  bool
	lives int64 // over: lives of workers that had ended
}

// hearing puts the announcements of one leading shard together again, on a server that has shards that follow it.
type hearing struct {
	shards []int32             // that follow, ascending
	next   int64               // number of the next one to be heard
	parts  map[int64]*arriving // by number, those not heard yet
}

type arriving struct {
	announced
	missing int32 // messages
}

// makeAccords finds the part of each shard of this server.
func (s *Server) makeAccords(schemes map[int32]ShardScheme) {
	for _, id := range s.order {
		if !schemes[id].Accord {
			continue
		}
		a := &s.shards[id].accord
		lead := LeadShard(s.plan, id)
		if a.follows = lead != id; a.follows {
			if s.hearings[lead] == nil {
				s.hearings[lead] = &hearing{parts: map[int64]*arriving{}}
			}
			s.hearings[lead].shards = append(s.hearings[lead].shards, id)
			continue
		}
		a.leads = true
		for i := range s.plan.Shards {
			other := &s.plan.Shards[i]
			if LeadShard(s.plan, other.ID) == id && other.Server != s.me && !slices.Contains(a.tells, other.Server) {
				a.tells = append(a.tells, other.Server)
			}
		}
		slices.Sort(a.tells)
	}
}

// closed obeys Close: v of the shard has come to iter+1, and where it leads the others hear of it.
func (s *Server) closed(sh *ownShard, iter int64, out []Effect) []Effect {
	sh.closed = max(sh.closed, iter+1)
	out = append(out, Effect{Kind: Close, Shard: sh.id, Iter: iter})
	if !sh.accord.leads {
		return out
	}
	slices.Sort(sh.accord.set)
	out = s.announce(sh, announced{iter: iter, who: slices.Clone(sh.accord.set)}, out)
	sh.accord.set = sh.accord.set[:0]
	return out
}

// announce tells all other shards of the rule; those on this server hear it at the end of the step.
func (s *Server) announce(sh *ownShard, c announced, out []Effect) []Effect {
	a := &sh.accord
	for _, to := range a.tells {
		m := wire.Header{Kind: wire.Closed, Shard: sh.id, Iter: c.iter, Version: a.number}
		if c.over {
			m.Flags, m.Clock = wire.Over, c.lives
		}
		words := wordsOf(c.who)
		m.Parts = int32(max(1, len(words)))
		if len(words) == 0 {
			out = append(out, Effect{Kind: SendServer, To: to, Msg: m})
		}
		for _, w := range words {
			m.Part, m.Samples = w.index, int64(w.bits)
			out = append(out, Effect{Kind: SendServer, To: to, Msg: m})
		}
	}
	a.number++
	if s.hearings[sh.id] != nil {
		s.own = append(s.own, own{sh.id, c})
	}
	return out
}

// own is an announcement of a shard of this server that others of this server follow.
type own struct {
	lead int32
	announced
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

// hear takes one message of an announcement, and all announcements that are complete then, in order.
func (s *Server) hear(m wire.Header, out []Effect) []Effect {
	h := s.hearings[m.Shard]
	p := h.parts[m.Version]
	if p == nil {
		p = &arriving{announced: announced{iter: m.Iter, over: m.Flags&wire.Over != 0, lives: m.Clock}, missing: m.Parts}
		h.parts[m.Version] = p
	}
	for w := range int32(64) {
		if uint64(m.Samples)>>w&1 == 1 {
			p.who = append(p.who, 64*m.Part+w)
		}
	}
	p.missing--
	for p := h.parts[h.next]; p != nil && p.missing == 0; p = h.parts[h.next] {
		slices.Sort(p.who)
		delete(h.parts, h.next)
		h.next++
		out = s.heard(h, p.announced, out)
	}
	return out
}

// heard gives an announcement to each shard that follows.
func (s *Server) heard(h *hearing, c announced, out []Effect) []Effect {
	for _, id := range h.shards {
		sh := s.shards[id]
		if c.over {
			sh.accord.over = c.lives
		} else {
			sh.accord.heard = append(sh.accord.heard, c)
		}
		out = s.follow(sh, out)
	}
	return out
}

// follow tells a shard's scheme of the iterations that were closed and are its own. Those past the change wait for the
// next one.
func (s *Server) follow(sh *ownShard, out []Effect) []Effect {
	a := &sh.accord
	if !a.follows {
		return out
	}
	for len(a.heard) > 0 && (a.heard[0].iter < sh.closed || sh.agrees && a.heard[0].iter < sh.cut.at) {
		c := a.heard[0]
		a.heard = a.heard[1:]
		if c.iter >= sh.closed {
			out = s.change(sh, s.tellClosed(sh, c, out))
		}
	}
	// Nobody is in the run, here or there, and all who were have left at both: what was not closed never will be.
	if last := min(slices.Max(sh.reached), sh.cut.at) - 1; sh.agrees && s.over(sh) && last >= sh.closed {
		out = s.tellClosed(sh, announced{iter: last}, out)
	}
	return out
}

func (s *Server) tellClosed(sh *ownShard, c announced, out []Effect) []Effect {
	ev := scheme.Event{Kind: scheme.Closed, Shard: sh.id, Iter: c.iter, Worker: scheme.NoWorker, Parts: int32(len(c.who))}
	if len(c.who) == 0 {
		return s.decide(sh, ev, out)
	}
	for _, ev.Worker = range c.who {
		out = s.decide(sh, ev, out)
	}
	return out
}

// over says whether a shard that follows has heard all there is to hear, as long as nobody comes back.
func (s *Server) over(sh *ownShard) bool {
	return !sh.accord.follows || s.here == 0 && sh.accord.over == s.ended
}

// settle ends a step: what shards of this server have announced is heard by its others, and when nobody is in the run
// the others know.
func (s *Server) settle(out []Effect) []Effect {
	for len(s.own) > 0 {
		c := s.own[0]
		s.own = s.own[1:]
		out = s.heard(s.hearings[c.lead], c.announced, out)
	}
	return out
}

// allLeft says to the shards that follow one of this server's that nobody is in the run.
func (s *Server) allLeft(out []Effect) []Effect {
	for _, id := range s.order {
		if sh := s.shards[id]; sh.accord.leads {
			out = s.announce(sh, announced{over: true, lives: s.ended}, out)
		} else if sh.accord.follows {
			out = s.follow(sh, out)
		}
	}
	return out
}
