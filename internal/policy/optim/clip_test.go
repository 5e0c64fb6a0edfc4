package optim

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// A clipped mean is that of clip_grad_norm_, computed in float64 here, and no longer than the norm.
func TestClipAgainstAPlainTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sums := rapid.SliceOfN(rapid.Float32Range(-1e6, 1e6), 1, 300).Draw(t, "sums")
		samples := rapid.Int64Range(1, 1000).Draw(t, "samples")
		c := Clip{Norm: rapid.Float64Range(1e-3, 1e4).Draw(t, "norm"), Of: ClipWorker}
		var squares float64
		for _, s := range sums {
			g := float64(s) / float64(samples)
			squares += g * g
		}
		coefficient := min(1, c.Norm/(math.Sqrt(squares)+1e-6))
		by := c.Scale(Squares(sums), samples)
		if math.Abs(float64(by)-coefficient) > 1e-6*coefficient {
			t.Fatalf("scale %v, want %v", by, coefficient)
		}
		got := make([]float32, len(sums))
		Scaled(got, sums, by)
		var clipped float64
		for i, s := range sums {
			g, want := float64(got[i])/float64(samples), coefficient*float64(s)/float64(samples)
			clipped += g * g
			if math.Abs(g-want) > 1e-6*(math.Abs(want)+1e-30) {
				t.Fatalf("element %d is %v, want %v", i, g, want)
			}
		}
		if norm := math.Sqrt(clipped); norm > c.Norm*(1+1e-6) {
			t.Fatalf("a norm of %v after clipping, want %v at most", norm, c.Norm)
		}
	})
}

// What is not finite is not scaled, and huge finite values do not overflow.
func TestClipOfWhatIsNotFinite(t *testing.T) {
	c := Clip{Norm: 1, Of: ClipWorker}
	for _, x := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		if by := c.Scale(Squares([]float32{1, x, 3}), 4); by != 1 {
			t.Errorf("with %v the scale is %v, want 1", x, by)
		}
	}
	huge := []float32{math.MaxFloat32, math.MaxFloat32}
	if by := c.Scale(Squares(huge), 1); !(by > 0 && by < 1e-38) {
		t.Errorf("the scale of huge values is %v", by)
	}
	if by := c.Scale(Squares([]float32{0, 0}), 0); by != 1 {
		t.Errorf("the scale of an empty sum is %v", by)
	}
}

func TestClipIsOf(t *testing.T) {
	if c := ClipDefaults(); c.OfWorkers() || c.OfMean() {
		t.Errorf("%+v clips", c)
	}
	for _, of := range []string{ClipWorker, ClipMean} {
		if c := (Clip{Norm: 1, Of: of}); c.OfWorkers() != (of == ClipWorker) || c.OfMean() != (of == ClipMean) {
			t.Errorf("%+v: of workers %v, of the mean %v", c, c.OfWorkers(), c.OfMean())
		}
	}
}
