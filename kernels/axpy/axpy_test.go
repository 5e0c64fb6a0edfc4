package axpy

import (
	"math"
	"slices"
	"testing"
)

func TestByHand(t *testing.T) {
	x, y := []float32{1, -2, 3, 9}, []float32{10, 20, 30, 40}
	add(y, x, 0.5, 3)
	if want := []float32{10.5, 19, 31.5, 40}; !slices.Equal(y, want) {
		t.Errorf("axpy: %v, want %v", y, want)
	}
	scale(x, x, -2, 3)
	if want := []float32{-2, 4, -6, 9}; !slices.Equal(x, want) {
		t.Errorf("scale: %v, want %v", x, want)
	}
}

// A product of two float32 with an odd last bit needs 48 bits: fused with the sum, the difference would not be 0.
func TestProductIsRoundedFirst(t *testing.T) {
	a := float32(1 + 0x1p-23)
	y := []float32{-(a * a)}
	add(y, []float32{a}, a, 1)
	if y[0] != 0 {
		t.Errorf("%g, want 0", y[0])
	}
}

func TestNaNPasses(t *testing.T) {
	nan := float32(math.NaN())
	y := []float32{1, nan}
	add(y, []float32{nan, 0}, 0, 2)
	scale(y[1:], y[1:], 0, 1)
	if !math.IsNaN(float64(y[0])) || !math.IsNaN(float64(y[1])) {
		t.Errorf("NaN became %v", y)
	}
}
