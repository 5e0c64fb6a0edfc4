package scheme_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"fluentps/ps/scheme"
)

// timeline runs one shard in virtual time: each worker computes for period(w), pushes, asks and waits, until it has
// pushed its iterations. Its last pull is sent too. There is no network and no server time.
type timeline struct {
	scheme  scheme.Scheme
	period  func(w int) float64
	until   float64 // stop at this time; 0: when the iterations are done
	delayed int     // pulls not answered at once
	pushes  int
	lead    int64          // the largest c - v right after a push
	running int64          // the largest c - v of a worker at its reply
	open    map[int32]bool // workers whose pull is not answered
}

// run returns the time of the last push.
func (l *timeline) run(workers int, iterations int64) (now float64) {
	l.open = map[int32]bool{}
	due := make([]float64, workers) // when the current iteration ends; +Inf: there is none
	iter, clock := make([]int64, workers), make([]int64, workers)
	for w := range due {
		due[w] = l.period(w)
	}
	step := func(ev scheme.Event) {
		ev.At = time.Duration(now * float64(time.Second))
		if ev.Kind == scheme.Wanted {
			l.open[ev.Worker] = true
		}
		for _, d := range replies(l.scheme.Step(ev, nil)) {
			delete(l.open, d.Worker)
			l.running = max(l.running, d.Iter-slices.Min(clock))
			if iter[d.Worker] = d.Iter; d.Iter < iterations {
				due[d.Worker] = now + l.period(int(d.Worker))
			}
		}
		if ev.Kind == scheme.Wanted && l.open[ev.Worker] {
			l.delayed++
		}
	}
	for {
		next := 0
		for w := range due {
			if due[w] < due[next] {
				next = w
			}
		}
		if math.IsInf(due[next], 1) || l.until > 0 && due[next] > l.until {
			return now
		}
		now, due[next] = due[next], math.Inf(1)
		w, i := int32(next), iter[next]
		l.pushes++
		clock[w] = i + 1
		l.lead = max(l.lead, clock[w]-slices.Min(clock))
		step(scheme.Event{Kind: scheme.Pushed, Worker: w, Owner: w, Parts: 1, Iter: i, Samples: 32})
		step(scheme.Event{Kind: scheme.Wanted, Worker: w, Iter: i + 1})
	}
}

// straggler is the setting of the delayed-pull arithmetic: worker 0 takes 1 per iteration, the others are ratio times
// faster, all with the given share of normal noise.
func straggler(ratio, noise float64) func(w int) float64 {
	random := rand.New(rand.NewPCG(1, 2))
	return func(w int) float64 {
		mean := 1 / ratio
		if w == 0 {
			mean = 1
		}
		return mean * max(0.1, 1+noise*random.NormFloat64())
	}
}
