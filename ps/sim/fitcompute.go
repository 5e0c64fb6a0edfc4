package sim

import (
	"math"
	"slices"
	"time"

	"fluentps/ps/straggler"
)

// fitCompute fits a base, each worker's multiple of the base, and a distribution around them. It tries normal and exponential times and
// takes the one that is closer to the times (Kolmogorov and Smirnov's largest distance). The first iteration of a worker does not
// count, because caches are cold.
func fitCompute(traces [][]time.Duration) (base time.Duration, perWorker []float64, drawn Drawn) {
	times := make([][]float64, len(traces))
	for w, t := range traces {
		for _, d := range t[min(1, len(t)-1):] {
			times[w] = append(times[w], max(1, float64(d)))
		}
	}
	bases, spread := fitNormal(times)
	kind := "normal"
	gap := distance(times, bases, spread, func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 })
	shifts, tail := fitExponential(times)
	if g := distance(times, shifts, tail, func(z float64) float64 { return 1 - math.Exp(-max(0, z)) }); g < gap && tail <= 1000 {
		bases, spread, kind, gap = shifts, tail, "exponential", g
	}
	common := 0.0
	for _, b := range bases {
		common += b / float64(len(bases))
	}
	common = max(1, digits(common, 4))
	for _, b := range bases {
		perWorker = append(perWorker, digits(b/common, 4))
	}
	if len(perWorker) > listMax {
		perWorker = nil
	}
	drawn = Drawn{Compute: time.Duration(common), Gap: gap}
	switch {
	case spread < 1e-6:
		drawn.Gap = 0
	case kind == "exponential":
		drawn.Slow = &straggler.Spec{Kind: kind, Factor: 1 + digits(spread, 4)}
	default:
		drawn.Compute, drawn.Slow = normalAbove(common, spread)
	}
	return time.Duration(common), perWorker, drawn
}

// normalAbove returns a least time, and a slowness over it, that together make normal times of that mean and of a standard deviation that is
// a share of it. Slowness is never negative, so times below the least are cut off there: three standard deviations below the mean, or
// a twentieth of the mean if that is more.
func normalAbove(mean, share float64) (least time.Duration, slow *straggler.Spec) {
	below := min(0.95, 3*share)
	least = max(1, time.Duration(mean*(1-below)))
	return least, &straggler.Spec{Kind: "normal", Factor: 1 + digits(below/(1-below), 4), Spread: min(10, digits(share/below, 4))}
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
