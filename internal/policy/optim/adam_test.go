package optim

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestAdamByHand uses constants that are exact in float32. Bias correction makes the first step lr against the sign of the
// gradient, however small the gradient is. An element that never had a gradient stays.
func TestAdamByHand(t *testing.T) {
	r := mustNew(t, Spec{Name: "adam", LR: 1, Beta1: 0.5, Beta2: 0.75, Epsilon: EpsilonMin})
	w, st := []float32{10, 10, 10}, stateOf(r, 3)
	for i, want := range [][]float32{
		{9.5, 10.5, 10}, // g 4: m 2, corrected 4; v 4, corrected 16
		// g 0: m 1, corrected 1/(3/4); v 3, corrected 3/(7/16): 0.5 * (4/3) / sqrt(48/7)
		{9.5 - 0.254588, 10.5 + 0.254588, 10},
	} {
		grad := []float32{32, -32, 0}
		if i == 1 {
			grad = make([]float32, 3)
		}
		r.Step(w, w, grad, st, Args{LR: 0.5, GradScale: 1.0 / 8, Step: int64(i + 1)})
		close32(t, "w", w, widen(want), 1e-6)
	}
	if st[0][0] != 1 || st[1][0] != 3 {
		t.Errorf("moments %v and %v, want 1 and 3", st[0][0], st[1][0])
	}
}

// TestAdamIgnoresTheScaleOfGradients: except for epsilon, a multiple of all gradients gives the same parameters (Kingma and Ba
// 2015, section 2.1).
func TestAdamIgnoresTheScaleOfGradients(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		scale := float32(math.Ldexp(1, rapid.IntRange(-20, 20).Draw(t, "scale")))
		r, err := New(Spec{Name: "adam", LR: 1, Beta1: 0.9, Beta2: 0.999, Epsilon: EpsilonMin})
		if err != nil {
			t.Fatal(err)
		}
		a, b := make([]float32, n), make([]float32, n)
		sa, sb := stateOf(r, n), stateOf(r, n)
		for step := range int64(rapid.IntRange(1, 8).Draw(t, "steps")) {
			g := rapid.SliceOfN(rapid.Float32Range(1e-3, 1e3), n, n).Draw(t, "g")
			r.Step(a, a, g, sa, Args{LR: 0.125, GradScale: 1, Step: step + 1})
			r.Step(b, b, g, sb, Args{LR: 0.125, GradScale: scale, Step: step + 1})
		}
		for i := range a {
			if d := math.Abs(float64(a[i]) - float64(b[i])); !(d <= 1e-5) || a[i] == 0 {
				t.Fatalf("element %d is %v, with gradients %v times as large %v", i, a[i], scale, b[i])
			}
		}
	})
}

func TestAdamRefusesAStepThatWasNotCounted(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("step 0 divides by zero, and there is no panic")
		}
	}()
	v := make([]float32, 1)
	mustNew(t, spec("adam")).Step(v, v, v, stateOf(adam{}, 1), Args{LR: 1})
}

// TestAdamEqualsItsTwin: the pass with vector instructions gives the bits of the plain loop and touches nothing after the end.
func TestAdamEqualsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 100).Draw(t, "n")
		x := func(what string) float32 { return anyFloat(t, what) }
		c := &adamScalars{k: x("k"), wd: x("wd"), b1: x("b1"), c1: x("c1"), b2: x("b2"), c2: x("c2"), rate: x("rate"),
			root: x("root"), epsilon: x("epsilon")}
		src, grad, m, v := anyVector(t, n, "src"), anyVector(t, n, "grad"), anyVector(t, n, "m"), anyVector(t, n, "v")
		for _, inPlace := range []bool{false, true} {
			run := func(pass func(dst, src, grad, m, v []float32, c *adamScalars)) [][]float32 {
				s, mm, vv := copyOf(src), copyOf(m), copyOf(v)
				dst := s
				if !inPlace {
					dst = copyOf(grad)
				}
				pass(dst, s, grad, mm, vv, c)
				return [][]float32{dst, mm, vv}
			}
			var top uint32
			got, want := run(func(dst, src, grad, m, v []float32, c *adamScalars) { top = adamPass(dst, src, grad, m, v, c) }), run(adamGo)
			if want := topGo(got[0]); top != want {
				t.Fatalf("in place %v: the largest magnitude of %d elements is %x, a look at them gives %x", inPlace, n, top, want)
			}
			for k := range got {
				if i := bitsDiffer(got[k], want[k]); i >= 0 {
					t.Fatalf("in place %v: element %d of %d of vector %d is %v, the twin gives %v", inPlace, i, n, k, got[k][i], want[k][i])
				}
				if bitsDiffer(behind(got[k]), behind(want[k])) >= 0 {
					t.Fatalf("a pass over %d elements writes after the end", n)
				}
			}
		}
	})
}

