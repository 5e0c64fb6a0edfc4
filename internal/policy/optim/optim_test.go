package optim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// twin is the plainest form of every rule, in float64, written from the formulas in New's comment.
func twin(name string, mu float64, w, sum, m, v []float64, a Args) {
	lr, k, wd := float64(a.LR), float64(a.GradScale), float64(a.Decay)
	for i := range w {
		g := k*sum[i] + wd*w[i]
		if name == "adamw" || name == "muon" {
			g, w[i] = k*sum[i], w[i]-lr*wd*w[i]
		}
		switch name {
		case "sgd":
			w[i] -= lr * g
		case "momentum", "lars": // the store has scaled g for lars
			m[i] = mu*m[i] + g
			w[i] -= lr * m[i]
		case "nesterov":
			m[i] = mu*m[i] + g
			w[i] -= lr * (g + mu*m[i])
		case "adam", "adamw", "muon": // of what is no matrix; with the constants of spec
			m[i] = 0.9*m[i] + 0.1*g
			v[i] = 0.999*v[i] + 0.001*g*g
			mHat, vHat := m[i]/(1-math.Pow(0.9, float64(a.Step))), v[i]/(1-math.Pow(0.999, float64(a.Step)))
			w[i] -= lr * mHat / (math.Sqrt(vHat) + 1e-8)
		}
	}
}

func mustNew(t testing.TB, s Spec) Rule {
	t.Helper()
	r, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func spec(name string) Spec {
	return Spec{Name: name, LR: 0.1, Momentum: 0.9, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8, Trust: 0.02, Nesterov: true, Scale: Original,
		Others: Others{LR: 0.05, Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}}
}

func stateOf(r Rule, n int) [][]float32 {
	s := make([][]float32, r.State())
	for i := range s {
		s[i] = make([]float32, n)
	}
	return s
}

func gaussian(rng *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

func widen(v []float32) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[i] = float64(v[i])
	}
	return out
}

func close32(t testing.TB, what string, got []float32, want []float64, tol float64) {
	t.Helper()
	for i := range got {
		if d := math.Abs(float64(got[i]) - want[i]); !(d <= tol*(1+math.Abs(want[i]))) {
			t.Fatalf("%s[%d] = %v, want %v", what, i, got[i], want[i])
		}
	}
}

func TestStepFollowsTheFloat64Twin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, name := range Names() {
		for _, n := range []int{0, 1, 3, 4, 5, 8, 31, 1000} {
			for _, inPlace := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/n=%d/inPlace=%v", name, n, inPlace), func(t *testing.T) {
					r := mustNew(t, spec(name))
					w, st := gaussian(rng, n), stateOf(r, n)
					want, m, v := widen(w), make([]float64, n), make([]float64, n)
					a := Args{LR: 0.05, GradScale: 1.0 / 32, Decay: 0.01}
					for step := range int64(10) {
						a.Step = step + 1
						sum := gaussian(rng, n)
						twin(name, float64(float32(0.9)), want, widen(sum), m, v, a)
						dst := w
						if !inPlace {
							dst = gaussian(rng, n)
						}
						r.Step(dst, w, sum, st, a)
						w = dst
					}
					close32(t, "w", w, want, 1e-5)
					for k, s := range st {
						close32(t, "state", s, [][]float64{m, v}[k], 1e-5)
					}
				})
			}
		}
	}
}

// Numbers worked out by hand, exact in float32: lr 1/2, mu 1/2, two steps with the mean gradients 4 and 2.
func TestStepByHand(t *testing.T) {
	for _, c := range []struct {
		name  string
		decay float32
		want  [2]float32
	}{
		{"sgd", 0, [2]float32{10 - 2, 8 - 1}},
		// m = 4, then 0.5*4+2 = 4.
		{"momentum", 0, [2]float32{10 - 2, 8 - 2}},
		// g+mu*m = 4+2 = 6, then m = 4 and g+mu*m = 2+2 = 4.
		{"nesterov", 0, [2]float32{10 - 3, 7 - 2}},
		// g = 4+0.5*10 = 9, w = 5.5; then g = 2+0.5*5.5 = 4.75, w = 5.5-2.375.
		{"sgd", 0.5, [2]float32{5.5, 3.125}},
	} {
		r := mustNew(t, Spec{Name: c.name, LR: 0.5, Momentum: 0.5})
		w, st := []float32{10}, stateOf(r, 1)
		for i, sum := range []float32{32, 16} {
			r.Step(w, w, []float32{sum}, st, Args{LR: 0.5, GradScale: 1.0 / 8, Decay: c.decay})
			if w[0] != c.want[i] {
				t.Errorf("%s decay %v: w after step %d = %v, want %v", c.name, c.decay, i+1, w[0], c.want[i])
			}
		}
	}
}

// Per-push schemes take one step per push with that push's mean and lr/N. For sgd without decay, N such
// pushes of equal sample counts are one BSP step with the sum of the sums over the sum of the samples.
func TestWeightedPushesEqualOneBSPStep(t *testing.T) {
	const n, workers, samples = 257, 6, 32
	const lr = 0.1
	rng := rand.New(rand.NewPCG(3, 4))
	r := mustNew(t, spec("sgd"))
	start := gaussian(rng, n)
	perPush := append([]float32(nil), start...)
	pending := make([]float32, n)
	for i := range workers {
		sum := gaussian(rng, n)
		r.Step(perPush, perPush, sum, nil, Args{LR: lr / workers, GradScale: 1.0 / samples})
		blend(pending, pending, sum, map[bool]float32{true: 0, false: 1}[i == 0], 1)
	}
	bsp := make([]float32, n)
	r.Step(bsp, start, pending, nil, Args{LR: lr, GradScale: 1.0 / (workers * samples)})
	close32(t, "w", perPush, widen(bsp), 1e-6)
}

