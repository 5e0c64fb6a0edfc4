package core

// Learner is a Work that learns while it runs. Checkpoints have its memory.
type Learner interface {
	Work
	Memory() []float64             // what it has learned, in finite numbers; nil: nothing
	Recall(memory []float64) error // before its first step; fails for what Memory of this policy never returns
}

// Learned is what the worker's policy has learned; nil: nothing.
func (w *Worker) Learned() []float64 {
	if w.work == nil {
		return nil
	}
	if p, ok := w.work.policy.(Learner); ok {
		return p.Memory()
	}
	return nil
}

// Recall gives the worker's policy what an earlier one has learned. It must be called before the first input.
func (w *Worker) Recall(learned []float64) error {
	if w.work == nil || learned == nil {
		return nil
	}
	if p, ok := w.work.policy.(Learner); ok {
		return p.Recall(learned)
	}
	return nil
}
