package straggler

import "math"

type lognormal struct {
	part   Amount
	spread float64
	draws  *draws
}

func newLognormal(s Spec, e Env) Injector { return lognormal{s.unit(), s.Spread, newDraws(e)} }

func (l lognormal) Draw(iter int64) Amount { return l.drawPart(iter, 0) }

// drawPart subtracts half of the variance, so that the mean is one part.
func (l lognormal) drawPart(iter, part int64) Amount {
	z := float64(l.spread * l.draws.of(iter, part).NormFloat64())
	return l.part.scaled(math.Exp(z - float64(l.spread*l.spread)/2))
}
