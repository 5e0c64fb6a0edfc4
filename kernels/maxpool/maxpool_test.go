package maxpool

import (
	"math"
	"slices"
	"testing"
)

func TestByHand(t *testing.T) {
	x := []float32{ // one plane of 3 x 5: its last row and column belong to no block
		1, 2, 7, 7, 99,
		4, 3, 7, 5, 99,
		99, 99, 99, 99, 99,
	}
	y, which := make([]float32, 2), make([]float32, 2)
	forward(y, which, x, 1, 3, 5)
	if !slices.Equal(y, []float32{4, 7}) || !slices.Equal(which, []float32{2, 0}) { // ties go to the first value
		t.Errorf("largest %v at %v, want 4 and 7 at 2 and 0", y, which)
	}
	dx := slices.Repeat([]float32{9}, 15)
	backward(dx, []float32{5, -6}, which, 1, 3, 5)
	if want := []float32{0, 0, -6, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0}; !slices.Equal(dx, want) {
		t.Errorf("gradient %v, want %v", dx, want)
	}
	backward(dx[:4], []float32{5}, []float32{3}, 1, 2, 2)
	if want := []float32{0, 0, 0, 5}; !slices.Equal(dx[:4], want) {
		t.Errorf("gradient %v, want %v", dx[:4], want)
	}
	backward(dx[:4], []float32{5}, []float32{1}, 1, 2, 2)
	if want := []float32{0, 5, 0, 0}; !slices.Equal(dx[:4], want) {
		t.Errorf("gradient %v, want %v", dx[:4], want)
	}
}

func TestNaNPasses(t *testing.T) {
	for at := range 4 {
		x, y, which := []float32{1, 2, 3, 4}, []float32{0}, []float32{0}
		x[at] = float32(math.NaN())
		forward(y, which, x, 1, 2, 2)
		if !math.IsNaN(float64(y[0])) {
			t.Errorf("NaN at %d became %g", at, y[0])
		}
	}
}
