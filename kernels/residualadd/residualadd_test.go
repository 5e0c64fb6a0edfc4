package residualadd

import (
	"math"
	"slices"
	"testing"
)

func TestByHand(t *testing.T) {
	a := []float32{1, -2, 3, 9}
	forward(a, a, []float32{0.5, 1, -3, 1}, 3)
	if want := []float32{1.5, 0, 0, 9}; !slices.Equal(a, want) {
		t.Errorf("%v, want %v", a, want)
	}
}

func TestNaNPasses(t *testing.T) {
	y := make([]float32, 1)
	forward(y, []float32{float32(math.NaN())}, []float32{1}, 1)
	if !math.IsNaN(float64(y[0])) {
		t.Errorf("NaN became %g", y[0])
	}
}
