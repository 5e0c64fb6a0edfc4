package send

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// Tune says how the credit is searched for. ByteScheduler tries 15 points, each for about 100 steps, between 1 and 16
// million parameters [A]. It names its search "Bayesian"; the kind of search here is ours [R]: a Gaussian process over
// the logarithm of the credit, whose next point has the greatest expected improvement.
type Tune struct {
	Points int   `yaml:"points" min:"0" max:"1000" when:"order=credit" doc:"credits that each worker tries before it keeps the best; 0: none"`
	Steps  int   `yaml:"steps" min:"1" max:"1e6" when:"order=credit" doc:"iterations over which the time of one is averaged"`
	Min    int64 `yaml:"min" min:"0B" max:"1048576GiB" unit:"bytes" when:"order=credit" doc:"smallest credit that is tried; 0B: the window of a thin link, else 4MB"`
	Max    int64 `yaml:"max" min:"0B" max:"1048576GiB" unit:"bytes" when:"order=credit" doc:"largest credit that is tried; 0B: 32 times the window of a thin link, else 64MB"`
}

// tuner searches for the credit with the shortest iterations of this worker. Each worker searches for its own, and
// measures iterations, not transfers. Another worker's trial disturbs it like any other noise.
type tuner struct {
	Tune
	rand   *rand.Rand
	tried  []point
	credit float64 // the place in the range of the credit that is being tried, or of the best one
	first  int64   // the exact bytes of the first point
	steps  int     // iterations begun with this credit; the first still has pieces of the previous credit in flight
	since  time.Duration
	done   bool
}

// point is a credit that was tried: its place in the range (0 to 1 on a logarithmic scale) and its mean step in
// seconds.
type point struct{ at, cost float64 }

// tuneStream separates these generators from all others of a run.
const tuneStream = 0x7e4e00000000

// drawnPoints is the number of random points that follow the first, one in each third of the range: the process needs
// some points to begin with.
const drawnPoints = 3

func newTuner(o Options) *tuner {
	t := &tuner{Tune: o.Tune, rand: rand.New(rand.NewPCG(o.Seed, tuneStream+o.Node)), first: o.Credit}
	t.credit = t.place(o.Credit)
	return t
}

// place is where a credit lies in the range, 0 to 1; a credit outside the range lies at its end.
func (t *tuner) place(credit int64) float64 {
	if t.Max == t.Min {
		return 0
	}
	at := math.Log(float64(credit)/float64(t.Min)) / math.Log(float64(t.Max)/float64(t.Min))
	return min(1, max(0, at))
}

func (t *tuner) bytes(at float64) int64 {
	return int64(math.Round(float64(t.Min) * math.Pow(float64(t.Max)/float64(t.Min), at)))
}

// started notes the start of an iteration, and returns the credit to use from now on.
func (t *tuner) started(at time.Duration) int64 {
	if !t.done {
		switch t.steps++; t.steps {
		case 2:
			t.since = at
		case t.Steps + 2:
			t.next((at - t.since).Seconds() / float64(t.Steps))
		}
	}
	if len(t.tried) == 0 {
		return t.first
	}
	return t.bytes(t.credit)
}

// next records the mean step of the credit that was tried. It chooses the next credit, or the best when all were tried.
func (t *tuner) next(cost float64) {
	t.tried = append(t.tried, point{t.credit, cost})
	t.steps = 1 // the iteration that starts now is the first with the next credit
	switch n := len(t.tried); {
	case n >= t.Points:
		t.credit, t.done = t.best().at, true
	case n <= drawnPoints:
		t.credit = (float64(n-1) + t.rand.Float64()) / drawnPoints
	default:
		t.credit = bestPlace(t.tried)
	}
}

func (t *tuner) best() point {
	best := t.tried[0]
	for _, p := range t.tried[1:] {
		if p.cost < best.cost {
			best = p
		}
	}
	return best
}

func (t *tuner) String() string {
	if t.done {
		return fmt.Sprintf("tuned, mean step %.4gs", t.best().cost)
	}
	return fmt.Sprintf("tuning %d/%d", len(t.tried), t.Points)
}
