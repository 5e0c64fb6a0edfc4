package shortcutpad

import (
	"slices"
	"testing"
)

func TestByHand(t *testing.T) {
	x := []float32{ // one plane of 3 x 4
		1, 2, 3, 4,
		5, 6, 7, 8,
		9, 10, 11, 12,
	}
	s := shape{Images: 1, Channels: 1, Height: 3, Width: 4, Out: 2}
	y := slices.Repeat([]float32{9}, s.Outputs()+1)
	forward(y, x, s)
	if want := []float32{1, 3, 9, 11, 0, 0, 0, 0, 9}; !slices.Equal(y, want) {
		t.Errorf("forward %v, want %v", y, want)
	}
	backward(x, []float32{100, 200, 300, 400, 5, 6, 7, 8}, s)
	if want := []float32{101, 2, 203, 4, 5, 6, 7, 8, 309, 10, 411, 12}; !slices.Equal(x, want) {
		t.Errorf("gradient %v, want %v", x, want)
	}
}
