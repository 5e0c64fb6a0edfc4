package calibrate

import (
	"cmp"
	"math"
	"slices"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/policy/straggler"
	"fluentps/internal/sim"
	"fluentps/ps/workload"
)

// fitCompute fits what an iteration of each worker computes by its batch, and a distribution around that. It tries
// normal and exponential times and takes the one that is closer to the times (Kolmogorov and Smirnov's largest
// distance). Runs beside the first count for the influence of the batch alone. The first iteration of a worker does
// not count, because caches are cold.
func fitCompute(m *configs.Simulate, runs [][]straggler.Trace) (drawn Drawn, batches int) {
	n := len(runs[0])
	times, costs := make([][]float64, n), make([]sim.Cost, n)
	for w := range n {
		var of []timed
		for _, traces := range runs {
			of = append(of, meansByBatch(warm(traces[w]))...)
		}
		of = joined(of)
		batches = max(batches, len(of))
		costs[w] = fitCost(of)
		for _, r := range warm(runs[0][w]) {
			times[w] = append(times[w], max(1, float64(costs[w].Stretched(r, batchOf(runs[0][w])))))
		}
	}
	bases, drawn := fitDistribution(times)
	for w := range costs { // so that the batch of the first run takes its base
		c, batch := &costs[w], float64(batchOf(runs[0][w]))
		scale := bases[w] / max(1e-9, c.Fixed+float64(c.PerSample*batch))
		c.Fixed, c.PerSample = c.Fixed*scale, c.PerSample*scale
	}
	if mean := meanCost(costs); math.Round(mean.PerSample) == 0 { // too little to be written
		for w := range costs {
			costs[w] = sim.Cost{Fixed: bases[w]}
		}
	}
	setCosts(m, costs)
	return drawn, batches
}

// warm leaves out the first iteration.
func warm(t straggler.Trace) straggler.Trace { return t[min(1, len(t)-1):] }

// batchOf is the batch that stands for a trace.
func batchOf(t straggler.Trace) int64 { return int64(max(1, warm(t)[0].Samples)) }

func meansByBatch(t straggler.Trace) (all []timed) {
	for _, r := range t {
		all = append(all, timed{batch: float64(max(1, r.Samples)), mean: max(1, float64(r.Own)), n: 1})
	}
	return joined(all)
}

// joined has one mean for each batch, ascending.
func joined(all []timed) (of []timed) {
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(a.batch, b.batch) })
	for _, x := range all {
		if k := len(of) - 1; k >= 0 && of[k].batch == x.batch {
			of[k].mean += (x.mean - of[k].mean) * x.n / (of[k].n + x.n)
			of[k].n += x.n
			continue
		}
		of = append(of, x)
	}
	return of
}

// setCosts writes the costs of workers as a common cost and factors. What a sample takes is written in whole nanoseconds.
func setCosts(m *configs.Simulate, costs []sim.Cost) {
	mean := meanCost(costs)
	m.Compute.Fixed, m.Compute.PerSample = time.Duration(digits(mean.Fixed, 4)), time.Duration(math.Round(digits(mean.PerSample, 4)))
	m.PerWorker, m.FixedPerWorker = nil, nil
	if m.Compute == (workload.Cost{}) {
		m.Compute.Fixed = 1
	}
	if len(costs) > listMax {
		return
	}
	for _, c := range costs {
		if m.Compute.PerSample > 0 {
			m.PerWorker = append(m.PerWorker, digits(max(1e-6, c.PerSample/float64(m.Compute.PerSample)), 4))
		}
		switch factor := c.Fixed / float64(max(1, m.Compute.Fixed)); {
		case m.Compute.Fixed > 0 && m.Compute.PerSample > 0:
			m.FixedPerWorker = append(m.FixedPerWorker, digits(factor, 4))
		case m.Compute.Fixed > 0:
			m.PerWorker = append(m.PerWorker, digits(max(1e-6, factor), 4))
		}
	}
}

func meanCost(costs []sim.Cost) (mean sim.Cost) {
	for _, c := range costs {
		mean.Fixed, mean.PerSample = mean.Fixed+c.Fixed/float64(len(costs)), mean.PerSample+c.PerSample/float64(len(costs))
	}
	return mean
}

