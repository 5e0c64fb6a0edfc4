package sgd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fluentps/internal/policy/optim"
)

func TestByHand(t *testing.T) {
	s := scalars{LR: 0.5, K: 0.25, Decay: 0.5, Momentum: 0.5}
	w, grad := []float32{2, 4, 9}, []float32{4, -8, 9} // gradients 1+1 and -2+2
	next, m := []float32{7, 7, 7}, []float32{2, -4, 7}
	step(next, w, grad, 2, s)
	if want := []float32{1, 4, 7}; !slices.Equal(next, want) {
		t.Errorf("sgd: %v, want %v", next, want)
	}
	momentumStep(next, w, grad, m, 2, s)
	if want := []float32{0.5, 5, 7}; !slices.Equal(next, want) || !slices.Equal(m, []float32{3, -2, 7}) {
		t.Errorf("momentum: %v, state %v, want %v and 3 -2 7", next, m, want)
	}
	m[0], m[1] = 2, -4
	nesterovStep(w, w, grad, m, 2, s) // in place; g + mu*m' is 3.5 and -1
	if want := []float32{0.25, 4.5, 9}; !slices.Equal(w, want) || !slices.Equal(m, []float32{3, -2, 7}) {
		t.Errorf("nesterov: %v, state %v, want %v and 3 -2 7", w, m, want)
	}
}

// The step of a device and the step of a server give the same bits.
func TestStepsAsTheServersDo(t *testing.T) {
	const n = 1031
	s := scalars{LR: 0.05, K: 1. / 96, Decay: 0.0005, Momentum: 0.9}
	for _, c := range []struct {
		name string
		twin func(next, w, grad, m []float32)
	}{
		{"sgd", func(next, w, grad, _ []float32) { step(next, w, grad, n, s) }},
		{"momentum", func(next, w, grad, m []float32) { momentumStep(next, w, grad, m, n, s) }},
		{"nesterov", func(next, w, grad, m []float32) { nesterovStep(next, w, grad, m, n, s) }},
	} {
		rule, err := optim.New(optim.Spec{Name: c.name, LR: float64(s.LR), Momentum: float64(s.Momentum)})
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(1, 2))
		w, got, want := gaussian(r, n), make([]float32, n), make([]float32, n)
		m := make([]float32, n)
		state := make([][]float32, rule.State())
		for k := range state {
			state[k] = make([]float32, n)
		}
		for step := range 3 {
			grad := gaussian(r, n)
			c.twin(got, w, grad, m)
			rule.Step(want, w, grad, state, optim.Args{LR: s.LR, GradScale: s.K, Decay: s.Decay, Step: int64(step + 1)})
			same(t, c.name, got, want)
			for _, v := range state {
				same(t, c.name+" state", m, v)
			}
			copy(w, got)
		}
	}
}

func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d is %g, want %g", what, i, got[i], want[i])
		}
	}
}

func gaussian(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}
