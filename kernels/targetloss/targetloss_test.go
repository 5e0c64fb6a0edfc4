package targetloss

import (
	"math"
	"slices"
	"testing"
)

func TestByHand(t *testing.T) {
	nan := float32(math.NaN())
	z, targets := []float32{3, 1, -2, 0.5, nan}, []float32{1, 1, 4, 0, 0}
	g, loss, off := make([]float32, 5), make([]float32, 5), make([]float32, 5)
	same := func(name string, got, want []float32) {
		t.Helper()
		if !slices.EqualFunc(got, want, func(a, b float32) bool { return a == b || a != a && b != b }) {
			t.Errorf("%s %v, want %v", name, got, want)
		}
	}
	squared(z, targets, g, loss, off, 5)
	same("losses", loss, []float32{4, 0, 36, 0.25, nan})
	same("gradients", g, []float32{4, 0, -12, 1, nan})
	same("errors", off, []float32{2, 0, 6, 0.5, nan})
	huber(z, targets, g, loss, off, 5, 2)
	same("losses of huber", loss, []float32{2, 0, 10, 0.125, nan})
	same("gradients of huber", g, []float32{2, 0, -2, 0.5, nan})
	same("errors of huber", off, []float32{2, 0, 6, 0.5, nan})
}