// BSP must be bit-equal over shard counts, so a cut anywhere may not change a bit.
func TestCutsDoNotChangeBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		float := rapid.Float32Range(-1e3, 1e3)
		draw := func(what string) []float32 { return rapid.SliceOfN(float, n, n).Draw(t, what) }
		w, sum, m, v := draw("w"), draw("sum"), draw("m"), draw("v")
		a := Args{LR: float.Draw(t, "lr"), GradScale: float.Draw(t, "k"), Decay: float.Draw(t, "decay"), Step: 3}
		r, err := New(spec(rapid.SampledFrom(Names()).Draw(t, "rule")))
		if err != nil {
			t.Fatal(err)
		}
		run := func(bounds ...int) ([]float32, []float32) {
			dst, mm, vv := make([]float32, n), append([]float32(nil), m...), append([]float32(nil), v...)
			for i := range len(bounds) - 1 {
				lo, hi := bounds[i], bounds[i+1]
				r.Step(dst[lo:hi], w[lo:hi], sum[lo:hi], [][]float32{mm[lo:hi], vv[lo:hi]}[:r.State()], a)
			}
			return dst, append(mm, vv...)
		}
		whole, mWhole := run(0, n)
		parts, mParts := run(0, cut, n)
		if i := bitsDiffer(whole, parts); i >= 0 {
			t.Fatalf("element %d: %v whole and %v cut at %d", i, whole[i], parts[i], cut)
		}
		if i := bitsDiffer(mWhole, mParts); i >= 0 {
			t.Fatalf("state %d: %v whole and %v cut at %d", i, mWhole[i], mParts[i], cut)
		}
	})
}

func TestMomentumZeroIsSGD(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 20).Draw(t, "n")
		float := rapid.Float32Range(-1e3, 1e3)
		w := rapid.SliceOfN(float, n, n).Draw(t, "w")
		sum := rapid.SliceOfN(float, n, n).Draw(t, "sum")
		a := Args{LR: 0.5, GradScale: 0.25, Decay: 0.125}
		want := make([]float32, n)
		sgd{}.Step(want, w, sum, nil, a)
		for _, name := range []string{"momentum", "nesterov"} {
			r, err := New(Spec{Name: name, LR: 1})
			if err != nil {
				t.Fatal(err)
			}
			got := make([]float32, n)
			r.Step(got, w, sum, stateOf(r, n), a)
			for i := range got {
				if got[i] != want[i] {
					t.Fatalf("%s with momentum 0: w[%d] = %v, sgd gives %v", name, i, got[i], want[i])
				}
			}
		}
	})
}

func TestSpecCheck(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		spec Spec
		want string
	}{
		{Spec{Name: "adams", LR: 1}, `optimizer name "adams" is not known; use one of sgd, momentum, nesterov, adam, adamw, lars, muon`},
		{Spec{Name: "sgd"}, "optimizer lr 0 "},
		{Spec{Name: "sgd", LR: nan}, "optimizer lr NaN "},
		{Spec{Name: "sgd", LR: math.Inf(1)}, "optimizer lr +Inf "},
		{Spec{Name: "momentum", LR: 1, Momentum: 1}, "optimizer momentum 1 "},
		{Spec{Name: "momentum", LR: 1, Momentum: nan}, "optimizer momentum NaN "},
		{Spec{Name: "sgd", LR: 1, WeightDecay: -0.1}, "optimizer weight_decay -0.1 "},
		{Spec{Name: "lars", LR: 1}, "optimizer trust 0 "},
		{Spec{Name: "lars", LR: 1, Momentum: 1, Trust: 1}, "optimizer momentum 1 "},
		{Spec{Name: "adam", LR: 1, Beta1: 1, Beta2: 0.9, Epsilon: 1e-8}, "optimizer beta1 1 "},
		{Spec{Name: "adam", LR: 1, Beta1: 0.9, Beta2: nan, Epsilon: 1e-8}, "optimizer beta2 NaN "},
		{Spec{Name: "adam", LR: 1, Beta1: 0.9, Beta2: 0.9}, "optimizer epsilon 0 "},
		{Spec{Name: "adam", LR: 1, Beta1: 0.9, Beta2: 0.9, Epsilon: 1e-60}, "optimizer epsilon 1e-60 "},
		{Spec{Name: "muon", LR: 1, Scale: "rms"}, `optimizer scale "rms" is not known; use original or match_rms_adamw`},
		{Spec{Name: "muon", LR: 1, Scale: Original}, "optimizer others.lr 0 "},
		{Spec{Name: "muon", LR: 1, Scale: Original, Others: Others{LR: 1, WeightDecay: nan}}, "optimizer others.weight_decay NaN "},
		{Spec{Name: "muon", LR: 1, Scale: Original, Others: Others{LR: 1, Beta1: 0.9, Beta2: 2}}, "optimizer beta2 2 "},
	} {
		if _, err := New(c.spec); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%+v): error %v, want it to contain %q", c.spec, err, c.want)
		}
	}
}

func TestStepPanicsOnUnequalLengths(t *testing.T) {
	v := make([]float32, 4)
	for name, call := range map[string]func(){
		"src":   func() { sgd{}.Step(v, v[:3], v, nil, Args{}) },
		"grad":  func() { sgd{}.Step(v, v, v[:3], nil, Args{}) },
		"none":  func() { momentum{}.Step(v, v, v, nil, Args{}) },
		"state": func() { nesterov{}.Step(v, v, v, [][]float32{v[:3]}, Args{}) },
		"blend": func() { blend(v, v, v[:3], 1, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call()
		}()
	}
}
