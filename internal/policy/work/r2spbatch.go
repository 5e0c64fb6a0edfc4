package work

import (
	"fmt"
	"math"
	"slices"
)

// r2spBatch deals batches so that all workers finish together, by the cost C(b) = a + c b of each. The median time of
// a profile is one point of a worker's line, until its load changes; with points of one batch only, a is 0. Batches
// change after the first profile, and later when so many profiles in a row find a worker further from the common
// finish time than delta gaps, where a gap is that time divided by the workers. Source: the abstract says that
// batches are tuned by processing capability [P]; all formulas are reconstructed, from even gaps and from LB-BSP [R].
type r2spBatch struct {
	s       Spec
	e       Env
	batches []int
	dealt   bool      // batches were dealt by a profile
	unfit   int       // profiles in a row that judged the batches unfit
	points  [][]point // by worker: of the batches that it had, the newest last
}

// point is the median time of iterations of a batch, in nanoseconds.
type point struct{ batch, took float64 }

// pointsMax is how many batches of a worker count. Older ones say little of a worker whose load changes.
const pointsMax = 4

func newR2SPBatch(s Spec, e Env) Policy {
	return &r2spBatch{s: s, e: e, points: make([][]point, e.Workers)}
}

func (r *r2spBatch) Start() Plan {
	weights := make([]float64, r.e.Workers)
	for i := range weights {
		weights[i] = 1
	}
	r.batches = Split(r.e.Batch, weights, 1, r.e.Max)
	return r.plan()
}

func (r *r2spBatch) plan() Plan {
	return Plan{Batches: slices.Clone(r.batches), Iterations: r.s.Profile}
}

func (r *r2spBatch) Step(measured []Measured) Plan {
	present := make([]float64, len(measured))
	changed := false
	for i, m := range measured {
		if m.Iterations == 0 {
			changed = changed || r.batches[i] > 0
			continue
		}
		present[i] = 1
		if m.Median <= 0 { // a worker that has resumed may have measured nothing
			continue
		}
		at := point{float64(r.batches[i]), float64(m.Median)}
		if !agrees(r.points[i], at) {
			r.points[i] = nil
		}
		r.points[i] = append(slices.DeleteFunc(r.points[i], func(p point) bool { return p.batch == at.batch }), at)
		if n := len(r.points[i]); n > pointsMax {
			r.points[i] = r.points[i][n-pointsMax:]
		}
	}
	if r.unfit++; r.fits(measured) {
		r.unfit = 0
	}
	if r.dealt && !changed && r.unfit < r.s.Rounds {
		return r.plan()
	}
	r.dealt, r.unfit = true, 0
	r.batches = r.deal(present)
	return r.plan()
}

// loadTolerance is how far from its line a worker's time may be. If it is further, the worker's load has changed, and
// earlier points say nothing.
const loadTolerance = 0.2

// agrees says whether a point is near what the earlier points of a worker foretell. One earlier point foretells all
// between a cost without a fixed part and a fixed cost.
func agrees(points []point, now point) bool {
	if len(points) == 0 {
		return true
	}
	l := line(points)
	lo := l.batch + float64(l.took*now.batch)
	hi := lo
	if len(points) == 1 {
		lo, hi = min(lo, points[0].took), max(hi, points[0].took)
	}
	return now.took >= (1-loadTolerance)*lo && now.took <= (1+loadTolerance)*hi
}

// fits says whether every worker finished near the common time.
func (r *r2spBatch) fits(measured []Measured) bool {
	var sum, n float64
	for _, m := range measured {
		if m.Median > 0 {
			sum, n = sum+float64(m.Median), n+1
		}
	}
	for _, m := range measured {
		if m.Median > 0 && math.Abs(float64(m.Median)-sum/n) > r.s.Delta*sum/n/n {
			return false
		}
	}
	return true
}

// deal finds the batches with which all workers that are present finish together.
func (r *r2spBatch) deal(present []float64) []int {
	batch, most := limited(r.e, present)
	lines := make([]point, len(present)) // a and c, as a point
	fastest := point{}
	for i := range present {
		if present[i] > 0 && len(r.points[i]) > 0 {
			if lines[i] = line(r.points[i]); fastest.took == 0 || lines[i].took < fastest.took {
				fastest = lines[i]
			}
		}
	}
	for i := range present {
		if present[i] > 0 && lines[i].took == 0 { // its clock did not move, or it has measured nothing
			lines[i] = point{fastest.batch, max(1, fastest.took)}
		}
	}
	at := func(i int, finish float64) float64 {
		return min(float64(most), max(1, (finish-lines[i].batch)/lines[i].took))
	}
	lo, hi := 0.0, 1.0
	all := func(finish float64) (sum float64) {
		for i := range present {
			if present[i] > 0 {
				sum += at(i, finish)
			}
		}
		return sum
	}
	for all(hi) < float64(batch) && hi < 1e18 {
		hi *= 2
	}
	for range 200 {
		if mid := lo + (hi-lo)/2; all(mid) < float64(batch) {
			lo = mid
		} else {
			hi = mid
		}
	}
	weights := make([]float64, len(present))
	for i := range present {
		if present[i] > 0 {
			weights[i] = at(i, hi)
		}
	}
	return Split(batch, weights, 1, most)
}

// line is the cost a + c b through points by least squares, as point{a, c}. Neither is negative, and c is not 0: a
// batch that costs nothing would have no limit.
func line(points []point) point {
	var n, b, t, bb, bt float64
	for _, p := range points {
		n, b, t, bb, bt = n+1, b+p.batch, t+p.took, bb+float64(p.batch*p.batch), bt+float64(p.batch*p.took)
	}
	through := point{0, bt / bb}
	if len(points) < 2 {
		return through
	}
	c := (n*bt - float64(b*t)) / (n*bb - float64(b*b))
	a := (t - float64(c*b)) / n
	if !(c > 1e-3*through.took) || !(a > 0) {
		return through
	}
	return point{a, c}
}

// Memory holds whether batches were dealt, the unfit profiles in a row, and the points by worker.
func (r *r2spBatch) Memory() []float64 {
	m := []float64{0, float64(r.unfit)}
	if r.dealt {
		m[0] = 1
	}
	for _, of := range r.points {
		m = append(m, float64(len(of)))
		for _, p := range of {
			m = append(m, p.batch, p.took)
		}
	}
	return m
}

func (r *r2spBatch) Recall(batches []int, memory []float64) error {
	at, bad := 0, false
	next := func(least, most float64) float64 {
		if at >= len(memory) || !(memory[at] >= least && memory[at] <= most) {
			bad = true
			return least
		}
		at++
		return memory[at-1]
	}
	dealt, unfit := next(0, 1), next(0, roundsMax)
	points := make([][]point, r.e.Workers)
	for i := range points {
		for range int(next(0, pointsMax)) {
			points[i] = append(points[i], point{next(1, float64(r.e.Max)), next(1, tookMax)})
		}
	}
	if bad || at != len(memory) {
		return fmt.Errorf("work: value %d of the %d that r2sp_batch remembers cannot be one of a run of %d workers with "+
			"at most %d samples each; resume from another checkpoint", at, len(memory), r.e.Workers, r.e.Max)
	}
	r.dealt, r.unfit, r.batches, r.points = dealt == 1, int(unfit), slices.Clone(batches), points
	return nil
}

// Limits of what a checkpoint may say.
const (
	roundsMax = 1000 // as of Spec.Rounds
	tookMax   = 1e18 // nanoseconds
)
