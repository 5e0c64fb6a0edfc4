package servernode

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// The workers of a run may decide together, step by step, whether to exchange (SelSync). Each tells the lead shard's server after a step
// of its round whether it wants to. If one does, all exchange; if none does, all take another step:
//
//	worker                       lead shard's server
//	VOTE, of a step ───────────► a yes, or the votes of all workers in the run
//	◄──────────────── VERDICT    to those that have voted; to the others when they vote
//
// Such a run is under bsp: its workers are in the same round. A worker that comes back may be some steps behind. It is told what the others
// were told: no, as long as they are further on in its round, and yes if they have ended it.

// ballot is the vote that is open, or was last.
type ballot struct {
	iter, step int64  // the exchange, and the step of the round that ends with it
	voted      []bool // per worker; nil: nobody has ever voted
	decided    bool
	yes        bool
}

func (b *ballot) isBefore(m *wire.Header) bool {
	return b.voted == nil || b.iter < m.Iter || b.iter == m.Iter && b.step < m.Clock
}

// receiveVote counts a vote.
func (s *Server) receiveVote(m wire.Header, out []core.Effect) []core.Effect {
	b := &s.ballot
	switch {
	case s.members.left[m.Worker]:
		return out
	case b.isBefore(&m):
		*b = ballot{iter: m.Iter, step: m.Clock, voted: make([]bool, s.workers)}
	case m.Iter < b.iter: // the others have exchanged
		return append(out, verdict(&m, true))
	case m.Clock < b.step:
		return append(out, verdict(&m, false))
	}
	if b.decided {
		return append(out, verdict(&m, b.yes))
	}
	b.voted[m.Worker], b.yes = true, b.yes || m.Part > 0
	return s.countVotes(out)
}

// countVotes decides when a worker wants to exchange, or all workers in the run have voted.
func (s *Server) countVotes(out []core.Effect) []core.Effect {
	b := &s.ballot
	if b.voted == nil || b.decided {
		return out
	}
	for w, voted := range b.voted {
		if !b.yes && !voted && !s.members.left[w] {
			return out
		}
	}
	b.decided = true
	for w, voted := range b.voted {
		if voted && !s.members.left[w] {
			out = append(out, verdict(&wire.Header{Worker: int32(w), Iter: b.iter, Clock: b.step}, b.yes))
		}
	}
	return out
}

func verdict(m *wire.Header, yes bool) core.Effect {
	h := wire.Header{Kind: wire.Verdict, Worker: m.Worker, Iter: m.Iter, Clock: m.Clock}
	if yes {
		h.Part = 1
	}
	return core.Effect{Kind: core.Send, To: m.Worker, Msg: h}
}
