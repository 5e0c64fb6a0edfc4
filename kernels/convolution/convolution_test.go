package convolution

import (
	"slices"
	"testing"

	"fluentps/kernels/im2col"
)

// An image with the values 1 to 9. One filter reads the upper left and the lower right of a 2 x 2 window, the other the
// lower left.
func TestByHand(t *testing.T) {
	s := Shape{Shape: im2col.Shape{Channels: 1, Height: 3, Width: 3, Kernel: 2, Stride: 1}, Images: 1, Filters: 2}
	x := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}
	w := []float32{1, 0, 0, 10, 0, 0, 1, 0}
	y := make([]float32, s.Outputs())
	forward(y, x, w, s)
	if want := []float32{51, 62, 84, 95, 4, 5, 7, 8}; !slices.Equal(y, want) {
		t.Errorf("forward %v, want %v", y, want)
	}
	dy := []float32{1, 0, 0, 0, 0, 0, 0, 1}
	dx := []float32{100, 0, 0, 0, 0, 0, 0, 0, 0}
	backwardData(dx, dy, w, 1, s)
	if want := []float32{101, 0, 0, 0, 10, 0, 0, 1, 0}; !slices.Equal(dx, want) {
		t.Errorf("backward data %v, want %v", dx, want)
	}
	backwardData(dx, dy, w, 0, s)
	if dx[0] != 1 {
		t.Errorf("with beta 0 backward data read dx: %v", dx)
	}
	dw := make([]float32, s.Weights())
	backwardFilter(dw, x, dy, s)
	if want := []float32{1, 2, 4, 5, 5, 6, 8, 9}; !slices.Equal(dw, want) {
		t.Errorf("backward filter %v, want %v", dw, want)
	}
}
