package local

import (
	"fmt"
	"math"
)

// adaComm exchanges more often as the loss falls.
var adaComm = PeriodEntry{
	Name: "adacomm",
	Rule: "at first local.steps steps; after each interval exchanges local.steps * sqrt(loss / first loss), rounded " +
		"up, or half as many as before if that is no fewer",
	Source: "AdaComm (Wang and Joshi, MLSys 2019), abstract and recollection [A, M]: reconstructed; its interval is a " +
		"time, ours counts exchanges, so that runs repeat",
	Papers: []string{"wang2019adaptive"},
	make:   func(s Spec, _ Env) period { return &adaptive{base: s.Steps, interval: s.Period.Interval, now: s.Steps} },
}

type adaptive struct {
	base, interval int64
	now            int64   // steps of a round
	rounds         int64   // since the last change
	first          float64 // the first loss; 0: none yet
}

// steps is called once for each round.
func (p *adaptive) steps(n Now) int64 {
	if p.first == 0 && n.Loss > 0 && !math.IsInf(n.Loss, 0) {
		p.first, p.rounds = n.Loss, 0
	}
	if p.first > 0 && p.rounds >= p.interval && n.Loss >= 0 && !math.IsInf(n.Loss, 0) {
		next := max(1, finite(math.Ceil(float64(p.base)*math.Sqrt(n.Loss/p.first))))
		if next >= p.now {
			next = max(1, p.now/2)
		}
		p.now, p.rounds = next, 0
	}
	p.rounds++
	return p.now
}

func (p *adaptive) Memory() []float64 {
	return []float64{float64(p.now), float64(p.rounds), p.first}
}

func (p *adaptive) Recall(m []float64) error {
	const countMax = 1 << 53 // whole numbers above are not exact
	isCount := func(x, most float64) bool { return x >= 0 && x <= most && x == math.Trunc(x) }
	if len(m) != 3 || !isCount(m[0], StepsMax) || m[0] < 1 || !isCount(m[1], countMax) || !(m[2] >= 0) || math.IsInf(m[2], 0) {
		return fmt.Errorf("local: adacomm cannot continue from %v: it saves the steps of a round, the rounds since the "+
			"last change, and the first loss", m)
	}
	p.now, p.rounds, p.first = int64(m[0]), int64(m[1]), m[2]
	return nil
}
