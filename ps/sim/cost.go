package sim

import (
	"math"
	"time"

	"fluentps/configs"
	"fluentps/ps/straggler"
)

// cost is what an iteration of one worker computes by its batch, C(b) = fixed + perSample·b, in nanoseconds.
type cost struct {
	fixed, perSample float64
}

// costOf is the configured cost of a worker.
func costOf(m *configs.Simulate, worker int) cost {
	c := cost{float64(m.Compute.Fixed), float64(m.Compute.PerSample)}
	factor, fixed := 1.0, 1.0
	if len(m.PerWorker) > 0 {
		factor = m.PerWorker[worker]
		fixed = factor
	}
	if len(m.FixedPerWorker) > 0 {
		fixed = m.FixedPerWorker[worker]
	}
	return cost{c.fixed * fixed, c.perSample * factor}
}

func (c cost) of(batch int64) time.Duration {
	return time.Duration(c.fixed + float64(c.perSample*float64(batch)))
}

// stretched is the time of a recorded iteration for another batch. Nothing is known of the batch of an old recording.
func (c cost) stretched(r straggler.Recorded, batch int64) time.Duration {
	if r.Samples == 0 || int64(r.Samples) == batch {
		return r.Own
	}
	was, is := c.of(int64(r.Samples)), c.of(batch)
	if was == 0 {
		return r.Own
	}
	return time.Duration(float64(r.Own) * float64(is) / float64(was))
}

// timed is the mean time of the iterations of one batch, in nanoseconds.
type timed struct {
	batch, mean float64
	n           float64 // number of iterations
}

// fitCost is the line through mean times by least squares, neither part of it below 0. With times of one batch only it is a time per sample.
func fitCost(of []timed) cost {
	var n, b, t, bb, bt float64
	for _, x := range of {
		n, b, t, bb, bt = n+1, b+x.batch, t+x.mean, bb+float64(x.batch*x.batch), bt+float64(x.batch*x.mean)
	}
	if len(of) < 2 {
		return cost{perSample: bt / bb}
	}
	slope := (n*bt - float64(b*t)) / (n*bb - float64(b*b))
	switch fixed := (t - float64(slope*b)) / n; {
	case slope < 0 || math.IsNaN(slope):
		return cost{fixed: t / n}
	case fixed < 0:
		return cost{perSample: bt / bb}
	default:
		return cost{fixed, slope}
	}
}
