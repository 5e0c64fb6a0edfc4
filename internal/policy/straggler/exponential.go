package straggler

type exponential struct {
	part  Amount
	draws *draws
}

func newExponential(s Spec, e Env) Injector { return exponential{s.unit(), newDraws(e)} }

func (x exponential) Draw(iter int64) Amount { return x.drawPart(iter, 0) }

func (x exponential) drawPart(iter, part int64) Amount {
	return x.part.scaled(x.draws.of(iter, part).ExpFloat64())
}
