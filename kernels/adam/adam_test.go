package adam

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fluentps/internal/policy/optim"
)

func TestByHand(t *testing.T) {
	// g = 0.5*4 + 0 = 2; m = 0.5*0 + 0.5*2 = 1; v = 0.75*0 + 0.25*4 = 1; w = 3 - 4*1/(2*1 + 6)
	next, w, m, v := []float32{7, 7}, []float32{3, 9}, []float32{0, 9}, []float32{0, 9}
	update(next, w, []float32{4, 9}, m, v, []float32{0.5, 0.5, 0.75, 0.25, 6}, 1, scalars{K: 0.5, Rate: 4, Root: 2})
	if !slices.Equal(next, []float32{2.5, 7}) || !slices.Equal(m, []float32{1, 9}) || !slices.Equal(v, []float32{1, 9}) {
		t.Errorf("next %v m %v v %v, want 2.5 1 1 and the rest as it was", next, m, v)
	}
}

// The step of a device and the step of a server give the same bits.
func TestStepsAsTheServersDo(t *testing.T) {
	const n, lr, beta1, beta2, epsilon = 1031, 0.001, 0.9, 0.999, 1e-8
	rule, err := optim.New(optim.Spec{Name: "adam", LR: lr, Beta1: beta1, Beta2: beta2, Epsilon: epsilon})
	if err != nil {
		t.Fatal(err)
	}
	args := optim.Args{LR: lr, GradScale: 1. / 96, Decay: 0.0005}
	b1, b2 := float64(beta1), float64(beta2)
	constants := []float32{beta1, float32(1 - b1), beta2, float32(1 - b2), epsilon}
	r := rand.New(rand.NewPCG(1, 2))
	w, got, want, m, v := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	state := [][]float32{make([]float32, n), make([]float32, n)}
	grad := make([]float32, n)
	for step := range 4 {
		for i := range grad {
			grad[i] = float32(r.NormFloat64()) * float32(i%3) // a third of the gradients are 0
		}
		args.Step = int64(step + 1)
		rule.Step(want, w, grad, state, args)
		t1 := float64(args.Step)
		update(got, w, grad, m, v, constants, n, scalars{
			K: args.GradScale, Decay: args.Decay,
			Rate: float32(float64(args.LR) / (1 - math.Pow(beta1, t1))), Root: float32(1 / math.Sqrt(1-math.Pow(beta2, t1))),
		})
		for k, pair := range [][2][]float32{{got, want}, {m, state[0]}, {v, state[1]}} {
			for i := range n {
				if x, y := pair[0][i], pair[1][i]; math.Float32bits(x) != math.Float32bits(y) {
					t.Fatalf("step %d: vector %d element %d is %g, want %g", step, k, i, x, y)
				}
			}
		}
		copy(w, got)
	}
}
