package sigmoidxent

import (
	"math"
	"slices"
	"testing"
)

func TestByHand(t *testing.T) {
	ln3 := float32(math.Log(3)) // probability 3/4
	z := []float32{ln3, ln3, -ln3, 0, 200, -200}
	g, loss, hit := make([]float32, 6), make([]float32, 6), make([]float32, 6)
	losses(z, []float32{1, 0, 1, 0, 0, 0}, g, loss, hit, 6)
	for i, want := range []float64{-0.25, 0.75, -0.75, 0.5, 1, 0} {
		if math.Abs(float64(g[i])-want) > 1e-6 {
			t.Errorf("gradient %d is %g, want %g", i, g[i], want)
		}
	}
	for i, want := range []float64{math.Log(4. / 3), math.Log(4), math.Log(4), math.Log(2), 200, 0} {
		if math.Abs(float64(loss[i])-want) > 1e-6 {
			t.Errorf("loss %d is %g, want %g", i, loss[i], want)
		}
	}
	if want := []float32{1, 0, 0, 1, 0, 1}; !slices.Equal(hit, want) {
		t.Errorf("hits %v, want %v", hit, want)
	}
}
