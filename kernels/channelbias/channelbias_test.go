package channelbias

import (
	"math"
	"slices"
	"testing"
)

func TestByHand(t *testing.T) {
	x := []float32{1, -2, 3, 4, 0.5, 1, 8, -9, 77} // 2 images of 2 channels of 2 positions
	forward(x, []float32{1, -3}, 2, 2, 2)
	if want := []float32{2, 0, 0, 1, 1.5, 2, 5, 0, 77}; !slices.Equal(x, want) {
		t.Errorf("forward: %v, want %v", x, want)
	}
	db := []float32{9, 9, 9}
	gradient(db, []float32{1, 2, 3, 4, 5, 6, 7, 8, 99}, 2, 2, 2)
	if want := []float32{14, 22, 9}; !slices.Equal(db, want) {
		t.Errorf("sums: %v, want %v", db, want)
	}
	gradient(db, []float32{1, 2, 4, 8, 16, 32, 64}, 1, 1, 7)
	if db[0] != 127 {
		t.Errorf("sum of one plane is %g, want 127", db[0])
	}
}

func TestNaNPasses(t *testing.T) {
	x := []float32{float32(math.NaN())}
	forward(x, []float32{1}, 1, 1, 1)
	if !math.IsNaN(float64(x[0])) {
		t.Errorf("NaN became %g", x[0])
	}
}
