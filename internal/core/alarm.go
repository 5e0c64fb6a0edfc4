package core

import (
	"slices"
	"time"

	"fluentps/ps/scheme"
)

// askAlarm asks the driver for an alarm, and remembers that the current scheme of the shard waits for it.
func (s *Server) askAlarm(d scheme.Decision, out []Effect) []Effect {
	sh := s.shards[d.Shard]
	if !sh.schedulesLink {
		sh.alarms = append(sh.alarms, d.At)
	}
	return append(out, Effect{Kind: WakeAt, Shard: d.Shard, At: d.At})
}

// alarm tells the scheme of an alarm. An alarm that an earlier scheme of the shard, or an earlier life of this server, has
// asked for comes too, and is for nobody.
func (s *Server) alarm(in Input, out []Effect) []Effect {
	sh := s.shards[in.Shard]
	if !sh.schedulesLink {
		n := len(sh.alarms)
		if sh.alarms = slices.DeleteFunc(sh.alarms, func(at time.Duration) bool { return at <= in.At }); len(sh.alarms) == n {
			return out
		}
	}
	return s.decide(sh, scheme.Event{Kind: scheme.Alarm, Shard: in.Shard}, out)
}
