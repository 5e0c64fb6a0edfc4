package steps

import (
	"math"
	"math/rand/v2"
	"testing"

	"fluentps/internal/policy/optim"
)

// The norm is that of trained parameters: statistics have no part in it, and are not scaled. How the arena is cut changes no bit.
func TestClipLeavesStatisticsOut(t *testing.T) {
	var first []float32
	for _, slice := range []string{"even", "layer", "slices"} {
		plan := smallPlan(t, slice)
		c := NewClip(optim.Clip{Norm: 0.5, Of: optim.ClipWorker}, plan)
		arena := make([]float32, plan.Arena)
		views := plan.Views(arena)
		r := rand.New(rand.NewPCG(1, 2))
		var squares float64
		var was []float32 // in model order
		for k := range views {
			for i := range views[k] {
				views[k][i] = float32(r.NormFloat64())
				was = append(was, views[k][i])
				if !plan.Params[k].Stat {
					squares += float64(views[k][i]) * float64(views[k][i])
				}
			}
		}
		const samples = 2
		c.Sums(arena, samples)
		by := 0.5 / (math.Sqrt(squares)/samples + 1e-6)
		var is []float32
		at := 0
		for k := range views {
			for _, x := range views[k] {
				want := float64(was[at])
				if !plan.Params[k].Stat {
					want *= by
				}
				if math.Abs(float64(x)-want) > 1e-6*math.Abs(want) {
					t.Errorf("%s: %s: %v, want %v", slice, plan.Params[k].Name, x, want)
				}
				is = append(is, x)
				at++
			}
		}
		if first == nil {
			first = is
		}
		for i := range is {
			if is[i] != first[i] {
				t.Errorf("%s: element %d is %v, with another slicing %v", slice, i, is[i], first[i])
			}
		}
		c.Sums(arena, 1000) // far below the norm
		if clipped, of := c.Counts(); clipped != 1 || of != 2 {
			t.Errorf("%d of %d clipped", clipped, of)
		}
	}
}

// Workers that do not clip have no Clip, and nothing changes.
func TestNoClip(t *testing.T) {
	for _, of := range []optim.Clip{{Of: optim.ClipWorker}, {Norm: 1, Of: optim.ClipMean}} {
		c := NewClip(of, smallPlan(t, "even"))
		grads := []float32{3, 4}
		c.Sums(grads, 1)
		if clipped, all := c.Counts(); c != nil || grads[0] != 3 || clipped+all != 0 {
			t.Errorf("%+v: %v, gradients %v", of, c, grads)
		}
	}
}
