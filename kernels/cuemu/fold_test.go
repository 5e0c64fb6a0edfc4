//go:build cuemu

package cuemu

import (
	"math"
	"math/rand/v2"
	"testing"

	"fluentps/kernels"
	"fluentps/kernels/kernel"
)

// The shares of a channel that lie in z, too, are those that lie in y alone, and give the same bits. Only channels of more values than the
// emulator computes in a test need z, so the test folds the grids itself.
func TestSharesInTwoDirectionsOfTheGrid(t *testing.T) {
	n := kernels.Sizes{5, 3, 5600, 1}
	for _, k := range []*kernels.Kernel{kernels.BatchNorm, kernels.BatchNormGrad} {
		var results [2][][]float32
		for i, fold := range [][2]int{{90, 1}, {30, 3}} {
			folded, code := *k, *k.CUDA
			folded.CUDA = &code
			code.Scratch = func(n kernel.Sizes) int { return 2 * n[1] * 90 }
			code.Steps = func(n kernel.Sizes) [4]kernel.Step {
				steps := k.CUDA.Steps(n)
				for s := range steps[:2] {
					steps[s].Grid[1], steps[s].Grid[2] = fold[0], fold[1]
				}
				return steps
			}
			r := rand.New(rand.NewPCG(4, 7))
			dev := New(false)
			a := kernels.Args{N: n, F: kernels.Scalars{0.1, 1e-5}}
			for v, need := range k.Need(n) {
				if k.Optional[v] || need == 0 {
					continue
				}
				var err error
				if a.V[v], err = dev.Alloc(need); err != nil {
					t.Fatal(err)
				}
				values := make([]float32, need)
				for e := range values {
					values[e] = r.Float32() + 0.1
				}
				if err := dev.Upload(a.V[v], values); err != nil {
					t.Fatal(err)
				}
			}
			if err := dev.Launch(&folded, a); err != nil {
				t.Fatal(err)
			}
			for _, v := range a.V {
				result := make([]float32, v.N)
				if err := dev.Download(result, v); err != nil {
					t.Fatal(err)
				}
				results[i] = append(results[i], result)
			}
			if err := dev.Close(); err != nil {
				t.Fatal(err)
			}
		}
		for v := range results[0] {
			for e, want := range results[0][v] {
				if got := results[1][v][e]; math.Float32bits(got) != math.Float32bits(want) || math.IsNaN(float64(got)) {
					t.Fatalf("%s: element %d of vector %d is %g in y and z, %g in y", k.Name, e, v, got, want)
				}
			}
		}
	}
}
