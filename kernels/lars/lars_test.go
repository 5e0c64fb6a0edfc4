package lars

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fluentps/kernels/sgd"
	"fluentps/ps/optim"
)

func TestByHand(t *testing.T) {
	w, grad := []float32{3, 4, 9}, []float32{12, 16, 9} // norms 5 and 20
	for _, c := range []struct {
		k, decay, trust, want float32
	}{
		{0.25, 0, 0.5, 0.5},   // 0.5*5 / 5
		{-0.25, 1, 0.5, 0.25}, // 0.5*5 / (5 + 5)
		{0, 0, 0.5, rateMax},  // no gradient at all
		{0.5, 0.5, 0.25, 0.1}, // 0.25*5 / (10 + 2.5)
		{0.125, 0.5, 1e-3, 1e-3},
	} {
		if got := layerRate(w, grad, 2, c.k, c.decay, c.trust); got != c.want {
			t.Errorf("k=%g decay=%g trust=%g: rate %g, want %g", c.k, c.decay, c.trust, got, c.want)
		}
	}
	if got := layerRate([]float32{0, 0}, grad, 2, 1, 1, 0.5); got != 0.5 {
		t.Errorf("without parameters the rate is %g, want the trust 0.5", got)
	}
	next, m := []float32{7, 7, 7}, []float32{2, 2, 7}
	update(next, w, grad, m, 0.5, 2, sgd.Scalars{LR: 0.5, K: 0.5, Decay: 1, Momentum: 0.5}) // gradients 4.5 and 6
	if want := []float32{0.25, 0.5, 7}; !slices.Equal(next, want) || !slices.Equal(m, []float32{5.5, 7, 7}) {
		t.Errorf("%v, state %v, want %v and 5.5 7 7", next, m, want)
	}
}

func TestNaNPasses(t *testing.T) {
	nan := float32(math.NaN())
	if got := layerRate([]float32{1}, []float32{nan}, 1, 1, 0, 1); got == got {
		t.Errorf("a NaN gradient has the rate %g", got)
	}
}

// The step agrees with a server's store for a shard that is one layer, up to the order in which squares are added.
func TestStepsAsTheServersDo(t *testing.T) {
	const n, lr, mu, decay, trust, k = 70001, 2, 0.9, 0.01, 0.02, 1. / 96
	rule, err := optim.New(optim.Spec{Name: "lars", LR: lr, Momentum: mu, Trust: trust, WeightDecay: decay})
	if err != nil {
		t.Fatal(err)
	}
	store := optim.NewStore(n, []optim.Run{{Hi: n, Decay: decay}},
		optim.Update{Rule: rule, LR: lr, Sched: optim.Schedule{Name: "constant"}}, optim.Optimize)
	r := rand.New(rand.NewPCG(1, 2))
	w, got, want, m, grad := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	for step := range 3 {
		for i := range grad {
			grad[i] = float32(r.NormFloat64())
			if step == 0 {
				w[i] = float32(r.NormFloat64())
			}
		}
		store.Fold(0, grad, 0, 1)
		store.Commit(want, w, float64(step), 1, k)
		rate := layerRate(w, grad, n, k, decay, trust)
		update(got, w, grad, m, rate, n, sgd.Scalars{LR: lr, K: k, Decay: decay, Momentum: mu})
		for i := range n {
			if x, y := float64(got[i]), float64(want[i]); math.Abs(x-y) > 0x1p-22*max(1, math.Abs(y)) {
				t.Fatalf("step %d: element %d is %g, want %g", step, i, x, y)
			}
		}
		copy(w, want)
	}
}
