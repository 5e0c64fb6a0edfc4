package real

import "fluentps/internal/core/steps"

// The values of steps of the workers' own (internal/sim/steps.go).

// Vectors makes the memory of a worker's own steps.
func (f *floats) Vectors(me int32, o *steps.Options) steps.Vectors {
	w, p := &f.replicas[me], f.s.Plan()
	own, grads := make([]float32, p.Arena), make([]float32, p.Arena)
	w.views = [2][][]float32{p.Views(own), p.Views(grads)}
	return steps.OnHost(o, own, grads, w.params, w.grads)
}

// TakeStep computes a step on the worker's own parameters.
func (f *floats) TakeStep(me int32, own *steps.Worker) (loss float64, correct int64) {
	w, step := &f.replicas[me], own.Steps()
	w.own = own
	f.rows = w.sampler.Batch(step, f.rows)
	f.gather()
	w.augment.Apply(f.batch.X, step)
	f.model.Bind(w.views[0], w.views[1])
	loss, hits := f.step(me, step, f.batch)
	own.Begin()
	own.Backwarded(int64(f.batch.N))
	for layer := range f.layers {
		own.Move(layer, int64(f.batch.N))
	}
	return loss, int64(hits)
}

// MakePush writes a push where it is sent from.
func (f *floats) MakePush(me int32, iter int64, own *steps.Worker) {
	w := &f.replicas[me]
	f.keepUnsent(w)
	if w.flying > 0 {
		f.s.Fail("immutable gradients: worker %d makes the push of iteration %d while %d pieces of its last push have "+
			"not landed", me, iter, w.flying)
	}
	for layer := range f.layers {
		own.Make(layer, iter)
	}
}