// TestAdamCountsItsOwnSteps: a server counts commits and a worker its local steps, independently of their clocks. So the deltas of
// one worker add up to the steps that the server would take with its gradients.
func TestAdamCountsItsOwnSteps(t *testing.T) {
	const n = deltaBlock + 10
	runs := []Run{{Lo: 0, Hi: 100, Decay: 0.01}, {Lo: 100, Hi: n}}
	u := Update{Rule: mustNew(t, spec("adam")), LR: 0.1, Sched: Schedule{Name: "constant"}}
	server, adder, local := NewStore(n, runs, u, Optimize), NewStore(n, runs, u, Add), NewDelta(n, u)
	a, b := make([]float32, n), make([]float32, n)
	for i := range a {
		a[i], b[i] = 1, 1
	}
	for step, iter := range []int64{3, 4, 9} { // iterations may be skipped
		g := make([]float32, n)
		for i := range g {
			g[i] = float32(i%13-6) * float32(step+1)
		}
		server.Fold(0, g, 0, 1)
		server.Commit(a, a, float64(iter), 1, 0.25)
		for _, q := range runs {
			local.Step(g, b, q, iter, 4)
		}
		adder.Fold(0, g, 0, 1)
		adder.Commit(b, b, float64(iter), 1, 0.25)
	}
	if server.steps != 3 || local.steps != 3 {
		t.Errorf("server counts %d steps and worker %d, want 3", server.steps, local.steps)
	}
	close32(t, "w", b, widen(a), 1e-6)
	if math.Abs(float64(a[0])-1) < 0.2 { // three steps of lr each, all in one direction
		t.Errorf("three steps of 0.1 moved a parameter from 1 to %v", a[0])
	}
}

// Decay of adamw is no part of the gradient: an element without gradients shrinks by 1 - lr*weight_decay a step and has no moments, and
// beside an element with gradients it takes the same from both. By hand, with constants that are exact in float32.
func TestAdamWDecaysBesideTheStep(t *testing.T) {
	s := Spec{Name: "adamw", LR: 1, Beta1: 0.5, Beta2: 0.75, Epsilon: EpsilonMin}
	r := mustNew(t, s)
	w, st := []float32{16, 16, -16}, stateOf(r, 3)
	r.Step(w, w, []float32{32, 0, 0}, st, Args{LR: 0.5, GradScale: 1.0 / 8, Decay: 0.25, Step: 1})
	if want := []float32{13.5, 14, -14}; bitsDiffer(w, want) >= 0 { // 16 * (1 - 0.5*0.25), and 0.5 against the sign of the gradient
		t.Errorf("after a step %v, want %v", w, want)
	}
	if st[0][1] != 0 || st[1][2] != 0 || st[0][0] != 2 || st[1][0] != 4 {
		t.Errorf("moments %v and %v: decay is in them", st[0], st[1])
	}
}

// Without weight decay adamw is adam, to the bit.
func TestAdamWWithoutDecayIsAdam(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		n := rapid.IntRange(1, 3*deltaBlock).Draw(t, "n")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		a := gaussian(rng, n)
		b := slices.Clone(a)
		plain, decoupled := mustNew(outer, spec("adam")), mustNew(outer, spec("adamw"))
		sa, sb := stateOf(plain, n), stateOf(decoupled, n)
		for step := range int64(3) {
			g := gaussian(rng, n)
			args := Args{LR: 0.05, GradScale: 0.5, Step: step + 1}
			topA, topB := plain.Step(a, a, g, sa, args), decoupled.Step(b, b, g, sb, args)
			if i := bitsDiffer(a, b); i >= 0 || topA != topB {
				t.Fatalf("step %d: element %d is %v, of adam %v; the largest magnitudes are %x and %x", step, i, b[i], a[i], topB, topA)
			}
		}
	})
}

// After 100 steps adam and adamw have the numbers of the formulas in float64 to 1e-6.
func TestAdamAfter100Steps(t *testing.T) {
	for _, name := range []string{"adam", "adamw"} {
		const n = deltaBlock + 77
		rng := rand.New(rand.NewPCG(8, 1))
		r := mustNew(t, spec(name))
		w, st := gaussian(rng, n), stateOf(r, n)
		for i := range w {
			w[i] *= 0.25 // as those of a network: float32 rounds a parameter of 2 by 1e-7 in each step
		}
		want, m, v := widen(w), make([]float64, n), make([]float64, n)
		for step := range int64(100) {
			sum := gaussian(rng, n)
			a := Args{LR: 1e-3, GradScale: 1.0 / 32, Decay: 0.1, Step: step + 1}
			twin(name, 0, want, widen(sum), m, v, a)
			r.Step(w, w, sum, st, a)
		}
		close32(t, name, w, want, 1e-6)
	}
}

// Rounding makes decay neither stronger nor weaker: after 100 steps the parameters are on average those of the formulas to 1e-7 of
// themselves. Multiplied by a rounded 1-lr*weight_decay in each step they would be 1.7e-6 smaller.
func TestDecayOfAdamWIsNotBiased(t *testing.T) {
	const n = 20000
	rng := rand.New(rand.NewPCG(8, 1))
	r := mustNew(t, spec("adamw"))
	w, st := gaussian(rng, n), stateOf(r, n)
	want, m, v := widen(w), make([]float64, n), make([]float64, n)
	for step := range int64(100) {
		sum := gaussian(rng, n)
		a := Args{LR: 1e-3, GradScale: 1.0 / 32, Decay: 0.1, Step: step + 1}
		twin("adamw", 0, want, widen(sum), m, v, a)
		r.Step(w, w, sum, st, a)
	}
	sum, large := 0.0, 0
	for i, x := range want {
		if math.Abs(x) > 0.1 { // of smaller ones a share says little
			sum += (float64(w[i]) - x) / x
			large++
		}
	}
	if mean := sum / float64(large); large < n/2 || math.Abs(mean) > 1e-7 {
		t.Errorf("%d parameters are on average %.2g of themselves too large", large, mean)
	}
}
