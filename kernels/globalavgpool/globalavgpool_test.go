package globalavgpool

import (
	"slices"
	"testing"
)

func TestByHand(t *testing.T) {
	y := []float32{9, 9, 9}
	forward(y, []float32{1, 2, 3, 10, -4, 0, 99}, 2, 3)
	if want := []float32{2, 2, 9}; !slices.Equal(y, want) {
		t.Errorf("means %v, want %v", y, want)
	}
	dx := []float32{9, 9, 9, 9, 9}
	backward(dx, []float32{6, -1}, 2, 2)
	if want := []float32{3, 3, -0.5, -0.5, 9}; !slices.Equal(dx, want) {
		t.Errorf("gradient %v, want %v", dx, want)
	}
}
