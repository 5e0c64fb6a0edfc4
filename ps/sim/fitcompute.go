package sim

import (
	"math"
	"slices"
	"time"

	"fluentps/configs"
)

// fitCompute fits a base, each worker's multiple of the base, and the noise around them. It tries normal and exponential noise and
// takes the one whose distribution is closer to that of the times. gap is the largest distance between these distributions
// (Kolmogorov and Smirnov's). The first iteration of a worker does not count, because caches are cold.
func fitCompute(traces [][]time.Duration) (base time.Duration, perWorker []float64, noise configs.Noise, gap float64) {
	times := make([][]float64, len(traces))
	for w, t := range traces {
		for _, d := range t[min(1, len(t)-1):] {
			times[w] = append(times[w], max(1, float64(d)))
		}
	}
	bases, spread := fitNormal(times)
	kind := "normal"
	gap = distance(times, bases, spread, func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 })
	shifts, tail := fitExponential(times)
	if g := distance(times, shifts, tail, func(z float64) float64 { return 1 - math.Exp(-max(0, z)) }); g < gap && tail <= 1000 {
		bases, spread, kind, gap = shifts, tail, "exponential", g
	}
	noise = configs.Noise{Kind: kind, Spread: digits(spread, 4)}
	if spread < 1e-6 {
		noise, gap = configs.Noise{Kind: "none"}, 0
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
	return time.Duration(common), perWorker, noise, gap
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
