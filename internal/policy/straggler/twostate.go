package straggler

// twoState is a Markov chain. Its state in an iteration follows from the draws of all iterations before, so it is kept.
type twoState struct {
	part         Amount
	enter, leave float64
	draws        *draws
	next         int64 // the iteration after the last one that was drawn
	slow         bool  // in the iteration before next
}

func newTwoState(s Spec, e Env) Injector {
	return &twoState{part: s.unit(), enter: s.Enter, leave: s.Leave, draws: newDraws(e)}
}

func (t *twoState) Draw(iter int64) Amount {
	if iter < t.next-1 {
		t.next, t.slow = 0, false
	}
	for ; t.next <= iter; t.next++ {
		p := t.draws.at(t.next).Float64()
		if t.slow {
			t.slow = p >= t.leave
		} else {
			t.slow = p < t.enter
		}
	}
	if !t.slow {
		return Amount{}
	}
	return t.part
}
