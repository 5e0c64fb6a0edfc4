package straggler

type exponential struct {
	part  Amount
	draws *draws
}

func newExponential(s Spec, e Env) Injector { return exponential{s.unit(), newDraws(e)} }

func (x exponential) Draw(iter int64) Amount { return x.part.scaled(x.draws.at(iter).ExpFloat64()) }
