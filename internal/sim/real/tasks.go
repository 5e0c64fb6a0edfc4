package real

import (
	"slices"

	"fluentps/internal/policy/optim"
	"fluentps/internal/sim"
)

// The values of tasks (internal/sim/tasks.go). A task is computed on the parameters that its worker's own iteration has read, because
// replies may land while the worker computes for others. Its gradients are added up, grain by grain, in the arena that they are sent
// from, in the order of internal/rank/train/work.go: so the sums are the same to the bit.

// ranges are the parameters on which a worker computes tasks.
type ranges struct {
	params []float32 // arena: those of the worker's own iteration
	views  [2][][]float32
}

func (f *floats) newRanges() *ranges {
	params := make([]float32, f.s.Plan().Arena)
	return &ranges{params, [2][][]float32{f.s.Plan().Views(params), f.s.Plan().Views(f.grain)}}
}

// BeginTasks keeps the parameters of the worker's own iteration.
func (f *floats) BeginTasks(me int32) {
	w := &f.replicas[me]
	w.waiting = w.waiting[:0]
	copy(w.ranges.params, w.params)
}

// ComputeGrain computes a grain of a worker's task.
func (f *floats) ComputeGrain(me int32, k sim.Grain) (loss float64, correct int64) {
	w := &f.replicas[me]
	if k.IsFirst {
		if w.flying > 0 {
			f.s.Fail("immutable gradients: worker %d computes %+v while %d pieces of its last push have not left", me, k.Task, w.flying)
		}
		clear(w.grads)
	}
	if k.N > 0 {
		loss, correct = f.addGrain(w, k, me)
	}
	if k.Last >= 0 {
		w.clip.Sums(w.grads, k.Last)
	}
	return loss, correct
}

// addGrain computes a grain, and adds its gradients to those of the task.
func (f *floats) addGrain(w *replica, k sim.Grain, me int32) (loss float64, correct int64) {
	of := &f.replicas[k.Task.Owner]
	f.rows = of.sampler.Batch(k.Task.Iter, f.rows)
	f.gather()
	of.augment.Apply(f.batch.X, k.Task.Iter)
	f.model.Bind(w.ranges.views[0], w.ranges.views[1])
	loss, hits := f.step(me, k.Task.Iter, f.batch.Part(int(k.From), int(k.From+k.N)))
	if k.From == k.Task.From {
		copy(w.grads, f.grain)
	} else {
		optim.Sum(w.grads, w.grads, f.grain)
	}
	return loss, int64(hits)
}

// Keep keeps the gradients that were just computed, or adds them to those kept last. Of a code it keeps their sum.
func (f *floats) Keep(me, owner int32, isMore bool) {
	w := &f.replicas[me]
	k := f.s.Code()
	if k == nil {
		w.waiting = append(w.waiting, slices.Clone(w.grads))
		return
	}
	if !isMore {
		w.waiting = append(w.waiting, make([]float32, len(w.grads)))
	}
	of, factors := k.Row(int(me))
	optim.AddDelta(w.waiting[len(w.waiting)-1], w.grads, factors[slices.Index(of, owner)])
}

// Restore makes gradients that were kept those that are pushed.
func (f *floats) Restore(me int32, i int) { copy(f.replicas[me].grads, f.replicas[me].waiting[i]) }