// fitDistribution returns the base of each worker's times, and a distribution around the bases.
func fitDistribution(times [][]float64) (bases []float64, drawn Drawn) {
	bases, spread := fitNormal(times)
	kind := "normal"
	gap := distance(times, bases, spread, func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 })
	shifts, tail := fitExponential(times)
	if g := distance(times, shifts, tail, func(z float64) float64 { return 1 - math.Exp(-max(0, z)) }); g < gap && tail <= 1000 {
		bases, spread, kind, gap = shifts, tail, "exponential", g
	}
	drawn = Drawn{Share: 1, Gap: gap}
	switch {
	case spread < 1e-6:
		drawn.Gap = 0
	case kind == "exponential":
		drawn.Slow = &straggler.Spec{Kind: kind, Factor: 1 + digits(spread, 4)}
	default:
		drawn.Share, drawn.Slow = NormalAbove(spread)
	}
	return bases, drawn
}

// NormalAbove returns a least time, as a share of a mean, and a slowness over it, that together make normal times of
// that mean and of a standard deviation that is a share of it. Slowness is never negative, so times below the least
// are cut off there: three standard deviations below the mean, or a twentieth of the mean if that is more.
func NormalAbove(share float64) (least float64, slow *straggler.Spec) {
	below := min(0.95, 3*share)
	return 1 - below, &straggler.Spec{Kind: "normal", Factor: 1 + digits(below/(1-below), 4), Spread: min(10, digits(share/below, 4))}
}

// fitNormal returns the mean of each worker, and the standard deviation of all times as a share of the mean.
func fitNormal(times [][]float64) (bases []float64, spread float64) {
	squares, n := 0.0, 0
	for _, of := range times {
		b := meanOf(of)
		bases = append(bases, b)
		for _, x := range of {
			squares += (x/b - 1) * (x/b - 1)
		}
		n += len(of)
	}
	return bases, math.Sqrt(squares / float64(n))
}

// fitExponential returns the shift of each worker's times, and the mean excess over the shift as a share of the shift. The
// smallest of n times exceeds the shift by 1/n of the mean excess.
func fitExponential(times [][]float64) (bases []float64, spread float64) {
	above, n := 0.0, 0
	for _, of := range times {
		m, least := meanOf(of), slices.Min(of)
		b := max(least-(m-least)/max(1, float64(len(of)-1)), m/1000)
		bases = append(bases, b)
		above += (m/b - 1) * float64(len(of))
		n += len(of)
	}
	return bases, above / float64(n)
}

func meanOf(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum / float64(len(x))
}

// distance is the largest distance between cdf and the distribution of all times, as deviations from the base of their worker in
// units of the spread.
func distance(times [][]float64, bases []float64, spread float64, cdf func(float64) float64) float64 {
	if spread == 0 {
		return 0
	}
	var z []float64
	for w, of := range times {
		for _, x := range of {
			z = append(z, (x/bases[w]-1)/spread)
		}
	}
	slices.Sort(z)
	most := 0.0
	for i, v := range z {
		p := cdf(v)
		most = max(most, p-float64(i)/float64(len(z)), float64(i+1)/float64(len(z))-p)
	}
	return most
}

// timed is the mean time of the iterations of one batch, in nanoseconds.
type timed struct {
	batch, mean float64
	n           float64 // number of iterations
}

// fitCost is the line through mean times by least squares, neither part of it below 0. With times of one batch only
// it is a time per sample.
func fitCost(of []timed) sim.Cost {
	var n, b, t, bb, bt float64
	for _, x := range of {
		n, b, t, bb, bt = n+1, b+x.batch, t+x.mean, bb+float64(x.batch*x.batch), bt+float64(x.batch*x.mean)
	}
	if len(of) < 2 {
		return sim.Cost{PerSample: bt / bb}
	}
	slope := (n*bt - float64(b*t)) / (n*bb - float64(b*b))
	switch fixed := (t - float64(slope*b)) / n; {
	case slope < 0 || math.IsNaN(slope):
		return sim.Cost{Fixed: t / n}
	case fixed < 0:
		return sim.Cost{PerSample: bt / bb}
	default:
		return sim.Cost{Fixed: fixed, PerSample: slope}
	}
}
