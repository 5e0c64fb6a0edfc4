package softmaxxent

import (
	"math"
	"testing"
)

func TestByHand(t *testing.T) {
	ln := func(x float64) float32 { return float32(math.Log(x)) }
	z := []float32{ln(1), ln(2), ln(5), 3, 3, 3} // probabilities 1/8 2/8 5/8, and three thirds
	loss, hit := make([]float32, 2), make([]float32, 2)
	losses(z, []float32{2, 1}, z, loss, hit, 2, 3)
	for i, want := range []float64{1. / 8, 2. / 8, -3. / 8, 1. / 3, -2. / 3, 1. / 3} {
		if math.Abs(float64(z[i])-want) > 1e-6 {
			t.Errorf("gradient %d is %g, want %g", i, z[i], want)
		}
	}
	for i, want := range []float64{math.Log(8. / 5), math.Log(3)} {
		if math.Abs(float64(loss[i])-want) > 1e-6 {
			t.Errorf("loss %d is %g, want %g", i, loss[i], want)
		}
	}
	if hit[0] != 1 || hit[1] != 0 { // ties go to the first logit
		t.Errorf("hits %v, want 1 and 0", hit)
	}
}
