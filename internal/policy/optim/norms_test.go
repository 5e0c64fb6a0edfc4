package optim

import (
	"math"
	"math/rand/v2"
	"testing"
)

// naiveNorms is the definition.
func naiveNorms(push, params []float32, scale float64) (norm2, normInf, normW float64) {
	for i := range push {
		x := scale * float64(push[i])
		norm2 += x * x
		normInf = math.Max(normInf, math.Abs(x))
		normW += float64(params[i]) * float64(params[i])
	}
	return math.Sqrt(norm2), normInf, math.Sqrt(normW)
}

func TestNormsFollowTheDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for _, n := range []int{0, 1, 2, 3, 4, 5, 7, 8, 64, 1001, 100_003} {
		for _, scale := range []float64{1, 1.0 / 32, -2, 0} {
			push, params := gaussian(rng, n), gaussian(rng, n)
			norm2, normInf, normW := Norms(push, params, scale)
			want2, wantInf, wantW := naiveNorms(push, params, scale)
			for _, c := range []struct {
				what      string
				got, want float64
			}{{"norm2", float64(norm2), want2}, {"normInf", float64(normInf), wantInf}, {"normW", float64(normW), wantW}} {
				if math.Abs(c.got-c.want) > 1e-6*c.want {
					t.Errorf("n %d scale %v: %s = %v, want %v", n, scale, c.what, c.got, c.want)
				}
			}
		}
	}
}

// Each element counts, with either sign, and nothing beyond the end does.
func TestNormsSeeEveryElement(t *testing.T) {
	for n := 1; n <= 13; n++ {
		for at := range n {
			push, params := make([]float32, n), make([]float32, n)
			push[at], params[at] = -3, 4
			if norm2, normInf, normW := Norms(push, params, 0.5); norm2 != 1.5 || normInf != 1.5 || normW != 4 {
				t.Errorf("n %d, element %d: %v, %v, %v; want 1.5, 1.5, 4", n, at, norm2, normInf, normW)
			}
		}
	}
}

// Squares of large and of small numbers leave the range of float32; their norm does not.
func TestNormsDoNotOverflow(t *testing.T) {
	big, small := []float32{3e30, -4e30, 0, 0, 0}, []float32{3e-30, 4e-30, 0, 0, 0}
	norm2, normInf, normW := Norms(big, small, 1)
	if norm2 != 5e30 || normInf != 4e30 || normW != 5e-30 {
		t.Errorf("%v, %v, %v; want 5e30, 4e30, 5e-30", norm2, normInf, normW)
	}
}

func TestNormsShowNaN(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	for at := range 9 {
		for _, bad := range []float32{nan, inf} {
			push, params := []float32{1, 2, 3, 4, 5, 6, 7, 8, 9}, make([]float32, 9)
			push[at] = bad
			norm2, normInf, _ := Norms(push, params, 1)
			isBad := func(x float32) bool { return x != x || x > math.MaxFloat32 }
			if !isBad(norm2) || !isBad(normInf) {
				t.Errorf("element %d is %v: norms %v and %v", at, bad, norm2, normInf)
			}
		}
	}
}

func TestNormsOfUnequalLengthsPanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a push of 2 elements for 3 parameters was accepted")
		}
	}()
	Norms(make([]float32, 2), make([]float32, 3), 1)
}
