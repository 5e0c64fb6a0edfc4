package batchnorm

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestByHand(t *testing.T) {
	// 2 images of 2 channels of 1 position: channel 0 has 1 and 5 (mean 3, variance 4), channel 1 has 7 twice.
	x, y, saved := []float32{1, 7, 5, 7, 99}, make([]float32, 5), make([]float32, 4)
	s := shape{Images: 2, Channels: 2, Positions: 1}
	forward(y, saved, x, []float32{3, 3}, []float32{10, 20}, nil, s, 1e-12)
	if want := []float32{7, 20, 13, 20, 0}; !slices.Equal(y, want) {
		t.Errorf("forward %v, want %v", y, want)
	}
	if want := []float32{3, 7, 0.5, 1e6}; !slices.Equal(saved, want) {
		t.Errorf("saved %v, want %v", saved, want)
	}
	s.ReLU = true
	eval(y, x, []float32{3, 3}, []float32{1, 1}, []float32{3, 0}, []float32{4, 1}, []float32{1, 1, 1, -30}, s, 1e-12)
	if want := []float32{0, 23, 5, 0, 0}; !slices.Equal(y, want) {
		t.Errorf("with statistics, shortcut and ReLU %v, want %v", y, want)
	}
	mean, variance := make([]float32, 2), make([]float32, 2)
	running(mean, variance, []float32{1, 0}, []float32{2, 2}, []float32{3, 7, 0.5, 1e6}, s, 0.1, 1e-12)
	if want := []float32{2 * (0.9 + 0.3), 2 * 0.7}; !slices.Equal(mean, want) {
		t.Errorf("running mean %v, want %v", mean, want)
	}
	if want := []float32{2 * (1.8 + 0.8), 2 * 1.8}; math.Abs(float64(variance[0]-want[0])) > 1e-6 || variance[1] != want[1] { // 8 = 4 * 2/1
		t.Errorf("running variance %v, want %v", variance, want)
	}
}

func TestNaNPasses(t *testing.T) {
	nan := float32(math.NaN())
	y, saved := make([]float32, 2), make([]float32, 2)
	forward(y, saved, []float32{nan, 1}, []float32{1}, []float32{0}, nil, shape{1, 1, 2, true}, 1e-5)
	if !math.IsNaN(float64(y[0])) || !math.IsNaN(float64(saved[0])) {
		t.Errorf("output %v, saved %v of a NaN", y, saved)
	}
}

// Here the mean of the squares less the square of the mean would have no correct digit.
func TestLargeMean(t *testing.T) {
	const n = 1000
	x, y, saved := make([]float32, n), make([]float32, n), make([]float32, 2)
	for i := range x {
		x[i] = 4096 + float32(i%2)/8
	}
	forward(y, saved, x, []float32{1}, []float32{0}, nil, shape{1, 1, n, false}, 1e-12)
	for i, v := range y {
		if want := float32(i%2*2 - 1); math.Abs(float64(v-want)) > 1e-6 {
			t.Fatalf("element %d is %g, want %g", i, v, want)
		}
	}
}

// backward agrees with finite differences of a float64 batch norm, through mean and variance.
func TestGradientAgainstFiniteDifferences(t *testing.T) {
	s := shape{Images: 3, Channels: 2, Positions: 5, ReLU: true}
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	x, weights, res := draw(30), draw(30), draw(30)
	scale, shift := draw(2), draw(2)
	// p holds x, res, scale and shift, one after the other. The loss is the sum of weights * y.
	var p []float64
	for _, v := range slices.Concat(x, res, scale, shift) {
		p = append(p, float64(v))
	}
	loss := func() (sum float64) {
		for c := range 2 {
			var mean, variance float64
			each := func(do func(i int)) {
				for i := range 30 {
					if i/5%2 == c {
						do(i)
					}
				}
			}
			each(func(i int) { mean += p[i] / 15 })
			each(func(i int) { variance += (p[i] - mean) * (p[i] - mean) / 15 })
			each(func(i int) {
				y := p[60+c]*(p[i]-mean)/math.Sqrt(variance+1e-3) + p[62+c] + p[30+i]
				sum += float64(weights[i]) * max(0, y)
			})
		}
		return sum
	}
	y, saved, dx, dy := make([]float32, 30), make([]float32, 4), make([]float32, 30), slices.Clone(weights)
	dScale, dShift := make([]float32, 2), make([]float32, 2)
	forward(y, saved, x, scale, shift, res, s, 1e-3)
	backward(dx, dScale, dShift, dy, y, x, scale, saved, s)
	for i, got := range slices.Concat(dx, dy, dScale, dShift) {
		const h = 1e-6
		before := p[i]
		p[i] = before + h
		up := loss()
		p[i] = before - h
		down := loss()
		p[i] = before
		if want := (up - down) / (2 * h); math.Abs(float64(got)-want) > 1e-5*max(1, math.Abs(want)) {
			t.Errorf("gradient %d is %g, want %g", i, got, want)
		}
	}
}
