package optim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestBlendFollowsTheFloat64Twin(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 3, 4, 7, 64, 1001} {
		for _, scale := range []float32{0, 1, -1, 0.25} {
			for _, weight := range []float32{0, 1, -2, 1.0 / 3} {
				dst, src := gaussian(rng, n), gaussian(rng, n)
				want := make([]float64, n)
				for i := range want {
					want[i] = float64(scale)*float64(dst[i]) + float64(weight)*float64(src[i])
				}
				blend(dst, dst, src, scale, weight)
				close32(t, fmt.Sprintf("n %d scale %v weight %v: dst", n, scale, weight), dst, want, 1e-6)
			}
		}
	}
}

func TestBlendScaleZeroOverwritesAnything(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for _, weight := range []float32{1, 0.5} {
		dst := []float32{nan, inf, nan, inf, nan, 7}
		blend(dst, dst, []float32{2, 4, 6, 8, 10, 12}, 0, weight)
		for i, got := range dst {
			if want := weight * float32(2*i+2); got != want {
				t.Errorf("weight %v: dst[%d] = %v, want %v", weight, i, got, want)
			}
		}
	}
}

func TestBlendOntoItself(t *testing.T) {
	v := []float32{1, 2, 3, 4, 5}
	blend(v, v, v, 2, 3)
	for i, got := range v {
		if want := float32(5 * (i + 1)); got != want {
			t.Errorf("v[%d] = %v, want %v", i, got, want)
		}
	}
}

func TestBlendCutsDoNotChangeBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		dst := rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "dst")
		src := rapid.SliceOfN(rapid.Float32(), n, n).Draw(t, "src")
		scale := rapid.SampledFrom([]float32{0, 1, 0.3}).Draw(t, "scale")
		weight := rapid.SampledFrom([]float32{1, 0.7}).Draw(t, "weight")
		parts := append([]float32(nil), dst...)
		blend(dst, dst, src, scale, weight)
		blend(parts[:cut], parts[:cut], src[:cut], scale, weight)
		blend(parts[cut:], parts[cut:], src[cut:], scale, weight)
		for i := range dst {
			if math.Float32bits(dst[i]) != math.Float32bits(parts[i]) {
				t.Fatalf("element %d: %v whole, %v cut at %d", i, dst[i], parts[i], cut)
			}
		}
	})
}
