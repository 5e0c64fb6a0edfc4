package gemm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestByHand(t *testing.T) {
	// [1 2 3; 4 5 6] · [1 0; 2 1; 0 3] = [5 11; 14 23]
	for _, c := range []struct {
		name string
		op   Op
		a, b []float32
	}{
		{"nn", NN, []float32{1, 2, 3, 4, 5, 6}, []float32{1, 0, 2, 1, 0, 3}},
		{"nt", NT, []float32{1, 2, 3, 4, 5, 6}, []float32{1, 2, 0, 0, 1, 3}},
		{"tn", TN, []float32{1, 4, 2, 5, 3, 6}, []float32{1, 0, 2, 1, 0, 3}},
	} {
		out := []float32{100, 200, 300, 400}
		Rows(c.op, 0, 2, 2, 2, 3, c.a, c.b, out, []float32{0.5, 0.25}, 1)
		if want := []float32{105.5, 211.25, 314.5, 423.25}; !slices.Equal(out, want) {
			t.Errorf("%s: %v, want %v", c.name, out, want)
		}
	}
}

// An element has the same bits however the rows are split among threads.
func TestSplitRowsGiveTheSameBits(t *testing.T) {
	const m, n, k = 37, 11, 300
	r := rand.New(rand.NewPCG(1, 1))
	a, b := make([]float32, m*k), make([]float32, k*n)
	for _, x := range [][]float32{a, b} {
		for i := range x {
			x[i] = r.Float32() - 0.5
		}
	}
	for _, op := range []Op{NN, NT, TN} {
		whole, parts := make([]float32, m*n), make([]float32, m*n)
		Rows(op, 0, m, m, n, k, a, b, whole, nil, 0)
		for lo := 0; lo < m; lo += 5 {
			Rows(op, lo, min(lo+5, m), m, n, k, a, b, parts, nil, 0)
		}
		if !slices.Equal(whole, parts) {
			t.Errorf("op %d: parts of 5 rows differ from the whole", op)
		}
	}
}

// An infinite value affects its own column only: the padding must not keep it from one block to the next.
func TestInfinityStaysInItsColumn(t *testing.T) {
	const m, n, k = 1, 5, blockK + 1
	a, b, c := make([]float32, m*k), make([]float32, k*n), make([]float32, m*n)
	for i := range a {
		a[i] = 1
	}
	b[1*n+4] = float32(math.Inf(1))
	Rows(NN, 0, m, m, n, k, a, b, c, nil, 0)
	if want := []float32{0, 0, 0, 0, float32(math.Inf(1))}; !slices.Equal(c, want) {
		t.Errorf("%v, want %v", c, want)
	}
}
