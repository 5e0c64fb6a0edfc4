package optim

import "fmt"

// Outer names a rule with which a server applies what workers changed in several steps of their own (`local.outer`). What it is given as
// a gradient is the parameters before these steps minus those after them, the mean over workers.
type Outer struct {
	Name     string // sgd, momentum or nesterov as in New; slowmo; delayed_nesterov
	LR       float64
	Momentum float64
	Every    int64   // delayed_nesterov: the pushes between two changes of its momentum
	Between  float64 // delayed_nesterov: the share of the momentum that each push between two such changes applies
	// Inner is the learning rate of the workers' own steps, by the step: slowmo divides by it, and a store reports it.
	Inner func(step float64) float64
}

// NewOuter makes the rule, with a constant rate.
//
//	slowmo            u' = mu*u + d/gamma,  w' = w - lr*gamma*u'
//	delayed_nesterov  acc' = acc + d
//	                  every N-th:  m' = mu*m + acc'/N,  w' = w - lr*((1-c*N+c)*mu*m' + d/N),  acc' = 0
//	                  else         w' = w - lr*(c*mu*m + d/N)
//
// slowmo is Algorithm 1 of Wang et al. (ICLR 2020) [Q]: gamma is the workers' rate, lr is alpha there. BMUF (Chen and Huo, ICASSP 2016)
// is slowmo with a constant gamma [Q]. delayed_nesterov is Algorithm 3 of Liu et al. (arXiv 2401.09135), with its code in HALoS [Q].
func NewOuter(o Outer) (Update, error) {
	u := Update{LR: o.LR, Sched: ScheduleDefaults(), Inner: o.Inner}
	switch o.Name {
	case "slowmo":
		u.Rule = slowMo{float32(o.Momentum)}
		return u, nil
	case "delayed_nesterov":
		if o.Every < 1 {
			return u, fmt.Errorf("optim: delayed_nesterov changes its momentum every %d pushes; use 1 or more", o.Every)
		}
		u.Rule = delayedNesterov{float32(o.Momentum), o.Every, float32(o.Between)}
		return u, nil
	}
	spec := Defaults()
	spec.Name, spec.LR, spec.Momentum = o.Name, o.LR, o.Momentum
	var err error
	u.Rule, err = New(spec)
	return u, err
}

type slowMo struct{ mu float32 }

func (slowMo) State() int { return 1 }

func (r slowMo) Step(dst, src, grad []float32, state [][]float32, a Args) uint32 {
	mustFit(dst, src, grad, state, 1)
	u, gamma := state[0], a.Inner
	if gamma == 0 { // a schedule that has come to its end: the workers' steps are 0, and so is what they push
		copy(dst, src)
		return topPass(dst)
	}
	rate := a.LR * gamma
	for i, x := range src {
		d := float32(a.GradScale * grad[i])
		u[i] = float32(r.mu*u[i]) + d/gamma
		dst[i] = x - float32(rate*u[i])
	}
	return topPass(dst)
}

type delayedNesterov struct {
	mu    float32
	every int64
	c     float32
}

func (delayedNesterov) State() int { return 2 }

func (r delayedNesterov) Step(dst, src, grad []float32, state [][]float32, a Args) uint32 {
	mustFit(dst, src, grad, state, 2)
	m, acc, n := state[0], state[1], float32(r.every)
	share := 1 / n
	if a.Step%r.every == 0 {
		of := float32((1 - float32(r.c*n) + r.c) * r.mu)
		for i, x := range src {
			d := float32(a.GradScale * grad[i])
			m[i] = float32(r.mu*m[i]) + float32(share*(acc[i]+d))
			acc[i] = 0
			dst[i] = x - float32(a.LR*(float32(of*m[i])+float32(share*d)))
		}
		return topPass(dst)
	}
	of := float32(r.c * r.mu)
	for i, x := range src {
		d := float32(a.GradScale * grad[i])
		acc[i] += d
		dst[i] = x - float32(a.LR*(float32(of*m[i])+float32(share*d)))
	}
	return topPass(dst)
}
