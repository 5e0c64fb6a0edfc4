package send

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// curve is a model of a step: a small credit leaves the link idle between pieces, a large one delays urgent pieces.
func curve(best float64) func(credit int64) float64 {
	return func(credit int64) float64 {
		x := math.Log2(float64(credit) / best)
		return 0.1 * (1 + 0.08*x*x)
	}
}

// tune runs more iterations than a search takes, and returns the credits in turn.
func tune(o Options, cost func(int64) float64, spread float64, seed uint64) (tried []int64, c *credit) {
	c = newCredit(o).(*credit)
	noise := rand.New(rand.NewPCG(seed, 2))
	at := 0.0
	for range o.Tune.Points*(o.Tune.Steps+1) + 5 {
		c.Step(Event{Kind: Started, At: time.Duration(at * 1e9)}, nil)
		if n := len(tried); n == 0 || tried[n-1] != c.credit {
			tried = append(tried, c.credit)
		}
		at += cost(c.credit) * (1 + spread*noise.NormFloat64())
	}
	return tried, c
}

var tuned = Options{Spec: Spec{Credit: 16e6, Tune: Tune{Points: 15, Steps: 20, Min: 4e6, Max: 64e6}}}

// On curves with their best credit anywhere in the range, or at its ends, a search of 15 points comes within 2% of the
// best step, with and without noise of 5% per step.
func TestTheSearchFindsAGoodCredit(t *testing.T) {
	for _, best := range []float64{2e6, 4e6, 7e6, 16e6, 40e6, 64e6, 100e6} {
		for seed := range uint64(20) {
			for _, spread := range []float64{0, 0.05} {
				o := tuned
				o.Seed = seed
				cost := curve(best)
				_, c := tune(o, cost, spread, seed)
				least := cost(int64(min(64e6, max(4e6, best))))
				if got := cost(c.credit); !c.tuner.done || got > 1.02*least {
					t.Errorf("best credit %.3g, seed %d, noise %g: %v with steps of %.4gs, the least is %.4gs", best, seed, spread, c, got, least)
				}
			}
		}
	}
}

// The first point is the credit that was set, to the byte. All points lie in the range. The same seed makes the same
// search, and another worker's search differs.
func TestTheSearchFollowsFromItsSeed(t *testing.T) {
	o := tuned
	o.Credit = 12345678
	a, c := tune(o, curve(7e6), 0.05, 1)
	b, _ := tune(o, curve(7e6), 0.05, 1)
	if fmt.Sprint(a) != fmt.Sprint(b) || a[0] != o.Credit {
		t.Errorf("%v and %v", a, b)
	}
	for _, credit := range a {
		if credit < o.Tune.Min || credit > o.Tune.Max {
			t.Errorf("%d is not between %d and %d", credit, o.Tune.Min, o.Tune.Max)
		}
	}
	if n := len(c.tuner.tried); n != 15 {
		t.Errorf("%d points", n)
	}
	o.Node = 1
	if d, _ := tune(o, curve(7e6), 0.05, 1); fmt.Sprint(a) == fmt.Sprint(d) {
		t.Errorf("two workers draw alike: %v", a)
	}
}

// A point is averaged over its steps except the first, which has the last point's pieces in flight.
func TestAPointIsAveragedOverItsSteps(t *testing.T) {
	o := tuned
	o.Tune.Points, o.Tune.Steps = 2, 3
	tu := newTuner(o)
	for _, at := range []float64{0, 9, 10, 11, 13, 20} { // steps of 9, then 1, 1 and 2 seconds
		tu.started(time.Duration(at * 1e9))
	}
	if len(tu.tried) != 1 || math.Abs(tu.tried[0].cost-4.0/3) > 1e-9 || tu.done {
		t.Errorf("tried %+v", tu.tried)
	}
	for _, at := range []float64{21, 22, 23} {
		tu.started(time.Duration(at * 1e9))
	}
	if !tu.done || len(tu.tried) != 2 || math.Abs(tu.tried[1].cost-1) > 1e-9 || tu.bytes(tu.credit) != tu.bytes(tu.tried[1].at) {
		t.Errorf("%v, tried %+v", tu, tu.tried)
	}
}

