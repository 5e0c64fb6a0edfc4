package optim

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

func drawVector(t *rapid.T, n int, name string) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rapid.Float64Range(-2, 2).Draw(t, name))
	}
	return v
}

// TestDeltasAddUpToTheServersStep: with plain SGD and one worker, what the worker pushes as a delta and the server adds
// is what the server would have made of the gradient (sync-core 6.1: averaging of one step is the synchronous update).
func TestDeltasAddUpToTheServersStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3*deltaBlock/2).Draw(t, "n")
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		samples := rapid.Int64Range(1, 64).Draw(t, "samples")
		clock := rapid.Int64Range(0, 20).Draw(t, "clock")
		runs := []Run{{Lo: 0, Hi: cut, Decay: 0.01}, {Lo: cut, Hi: n}}
		u := Update{Rule: sgd{}, LR: 0.1, Sched: Schedule{Name: "step", Every: 7, Factor: 0.5, WarmUp: 4}}
		params := drawVector(t, n, "w")
		grads := drawVector(t, n, "g")
		for i := range grads {
			grads[i] *= float32(samples)
		}

		want := make([]float32, n)
		server := NewStore(n, runs, u, false)
		Axpy(server.Sums(0), grads, 0, 1)
		server.Commit(want, params, float64(clock), 1, 1/float64(samples))

		d := NewDelta(n, u)
		for _, q := range runs {
			d.Step(grads, params, q, clock, samples)
		}
		got := make([]float32, n)
		adder := NewStore(n, runs, u, true)
		Axpy(adder.Sums(0), grads, 0, 1)
		adder.Commit(got, params, float64(clock), 1, 1/float64(samples))
		for i := range got {
			if math.Abs(float64(got[i]-want[i])) > 1e-6 {
				t.Fatalf("element %d of %d: added delta gives %v, the optimizer's step %v", i, n, got[i], want[i])
			}
		}
	})
}

// TestStoreKeepsAccumulatorsApart: an accumulator starts as zeros and commits read only the pending sums.
func TestStoreKeepsAccumulatorsApart(t *testing.T) {
	s := NewStore(2, []Run{{Lo: 0, Hi: 2}}, Update{}, true)
	Axpy(s.Sums(3), []float32{8, 16}, 1, 1)
	Axpy(s.Sums(0), []float32{1, 2}, 0, 1)
	dst := make([]float32, 2)
	s.Commit(dst, []float32{10, 20}, 0, 0.5, 0.5)
	if dst[0] != 10.25 || dst[1] != 20.5 || s.Sums(3)[1] != 16 || s.Sums(2)[0] != 0 {
		t.Fatalf("committed %v with accumulators %v and %v", dst, s.Sums(2), s.Sums(3))
	}
}

// TestDeltaKeepsMomentumOfItsOwn: two steps with the same gradient; the second goes further by the momentum.
func TestDeltaKeepsMomentumOfItsOwn(t *testing.T) {
	d := NewDelta(1, Update{Rule: momentum{mu: 0.5}, LR: 0.5, Sched: Schedule{Name: "constant"}})
	for i, want := range []float32{-8, -12} { // samples * -(lr * m): m is 4, then 0.5*4 + 4
		g := []float32{16} // a sum over 4 samples: mean 4
		d.Step(g, []float32{1}, Run{Lo: 0, Hi: 1}, int64(i), 4)
		if g[0] != want {
			t.Fatalf("step %d pushes %v, want %v", i, g[0], want)
		}
	}
}
