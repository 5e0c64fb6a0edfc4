package optim

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// larsTwin is Algorithm 1 of the paper in float64, with the rate outside the momentum and the weight decay of each element.
func larsTwin(w, v, g, decay []float64, lr, mu, trust float64) {
	var gg, ww, dd float64
	for i := range w {
		gg += g[i] * g[i]
		ww += w[i] * w[i]
		dd += decay[i] * w[i] * decay[i] * w[i]
	}
	local := trust * math.Sqrt(ww) / (math.Sqrt(gg) + math.Sqrt(dd))
	for i := range w {
		v[i] = mu*v[i] + local*(g[i]+decay[i]*w[i])
		w[i] -= lr * v[i]
	}
}

func larsStore(t testing.TB, n int, runs []Run, momentum, trust float64) *Store {
	r := mustNew(t, Spec{Name: "lars", LR: 2, Momentum: momentum, Trust: trust})
	return NewStore(n, runs, Update{Rule: r, LR: 2, Sched: Schedule{Name: "constant"}}, Optimize)
}

func TestLARSFollowsTheFloat64Twin(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{1, 5, blockElements + 3, 2*squaresBlock + 77} {
		cut := n / 3
		s := larsStore(t, n, []Run{{Hi: cut, Decay: 0.01}, {Lo: cut, Hi: n}}, 0.9, 0.02)
		w := gaussian(rng, n)
		want, v, decay := widen(w), make([]float64, n), make([]float64, n)
		for i := range cut {
			decay[i] = float64(float32(0.01))
		}
		for range 5 {
			a, b, g := gaussian(rng, n), gaussian(rng, n), make([]float64, n)
			for i := range g {
				g[i] = (float64(a[i]) + 0.5*float64(b[i])) / 32
			}
			s.Fold(0, a, 0, 1)
			s.Fold(0, b, 1, 0.5)
			s.Commit(w, w, 0, 1, 1.0/32)
			larsTwin(want, v, g, decay, 2, float64(float32(0.9)), 0.02)
			close32(t, "w", w, want, 1e-5)
		}
		close32(t, "v", s.state[0], v, 1e-5)
	}
}

// TestLARSNormsDoNotDependOnPieces: the bits do not depend on the number of pieces of a commit, or on the order in which they run.
func TestLARSNormsDoNotDependOnPieces(t *testing.T) {
	const n = 3*squaresBlock + 1003
	rng := rand.New(rand.NewPCG(7, 8))
	start, push := gaussian(rng, n), gaussian(rng, n)
	var want []float32
	for pieces := 1; pieces <= 6; pieces++ {
		s := larsStore(t, n, []Run{{Hi: 12345, Decay: 0.01}, {Lo: 12345, Hi: n}}, 0.9, 0.02)
		spreadTests(s, pieces)
		w := append([]float32(nil), start...)
		for range 2 {
			s.Fold(0, push, 0, 1)
			s.Commit(w, w, 0, 1, 0.125)
		}
		if pieces == 1 {
			want = w
		} else if i := bitsDiffer(w, want); i >= 0 {
			t.Fatalf("%d pieces: element %d is %v, with one piece %v", pieces, i, w[i], want[i])
		}
	}
	if bitsDiffer(want, start) < 0 {
		t.Error("two commits changed nothing")
	}
}

// TestLARSStepsAreAShareOfTheParameters: without decay and momentum a step is lr * trust of the norm of the parameters,
// however large the gradient is. That is the purpose of LARS (section 4 of the paper).
func TestLARSStepsAreAShareOfTheParameters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 50).Draw(t, "n")
		scale := float32(math.Ldexp(1, rapid.IntRange(-30, 30).Draw(t, "scale")))
		w, g := drawVector(t, n, "w"), drawVector(t, n, "g")
		w[0], g[0] = 1, 1 // another test covers norms of 0
		for i := range g {
			g[i] *= scale
		}
		r, err := New(Spec{Name: "lars", LR: 2, Trust: 0.02})
		if err != nil {
			t.Fatal(err)
		}
		s := NewStore(n, []Run{{Hi: n}}, Update{Rule: r, LR: 2, Sched: Schedule{Name: "constant"}}, Optimize)
		next := make([]float32, n)
		s.Fold(0, g, 0, 1)
		s.Commit(next, w, 0, 1, 1)
		var step, norm float64
		for i := range w {
			step += math.Pow(float64(next[i])-float64(w[i]), 2)
			norm += float64(w[i]) * float64(w[i])
		}
		if got, want := math.Sqrt(step/norm), 2*0.02; math.Abs(got-want) > 1e-5 {
			t.Fatalf("the step is %v of the parameters, want %v", got, want)
		}
	})
}

// TestLARSWhereNormsAreZero: parameters that are all 0 move by lr * trust * gradient. Parameters without a gradient decay at the
// rate trust / decay. If both are 0, or the gradient has nearly vanished, nothing becomes NaN.
func TestLARSWhereNormsAreZero(t *testing.T) {
	tiny := float32(math.SmallestNonzeroFloat32)
	for _, c := range []struct {
		what        string
		w, g, decay float32
		want        float64
	}{
		{"no parameters", 0, 8, 0.5, -2 * 0.25 * 8},
		{"no gradient", 4, 0, 0.5, 4 - 2*(0.25/0.5)*0.5*4},
		{"no gradient and no decay", 4, 0, 0, 4},
		{"nothing", 0, 0, 0, 0},
		{"a gradient that vanishes", 1e-3, tiny, 0, 1e-3},
	} {
		s := larsStore(t, 2, []Run{{Hi: 2, Decay: c.decay}}, 0, 0.25)
		next := make([]float32, 2)
		s.Fold(0, []float32{c.g, 0}, 0, 1)
		s.Commit(next, []float32{c.w, 0}, 0, 1, 1)
		if math.Abs(float64(next[0])-c.want) > 1e-6 || next[1] != 0 {
			t.Errorf("%s: %v, want %v and 0", c.what, next, c.want)
		}
	}
}

// TestLARSTakesTheNormOfAWeightedSum: a negative weight only reverses the step.
func TestLARSTakesTheNormOfAWeightedSum(t *testing.T) {
	for weight, want := range map[float64]float32{0.5: 3, -0.5: 5, 4: 3} {
		s := larsStore(t, 1, []Run{{Hi: 1}}, 0, 0.125)
		next := make([]float32, 1)
		s.Fold(0, []float32{16}, 0, 1)
		s.Commit(next, []float32{4}, 0, 1, weight)
		if next[0] != want {
			t.Errorf("weight %v: %v, want %v", weight, next[0], want)
		}
	}
}

func TestLARSMakesNoDeltas(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic, but the norms would be those of pieces")
		}
	}()
	NewDelta(1, Update{Rule: mustNew(t, spec("lars"))})
}