// The factor and the two solves undo each other.
func TestTheProcessSolvesItsEquations(t *testing.T) {
	tried := []point{{0.1, 1}, {0.4, 2}, {0.45, 2.5}, {0.9, 0.5}, {0.1, 1.1}}
	l := cholesky(tried)
	y := []float64{1, -2, 0.5, 3, 0.25}
	x := backward(l, forward(l, y))
	for i := range tried {
		sum := noise * x[i]
		for j := range tried {
			sum += kernel(tried[i].at, tried[j].at) * x[j]
		}
		if math.Abs(sum-y[i]) > 1e-9 {
			t.Errorf("row %d: %g, want %g", i, sum, y[i])
		}
	}
}

// A range of one value, and costs that are all alike, make no trouble.
func TestASearchWithNothingToFind(t *testing.T) {
	o := tuned
	o.Tune.Min, o.Tune.Max, o.Credit = 5e6, 5e6, 5e6
	if _, c := tune(o, curve(7e6), 0, 1); c.credit != 5e6 || !c.tuner.done {
		t.Errorf("%v", c)
	}
	if _, c := tune(tuned, func(int64) float64 { return 1 }, 0, 1); c.credit < 4e6 || c.credit > 64e6 || !c.tuner.done {
		t.Errorf("%v", c)
	}
}

// Over a thin link the search begins with the window that other orders have, and tries larger credits; elsewhere with
// ByteScheduler's. What the configuration says holds.
func TestTheSearchFollowsTheLink(t *testing.T) {
	thin := []int64{32 << 10, 32 << 10}
	for _, c := range []struct {
		spec    Spec
		windows []int64
		credit  int64
		lo, hi  int64
	}{
		{Spec{}, nil, 16e6, 4e6, 64e6},
		{Spec{}, thin, 32 << 10, 32 << 10, 1 << 20},
		{Spec{Credit: 1e6, Tune: Tune{Min: 5e5, Max: 2e6}}, thin, 1e6, 5e5, 2e6},
		{Spec{Tune: Tune{Max: 1e6}}, nil, 16e6, 1e6, 1e6},
		{Spec{Tune: Tune{Min: 1e8}}, nil, 16e6, 1e8, 1e8},
	} {
		o := Options{Spec: c.spec, Windows: c.windows}
		if credit, tune := o.CreditOf(); credit != c.credit || tune.Min != c.lo || tune.Max != c.hi {
			t.Errorf("%+v over %v: credit %d, from %d to %d", c.spec, c.windows, credit, tune.Min, tune.Max)
		}
	}
	o := Options{Spec: Spec{Tune: Tune{Points: 3, Steps: 1}}, Windows: thin}
	if got := newCredit(o).String(); got != "credit held=0 flying=0B credit=32768B tuning 0/3" {
		t.Error(got)
	}
}

// Each destination has its own window.
func TestWindowsOfDestinations(t *testing.T) {
	for _, name := range []string{"auto", "fifo", "priority", "aligned"} {
		e, _ := All.Lookup(name)
		for _, p := range []Policy{e.New(Options{Windows: []int64{100, 300}}), e.Reply(Options{Windows: []int64{100, 300}})} {
			left := map[int32]int{}
			for piece := range int32(10) {
				left[piece%2] += len(p.Step(Event{Kind: Handed, Piece: piece, To: piece % 2, Bytes: 100}, nil))
			}
			if left[0] != 1 || left[1] != 3 || p.Held() != 6 {
				t.Errorf("%s: %v have left, %d wait", name, left, p.Held())
			}
		}
	}
	e, _ := All.Lookup("auto")
	if _, whole := e.New(Options{}).(*fifo); !whole || e.Reply(Options{}) != nil {
		t.Error("auto without windows is not fifo")
	}
	if _, urgent := e.New(Options{Windows: []int64{1}}).(*aligned); !urgent {
		t.Error("auto with windows is not aligned")
	}
}
