package optim

import "math"

// The first value that is not finite. A pass knows the largest magnitude that it wrote, so a store looks for such a value only after
// one was written. What it was made of is still there then: the pushes, the version before, and the state.

// Infinite is the magnitude of infinity, as bits: those of finite values are smaller, those of NaN larger.
const Infinite = 0x7f800000

// Stage is where in a store a value that is not finite arose.
type Stage uint8

const (
	InPush   Stage = iota + 1 // a push had it
	InSum                     // the pushes were finite, and their sum is not
	InStep                    // the sum was finite, and what the commit made of it is not
	InParams                  // the version that the commit began from had it
)

// Fault is the first value of a store that is not finite, with what it was made of.
type Fault struct {
	Stage Stage
	Push  int     // InPush: how many pushes were folded before it since the last commit
	At    int     // element of the shard; InPush: the last one, because backward begins with the last layer
	Value float32 // the value itself
	Adds  bool    // InStep: the commit adds or averages pushes; no rule takes a step
	Top   float32 // the largest finite magnitude of the push, or of the parameters before the commit

	// InStep: the terms of the element. The step goes along Scale*Sum + Decay*Param, at LR.
	Param, Sum, State float32
	LR, Scale, Decay  float32
}

// firstBad is the first element of a vector that is not finite.
type firstBad struct {
	found bool
	at    int
	value float32
}

// note looks at a block that begins at element lo, if its largest magnitude says that a value is not finite.
func (b *firstBad) note(top uint32, lo int, block []float32) {
	if top < Infinite || b.found {
		return
	}
	if i := NotFinite(block); i >= 0 {
		*b = firstBad{true, lo + i, block[i]}
	}
}

// NotFinite is the first element of x that is not finite; -1: all are.
func NotFinite(x []float32) int {
	for i, v := range x {
		if magnitude(v) >= Infinite {
			return i
		}
	}
	return -1
}

// LastNotFinite is the last such element.
func LastNotFinite(x []float32) int {
	for i := len(x) - 1; i >= 0; i-- {
		if magnitude(x[i]) >= Infinite {
			return i
		}
	}
	return -1
}

// Top is the largest magnitude in x, as bits; 0 if x is empty. It is Infinite or more if some value is not finite.
func Top(x []float32) uint32 { return topPass(x) }

// TopFinite is the largest finite magnitude in x.
func TopFinite(x []float32) float32 {
	var top uint32
	for _, v := range x {
		if m := magnitude(v); m < Infinite {
			top = max(top, m)
		}
	}
	return math.Float32frombits(top)
}

// Fault is the first value of the store that was not finite; nil: all were.
func (s *Store) Fault() *Fault { return s.fault }

// look finds the first value that is not finite, after a run that wrote one.
func (s *Store) look(w *work) {
	var sums, step firstBad
	for i := range s.scratch {
		if l := &s.scratch[i]; !sums.found {
			sums = l.sums
		}
		if l := &s.scratch[i]; !step.found {
			step = l.step
		}
	}
	if s.fault != nil || !sums.found && !step.found {
		return
	}
	for i := range s.queue {
		f := &s.queue[i]
		if at := LastNotFinite(f.push); at >= 0 {
			s.fault = &Fault{Stage: InPush, Push: f.number, At: at, Value: f.push[at], Top: TopFinite(f.push)}
			return
		}
	}
	if sums.found {
		s.fault = &Fault{Stage: InSum, At: sums.at, Value: sums.value, Top: s.topOfPushes()}
		return
	}
	if s.held && NotFinite(s.sums[0]) >= 0 { // who holds the sums has written it
		s.fault = &Fault{Stage: InSum, At: step.at, Value: s.sums[0][step.at]}
		return
	}
	f := &Fault{Stage: InStep, At: step.at, Value: step.value, Sum: s.sumAt(step.at), LR: w.args.LR, Scale: w.args.GradScale}
	if s.way == Add || s.way == Average {
		f.Adds, f.Scale = true, w.weight
	}
	if &w.src[0] != &w.dst[0] { // else the parameters before are gone
		f.Param, f.Top = w.src[step.at], TopFinite(w.src)
	}
	if magnitude(f.Param) >= Infinite {
		f.Stage = InParams
	}
	for _, q := range s.runs {
		if q.Lo <= step.at && step.at < q.Hi {
			f.Decay = q.Decay * w.local
			if s.matrices != nil && q.Rows > 0 {
				f.LR = w.matrices
			}
		}
	}
	if len(s.state) > 0 {
		f.State = s.state[0][step.at]
	}
	s.fault = f
}

// faultOfStep is the fault of a step that a worker took in a block of its arena; nil: all of it is finite after all.
func faultOfStep(next, grads []float32, state [][]float32, a Args, lo int) *Fault {
	if at := LastNotFinite(grads); at >= 0 {
		return &Fault{Stage: InPush, At: lo + at, Value: grads[at], Top: TopFinite(grads)}
	}
	at := NotFinite(next)
	if at < 0 {
		return nil
	}
	f := &Fault{Stage: InStep, At: lo + at, Value: next[at], Top: TopFinite(next), Sum: grads[at], LR: a.LR,
		Scale: a.GradScale, Decay: a.Decay}
	if len(state) > 0 {
		f.State = state[0][at]
	}
	return f
}

func (s *Store) topOfPushes() (top float32) {
	for i := range s.queue {
		top = max(top, TopFinite(s.queue[i].push))
	}
	return top
}

// sumAt is the pending sum of an element, from the queued folds. What other accumulators have added is as after the commit.
func (s *Store) sumAt(at int) (sum float32) {
	if s.held {
		sum = s.sums[0][at]
	}
	for i := range s.queue {
		f := &s.queue[i]
		if f.into != 0 {
			continue
		}
		from := sum
		switch {
		case f.push != nil:
			from = f.push[at]
		case f.from > 0:
			from = s.sums[f.from][at]
		}
		if f.scale == 0 {
			sum = 0
		}
		sum = f.scale*sum + f.weight*from
	}
	return sum
}
