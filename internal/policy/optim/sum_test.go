package optim

import (
	"testing"

	"pgregory.net/rapid"
)

// Sum gives the bits of additions element by element in the order of the parts, and touches nothing after the end.
func TestSumAddsInOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{0, 1, 7, 8, 33, sumBlock - 1, sumBlock, sumBlock + 5, 2*sumBlock + 3}).Draw(t, "n")
		parts := make([][]float32, rapid.IntRange(1, 5).Draw(t, "parts"))
		for k := range parts {
			parts[k] = anyVector(t, n, "part")
		}
		want := make([]float32, n)
		for i := range want {
			want[i] = parts[0][i]
			for _, p := range parts[1:] {
				want[i] += p[i]
			}
		}
		dst := anyVector(t, n, "dst")
		if rapid.Bool().Draw(t, "in place") {
			dst = parts[0]
		}
		rest := append([]float32(nil), behind(dst)...)
		Sum(dst, parts...)
		if i := bitsDiffer(dst, want); i >= 0 {
			t.Fatalf("element %d of %d is %v, want %v", i, n, dst[i], want[i])
		}
		if i := bitsDiffer(behind(dst), rest); i >= 0 {
			t.Fatalf("element %d after the end changed", i)
		}
	})
}

func TestSumRefusesOtherLengths(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a sum of 3 elements into 2 did not panic")
		}
	}()
	Sum(make([]float32, 2), make([]float32, 2), make([]float32, 3))
}
