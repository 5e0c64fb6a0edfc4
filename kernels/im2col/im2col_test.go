package im2col

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestByHand(t *testing.T) {
	x := []float32{
		1, 2, 3,
		4, 5, 6,
	}
	s := Shape{Channels: 1, Height: 2, Width: 3, Kernel: 2, Stride: 1}
	col := make([]float32, 8)
	Gather(col, x, s)
	if want := []float32{1, 2, 2, 3, 4, 5, 5, 6}; !slices.Equal(col, want) {
		t.Errorf("columns %v, want %v", col, want)
	}
	dx := []float32{9, 9, 9, 9, 9, 9}
	Scatter(dx, []float32{1, 10, 100, 1000, 1, 10, 100, 1000}, 0, s)
	if want := []float32{1, 110, 1000, 1, 110, 1000}; !slices.Equal(dx, want) {
		t.Errorf("sums %v, want %v", dx, want)
	}
	s = Shape{Channels: 1, Height: 2, Width: 3, Kernel: 3, Stride: 2, Pad: 1}
	if h, w := s.Outputs(); h != 1 || w != 2 {
		t.Errorf("%d x %d windows, want 1 x 2", h, w)
	}
	col = make([]float32, 18)
	Gather(col, x, s)
	if want := []float32{0, 0, 0, 0, 0, 0, 0, 2, 1, 3, 2, 0, 0, 5, 4, 6, 5, 0}; !slices.Equal(col, want) {
		t.Errorf("columns with padding %v, want %v", col, want)
	}
}

func TestWindowLargerThanTheImage(t *testing.T) {
	s := Shape{Channels: 2, Height: 3, Width: 2, Kernel: 4, Stride: 1}
	if h, w := s.Outputs(); h != 0 || w != 0 {
		t.Errorf("%d x %d windows, want none", h, w)
	}
	dx := slices.Repeat([]float32{7}, 12)
	Scatter(dx, nil, 0, s)
	if slices.Max(dx) != 0 {
		t.Errorf("values outside all windows are %v, want 0", dx)
	}
}

// Scatter is the transpose of Gather: <Gather(x), c> = <x, Scatter(c)>, which is exact for small whole numbers.
func TestScatterIsTheTranspose(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Shape{
			Channels: rapid.IntRange(1, 3).Draw(t, "channels"),
			Height:   rapid.IntRange(1, 9).Draw(t, "height"),
			Width:    rapid.IntRange(1, 9).Draw(t, "width"),
			Kernel:   rapid.IntRange(1, 5).Draw(t, "kernel"),
			Stride:   rapid.IntRange(1, 3).Draw(t, "stride"),
			Pad:      rapid.IntRange(0, 6).Draw(t, "pad"),
		}
		rows, windows := s.Columns()
		whole := func(n int, name string) []float32 {
			x := make([]float32, n)
			for i, v := range rapid.SliceOfN(rapid.IntRange(-8, 8), n, n).Draw(t, name) {
				x[i] = float32(v)
			}
			return x
		}
		x, c := whole(s.Inputs(), "x"), whole(rows*windows, "c")
		col, dx := make([]float32, len(c)), make([]float32, len(x))
		Gather(col, x, s)
		Scatter(dx, c, 0, s)
		if a, b := dot(col, c), dot(x, dx); a != b {
			t.Fatalf("%+v: <Gather(x), c> is %g, <x, Scatter(c)> is %g", s, a, b)
		}
	})
}

func dot(a, b []float32) (sum float64) {
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}
