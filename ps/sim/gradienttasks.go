package sim

import "fluentps/ps/optim"

// The values of tasks (tasks.go). A task is computed on the parameters that its worker's own iteration has read, because replies may
// land while the worker computes for others. Its gradients are added up, grain by grain, in the arena that they are sent from, in the
// order of ps/train/work.go: so the sums are the same to the bit.

// ranges are the parameters on which a worker computes tasks.
type ranges struct {
	params []float32 // arena: those of the worker's own iteration
	views  [2][][]float32
}

func (f *floats) newRanges() *ranges {
	params := make([]float32, f.s.plan.Arena)
	return &ranges{params, [2][][]float32{f.s.plan.Views(params), f.s.plan.Views(f.grain)}}
}

// beginRanges keeps the parameters of the worker's own iteration.
func (f *floats) beginRanges(me int32) {
	w := &f.replicas[me]
	copy(w.ranges.params, w.params)
}

// computeGrain computes the current grain of a worker's task.
func (f *floats) computeGrain(me int32, isFirst bool) {
	w, k := &f.replicas[me], &f.s.workers[me].tasks
	if isFirst {
		if w.flying > 0 {
			f.s.check.fail("immutable gradients: worker %d computes %+v while %d pieces of its last push have not left", me, k.task, w.flying)
		}
		clear(w.grads)
	}
	if k.n == 0 {
		return
	}
	of := &f.replicas[k.task.Owner]
	f.rows = of.sampler.Batch(k.task.Iter, f.rows)
	f.batch.Take(f.set.Train, f.rows)
	of.augment.Apply(f.batch.X, k.task.Iter)
	f.model.Bind(w.ranges.views[0], w.ranges.views[1])
	loss, correct := f.step(me, k.task.Iter, f.batch.Part(int(k.next), int(k.next+k.n)))
	k.sums.Loss, k.sums.Correct = k.sums.Loss+loss, k.sums.Correct+int64(correct)
	if k.next == k.task.From {
		copy(w.grads, f.grain)
		return
	}
	optim.Sum(w.grads, w.grads, f.grain)
}
