package sumofparts

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"fluentps/ps/optim"
)

func TestByHand(t *testing.T) {
	arena := []float32{1, 2, 99, 10, 20, 99, 100, 200}
	y := []float32{7, 7, 7}
	sum(y, arena, 2, 3, 3)
	if want := []float32{111, 222, 7}; !slices.Equal(y, want) {
		t.Errorf("%v, want %v", y, want)
	}
	sum(arena, arena, 2, 2, 3) // into the first part
	if want := []float32{11, 22, 99, 10, 20, 99, 100, 200}; !slices.Equal(arena, want) {
		t.Errorf("in place: %v, want %v", arena, want)
	}
	sum(y, nil, 2, 0, 3)
	if want := []float32{0, 0, 7}; !slices.Equal(y, want) {
		t.Errorf("no parts: %v, want %v", y, want)
	}
}

// A partial aggregate has the same bits as the sum that a server computes.
func TestSumsAsTheServersDo(t *testing.T) {
	const n, parts, stride = 2*block + 77, 5, 2*block + 80
	r := rand.New(rand.NewPCG(3, 4))
	arena, cut := make([]float32, parts*stride), make([][]float32, parts)
	for i := range arena {
		arena[i] = float32(r.NormFloat64())
	}
	for p := range cut {
		cut[p] = arena[p*stride:][:n]
	}
	got, want := make([]float32, n), make([]float32, n)
	sum(got, arena, n, parts, stride)
	optim.Sum(want, cut...)
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("element %d is %g, want %g", i, got[i], want[i])
		}
	}
}
