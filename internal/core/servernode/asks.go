package servernode

import (
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/ps/scheme"
)

// What schemes ask for besides decisions about pushes and pulls: alarms, and whether a worker waits elsewhere (elsewhere.go of
// workernode says what both halves of that do).

// askElsewhere obeys a scheme that asks a worker.
func (s *Server) askElsewhere(d scheme.Decision, out []core.Effect) []core.Effect {
	m := wire.Header{Kind: wire.AskWaits, Worker: d.Worker, Shard: d.Shard, Version: d.Iter}
	if slices.Contains(s.shards[d.Shard].cut.pulls, d.Worker) {
		s.atCut = append(s.atCut, m)
		return out
	}
	return append(out, core.Effect{Kind: core.Send, To: d.Worker, Msg: m})
}

// answerAtCuts ends a step: it answers for the workers that wait here for a change of scheme.
func (s *Server) answerAtCuts(out []core.Effect) []core.Effect {
	for len(s.atCut) > 0 {
		m := s.atCut[0]
		s.atCut = s.atCut[1:]
		if slices.Contains(s.shards[m.Shard].cut.pulls, m.Worker) {
			out = s.tellElsewhere(&m, out)
		}
	}
	s.atCut = nil
	return out
}

// tellElsewhere tells the scheme of an answer. The scheme that asked may have been changed since: then the answer is for
// nobody, as the one of a worker that has left is.
func (s *Server) tellElsewhere(m *wire.Header, out []core.Effect) []core.Effect {
	sh := s.shards[m.Shard]
	asks, ok := sh.scheme.(interface{ AsksElsewhere() bool })
	if !ok || !asks.AsksElsewhere() || s.members.left[m.Worker] {
		return out
	}
	ev := scheme.Event{Kind: scheme.WaitsElsewhere, Worker: m.Worker, Shard: sh.id, Seen: m.Version}
	if m.Flags&wire.Over != 0 {
		ev.Kind = scheme.WaitedElsewhere
	}
	return s.decide(sh, ev, out)
}

// askAlarm asks the driver for an alarm, and remembers that the current scheme of the shard waits for it.
func (s *Server) askAlarm(d scheme.Decision, out []core.Effect) []core.Effect {
	sh := s.shards[d.Shard]
	if !sh.schedulesLink {
		sh.alarms = append(sh.alarms, d.At)
	}
	return append(out, core.Effect{Kind: core.WakeAt, Shard: d.Shard, At: d.At})
}

// alarm tells the scheme of an alarm. An alarm that an earlier scheme of the shard, or an earlier life of this server, has
// asked for comes too, and is for nobody.
func (s *Server) alarm(in core.Input, out []core.Effect) []core.Effect {
	sh := s.shards[in.Shard]
	if !sh.schedulesLink {
		n := len(sh.alarms)
		if sh.alarms = slices.DeleteFunc(sh.alarms, func(at time.Duration) bool { return at <= in.At }); len(sh.alarms) == n {
			return out
		}
	}
	return s.decide(sh, scheme.Event{Kind: scheme.Alarm, Shard: in.Shard}, out)
}
