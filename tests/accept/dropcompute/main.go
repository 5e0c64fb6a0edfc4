// Command dropcompute integrates the speed-up of DropCompute numerically, for micro-batches that take a fixed time and a
// lognormal one. It shares no code with the simulator and the policy.
//
//	dropcompute -n 64 -m 16 -fixed 10 -mean 10 -spread 1 -tc 0.5 TAU...    times in one unit
//
// For each tau it prints tau, S(tau), E[m(tau)]/M and E[max T(tau)]; without any, the tau with the largest S. The chance of each
// latency lies on a grid, and convolutions add latencies up.
package main

import (
	"flag"
	"fmt"
	"math"
	"os"
	"strconv"
)

// grid is the width of a bin, and bins their number.
type grid struct {
	width float64
	bins  int
}

// lognormal returns the chance of each bin for a latency of fixed, and a lognormal time of a mean whose logarithm has the deviation spread.
func (g grid) lognormal(fixed, mean, spread float64) []float64 {
	below := func(x float64) float64 {
		if x -= fixed; x <= 0 {
			return 0
		}
		return math.Erfc(-(math.Log(x/mean)+spread*spread/2)/spread/math.Sqrt2) / 2
	}
	p := make([]float64, g.bins)
	for i := range p {
		p[i] = below((float64(i)+0.5)*g.width) - below((float64(i)-0.5)*g.width)
	}
	return p
}

// plus returns the chances of a sum.
func (g grid) plus(a, b []float64) []float64 {
	sum := make([]float64, g.bins)
	for i, x := range a {
		if x < 1e-15 {
			continue
		}
		for j := 0; i+j < g.bins; j++ {
			sum[i+j] += x * b[j]
		}
	}
	return sum
}

// longest is the mean of the largest of n.
func (g grid) longest(p []float64, n int) (mean float64) {
	below := 0.0
	for _, x := range p {
		below += x
		mean += (1 - math.Pow(min(1, below), float64(n))) * g.width
	}
	return mean
}

// model is a cluster: n workers with m micro-batches of chances p, and an iteration's time without computing.
type model struct {
	grid
	n, m  int
	p     []float64
	tc    float64
	whole float64
}

// speedUp is S(tau). No micro-batch begins after tau.
func (c *model) speedUp(tau float64) (s, share, longest float64) {
	going, stopped := make([]float64, c.bins), make([]float64, c.bins)
	going[0] = 1
	done := 0.0
	for j := 1; j <= c.m; j++ {
		for _, x := range going {
			done += x
		}
		next := c.plus(going, c.p)
		for i, x := range next {
			if j == c.m || float64(i)*c.width > tau {
				stopped[i] += x
				next[i] = 0
			}
		}
		going = next
	}
	longest = c.longest(stopped, c.n)
	if c.whole == 0 {
		c.whole = longest
	}
	share = done / float64(c.m)
	return share * (c.whole + c.tc) / (longest + c.tc), share, longest
}

func main() {
	n, m := flag.Int("n", 64, "workers"), flag.Int("m", 16, "micro-batches of an iteration")
	fixed, mean := flag.Float64("fixed", 0, "fixed time of a micro-batch"), flag.Float64("mean", 1, "mean of its lognormal time")
	spread, tc := flag.Float64("spread", 0.5, "deviation of its logarithm"), flag.Float64("tc", 0, "time of an iteration without computing")
	flag.Parse()
	one := *fixed + *mean
	c := model{grid: grid{one / 50, 50 * *m * 5}, n: *n, m: *m, tc: *tc}
	c.p = c.lognormal(*fixed, *mean, *spread)
	c.speedUp(math.Inf(1))
	show := func(tau float64) {
		s, share, longest := c.speedUp(tau)
		fmt.Printf("%.6g %.6g %.6g %.6g\n", tau, s, share, longest)
	}
	for _, arg := range flag.Args() {
		tau, err := strconv.ParseFloat(arg, 64)
		if err != nil {
			fmt.Fprintln(os.Stderr, "dropcompute:", err)
			os.Exit(2)
		}
		show(tau)
	}
	if flag.NArg() > 0 {
		return
	}
	best, most := 0.0, 0.0
	for tau := one * float64(*m) / 3; tau < 2*one*float64(*m); tau += one / 3 {
		if s, _, _ := c.speedUp(tau); s > most {
			best, most = tau, s
		}
	}
	show(best)
}
