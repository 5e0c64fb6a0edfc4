package serve

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/plan/origin"
)

// lookAtFault notes the first value of a shard that was not finite, and tells rank 0. version is the one that the shard has made.
func (s *Side) lookAtFault(st *store, version int64) {
	fault := st.math.Fault()
	if fault == nil || st.faulty {
		return
	}
	st.faulty = true
	r := s.station
	f := origin.OfCommit(fault, st.pushers, int32(r.Roles.Server(r.Me)), version)
	f.Param, f.Elem, f.Layer = r.Plan.ElementAt(st.sh.Lo + fault.At)
	f.At = r.Transport.Now()
	if s.found.Note(f) {
		r.Log.Warn("a value is not finite", "place", f.Place, "tensor", f.Param, "element", f.Elem, "version", version, "value", f.Value)
		h := wire.StopAsked{Rank: int32(r.Me), Diverged: true}.Header()
		r.Net.Send(0, &h)
	}
}
