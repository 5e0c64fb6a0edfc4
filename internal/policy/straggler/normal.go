package straggler

type normal struct {
	part   Amount
	spread float64
	draws  *draws
}

func newNormal(s Spec, e Env) Injector { return normal{s.unit(), s.Spread, newDraws(e)} }

func (n normal) Draw(iter int64) Amount { return n.drawPart(iter, 0) }

func (n normal) drawPart(iter, part int64) Amount {
	return n.part.scaled(1 + float64(n.spread*n.draws.of(iter, part).NormFloat64()))
}
