package cpu

import (
	"math"
	"slices"
	"strings"
	"testing"

	"fluentps/kernels"
)

// A device computes the same bits with as many threads as it is told to use, and says how many there are.
func TestThreadsMayChange(t *testing.T) {
	const m, n, k = 300, 290, 280 // tiles enough for several threads
	d := New(1)
	a, b := make([]float32, m*k), make([]float32, k*n)
	for i := range a {
		a[i] = float32(math.Sin(float64(i)))
	}
	for i := range b {
		b[i] = float32(math.Cos(float64(i)))
	}
	var first []float32
	for _, threads := range []int{1, 3, 2, 0, 5} {
		d.(kernels.Threaded).SetThreads(threads)
		want := map[bool]string{true: "1 thread)", false: string(rune('0'+threads)) + " threads)"}[threads < 2]
		if name := d.Name(); !strings.HasSuffix(name, want) {
			t.Errorf("told to use %d threads, the device is %q", threads, name)
		}
		c := make([]float32, m*n)
		if err := d.Launch(kernels.GemmNN,
			kernels.Args{V: kernels.Vecs{{Host: a}, {Host: b}, {Host: c}}, N: kernels.Sizes{m, n, k}}); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = c
		} else if !slices.Equal(c, first) {
			t.Errorf("other bits with %d threads", threads)
		}
	}
}
