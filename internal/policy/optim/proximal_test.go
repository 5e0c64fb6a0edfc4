package optim

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestShrinkByHand: elements move towards 0 by the limit, never past it, and a NaN stays a NaN.
func TestShrinkByHand(t *testing.T) {
	x := []float32{3, -3, 1, -1, 1.25, 0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1))}
	want := []float32{2, -2, 0, 0, 0.25, 0, 0, float32(math.Inf(1)), float32(math.Inf(-1))}
	shrink(x, 1)
	if i := bitsDiffer(x, want); i >= 0 {
		t.Errorf("element %d is %v, want %v", i, x[i], want[i])
	}
	bad := []float32{float32(math.NaN())}
	if shrink(bad, 1); bad[0] == bad[0] {
		t.Errorf("NaN became %v", bad[0])
	}
}

// TestL1CommitIsTheStepAndThenTheShrink holds to the bit, in runs with and without the penalty, for every cut into pieces.
func TestL1CommitIsTheStepAndThenTheShrink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 7, blockElements + 3, 2*blockElements + 77}).Draw(t, "n")
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		l1 := rapid.SampledFrom([]float32{0.001, 0.5, 3}).Draw(t, "l1")
		runs := []Run{{Hi: cut, Decay: 0.25, L1: l1}, {Lo: cut, Hi: n, Decay: 0.25}}
		u := Update{Rule: sgd{}, LR: 0.5, Sched: Schedule{Name: "constant"}}
		src, push := anyVector(t, n, "src"), anyVector(t, n, "push")
		scale := rapid.SampledFrom([]float64{1, 0.25}).Draw(t, "scale")

		s := NewStore(n, runs, u, Optimize)
		spreadTests(s, rapid.IntRange(1, 3).Draw(t, "pieces"))
		got := make([]float32, n)
		s.Fold(0, push, 0, 1)
		s.Commit(got, src, 0, scale, 0.125)

		want, lr := make([]float32, n), float32(0.5*scale)
		sgdGo(want, src, push, lr, 0.125, 0.25)
		shrink(want[:cut], lr*l1)
		if i := bitsDiffer(got, want); i >= 0 {
			t.Fatalf("element %d of %d, cut at %d: %v from %v, want %v", i, n, cut, got[i], src[i], want[i])
		}
	})
}

// TestL1EndsAtTheMinimumOfThePenalisedLoss: steps on (w-a)^2/2 + l1*|w| end at its minimum: at a moved towards 0 by l1, and at
// exactly 0 if |a| is at most l1. Pushes of N workers that are a version each end there, too.
func TestL1EndsAtTheMinimumOfThePenalisedLoss(t *testing.T) {
	a := []float32{2, -2, 0.6, 0.4, -0.25, 0}
	want := []float64{1.5, -1.5, 0.1, 0, 0, 0}
	for _, workers := range []int{1, 4} {
		s := NewStore(len(a), []Run{{Hi: len(a), L1: 0.5}}, Update{Rule: sgd{}, LR: 0.2, Sched: Schedule{Name: "constant"}}, Optimize)
		w, g := make([]float32, len(a)), make([]float32, len(a))
		for i := range w {
			w[i] = 5
		}
		for range 100 * workers {
			for i := range g {
				g[i] = w[i] - a[i]
			}
			s.Fold(0, g, 0, 1)
			s.Commit(w, w, 0, 1/float64(workers), 1)
		}
		close32(t, "w", w, want, 1e-5)
		for i, v := range w {
			if want[i] == 0 && v != 0 {
				t.Errorf("%d workers: element %d is %v, want exactly 0", workers, i, v)
			}
		}
	}
}
