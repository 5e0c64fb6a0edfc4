package biasrelu

import (
	"math"
	"slices"
	"testing"
)

func TestByHand(t *testing.T) {
	x := []float32{1, -2, 3, -1, 0.5, 9}
	forward(x, []float32{-1, 1}, 2, 2)
	if want := []float32{0, 0, 2, 0, 0.5, 9}; !slices.Equal(x, want) {
		t.Errorf("forward: %v, want %v", x, want)
	}
	dx := []float32{5, 6, 7, 8, 9, 9}
	backward(dx, x, 4)
	if want := []float32{0, 0, 7, 0, 9, 9}; !slices.Equal(dx, want) {
		t.Errorf("backward: %v, want %v", dx, want)
	}
}

func TestNaNPasses(t *testing.T) {
	x := []float32{float32(math.NaN())}
	forward(x, []float32{1}, 1, 1)
	if !math.IsNaN(float64(x[0])) {
		t.Errorf("NaN became %g", x[0])
	}
}
