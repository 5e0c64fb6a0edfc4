package allreduce

import (
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/origin"
	"fluentps/internal/policy/optim"
)

// lookAtBucket looks at this rank's own gradients before the sum takes their place.
func (a *AllReduce) lookAtBucket(b *shard.Bucket) {
	g := a.grads.F32()[b.Lo:b.Hi]
	if optim.Top(g) < optim.Infinite {
		return
	}
	at := optim.LastNotFinite(g)
	f := origin.Finding{Place: origin.Gradient, Iter: a.version, Value: origin.Text(float64(g[at])),
		Gradient: origin.Number(optim.TopFinite(g))}
	f.Param, f.Elem, f.Layer = a.station.Plan.ElementAt(b.Lo + at)
	a.worker.Found(f)
}

// lookAtFault notes what a step has found. All ranks find the same. A sum that is not finite is one of finite gradients, or a rank has
// found its own.
func (a *AllReduce) lookAtFault(sh *shard.Shard, st *optim.Store) {
	fault := st.Fault()
	if fault == nil {
		return
	}
	f := origin.OfFault(fault)
	if f.Place == origin.Gradient {
		f.Place = origin.Sum
	}
	f.Param, f.Elem, f.Layer = a.station.Plan.ElementAt(sh.Lo + fault.At)
	f.Iter, f.Inner = a.version, true
	a.worker.Found(f)
}
