package straggler

import "time"

// Recorded is the time that a worker of a real run worked on an iteration, without the injected slowness, which the faults of the
// simulation add again.
type Recorded struct {
	Own  time.Duration
	Push time.Duration // part of Own: handing gradients to the transport, which the factor of a fault does not lengthen
	// Samples is the batch of the iteration; 0: unknown. The simulator stretches Own where its batch differs; a real run does not.
	Samples int
}

// Trace has the iterations of one worker of a real run, in order.
type Trace []Recorded

// At returns the iteration that stands for iteration iter: after the last one the second, because in the first caches were cold.
func (t Trace) At(iter int64) Recorded {
	n := int64(len(t))
	if iter < n {
		return t[iter]
	}
	if n == 1 {
		return t[0]
	}
	return t[1+(iter-n)%(n-1)]
}

type replay struct{ trace Trace }

func newTrace(_ Spec, e Env) Injector { return replay{e.Trace} }

// Draw leaves out what took Push: a run that replays hands gradients over by itself.
func (r replay) Draw(iter int64) Amount {
	it := r.trace.At(iter)
	return Amount{Least: it.Own - it.Push}
}
