package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"fluentps/ps/workload/dataset"
)

const factorizationName = "matrix_factorization"

func rated(rows, columns int) Samples {
	return Samples{Cols: dataset.RatingCols, Matrix: Matrix{Rows: rows, Columns: columns}}
}

// ratingBatch returns n ratings, some of them in the same row or column.
func ratingBatch(n int, from Samples) Batch {
	r := rand.New(rand.NewPCG(3, 4))
	b := Batch{X: make([]float32, n*dataset.RatingCols), Y: make([]int32, n), N: n, Cols: dataset.RatingCols}
	for i := range n {
		b.X[i*dataset.RatingCols] = float32(r.IntN(from.Matrix.Rows))
		b.X[i*dataset.RatingCols+1] = float32(r.IntN(from.Matrix.Columns))
		b.X[i*dataset.RatingCols+2] = float32(r.NormFloat64())
	}
	return b
}

// factorizationReference is the sum of squared errors in float64.
func factorizationReference(left, right []float64, rank int, x Batch) (loss float64) {
	for s := range x.N {
		i, j := int(x.X[3*s]), int(x.X[3*s+1])
		e := -float64(x.X[3*s+2])
		for k := range rank {
			e += left[i*rank+k] * right[j*rank+k]
		}
		loss += e * e
	}
	return loss
}

func TestFactorizationGradientsAgainstFiniteDifferences(t *testing.T) {
	for _, rank := range []int{1, 3, 8} {
		t.Run(fmt.Sprint("rank", rank), func(t *testing.T) {
			from := rated(7, 5)
			m := newBoundTo(t, ModelSpec{Name: factorizationName, Rank: rank}, from, 40, 3)
			x := ratingBatch(37, from)
			agreeWithDifferences(t, m, x, nil, 0, func(params [][]float64) (float64, int) {
				return factorizationReference(params[0], params[1], rank, x), 0
			})
		})
	}
}

// The right factor may change when its gradient is ready, before the gradient of the left factor, which depends on it, is written.
func TestFactorizationWaitAndReadyOrder(t *testing.T) {
	from, spec := rated(6, 9), ModelSpec{Name: factorizationName, Rank: 4}
	x := ratingBatch(20, from)
	plain, m := newBoundTo(t, spec, from, 20, 5), newBoundTo(t, spec, from, 20, 5)
	wantLoss, _, _ := plain.Forward(x, nil)
	plain.Backward(nil)
	poison := func(v []float32) {
		for i := range v {
			v[i] = float32(math.NaN())
		}
	}
	poison(m.params[0])
	poison(m.params[1])
	var order []string
	loss, _, _ := m.Forward(x, func(l int) {
		order = append(order, fmt.Sprint("wait", l))
		copy(m.params[l], plain.params[l])
	})
	m.grads[0][0] = float32(math.Inf(1))
	m.Backward(func(l int) {
		order = append(order, fmt.Sprint("ready", l))
		if l == 1 && !math.IsInf(float64(m.grads[0][0]), 1) {
			t.Error("the left gradient was written before the right one was ready")
		}
		if fmt.Sprint(m.grads[l]) != fmt.Sprint(plain.grads[l]) {
			t.Errorf("gradient %d is not final when its layer is ready", l)
		}
		poison(m.params[l])
	})
	if got, want := strings.Join(order, " "), "wait0 wait1 ready1 ready0"; got != want {
		t.Errorf("order is %q, want %q", got, want)
	}
	if loss != wantLoss {
		t.Errorf("loss %g, want %g", loss, wantLoss)
	}
}

func TestFactorizationEvalAndClones(t *testing.T) {
	from, spec := rated(6, 9), ModelSpec{Name: factorizationName, Rank: 4}
	x := ratingBatch(50, from)
	m := newBoundTo(t, spec, from, 50, 1)
	want, _, _ := m.Forward(x, nil)
	clone := unbound(m)
	clone.Bind(m.params, nil)
	if loss, correct, _ := clone.Eval(x); loss != want || correct != 0 {
		t.Errorf("Eval of a clone: loss %g correct %d, want %g and 0", loss, correct, want)
	}
	if loss, _, _ := newBoundTo(t, spec, from, 7, 1).Eval(x); loss != want {
		t.Errorf("Eval of a model for 7: loss %g, want %g", loss, want)
	}
	if n := testing.AllocsPerRun(10, func() { m.Forward(x, nil); m.Backward(nil) }); n != 0 {
		t.Errorf("a step allocates %g times", n)
	}
}

func TestFactorizationMisuse(t *testing.T) {
	from, spec := rated(6, 9), ModelSpec{Name: factorizationName, Rank: 4}
	m := newBoundTo(t, spec, from, 2, 1)
	x := ratingBatch(2, from)
	for name, f := range map[string]func(){
		"batch too large": func() { m.Forward(ratingBatch(3, from), nil) },
		"no ratings":      func() { m.Forward(randomBatch(2, 4, 3), nil) },
		"row past matrix": func() { m.Eval(Batch{X: []float32{6, 0, 1}, Y: []int32{0}, N: 1, Cols: dataset.RatingCols}) },
		"no Forward":      func() { m.Bind(m.params, m.grads); m.Backward(nil) },
		"second Backward": func() { m.Forward(x, nil); m.Backward(nil); m.Backward(nil) },
		"factors swapped": func() { m.Bind([][]float32{m.params[1], m.params[0]}, nil) },
		"unbound":         func() { unbound(m).Eval(x) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
	for _, c := range []struct {
		spec ModelSpec
		from Samples
		want string
	}{
		{ModelSpec{Name: factorizationName}, from, "rank is 0, need 1 to 4096"},
		{ModelSpec{Name: factorizationName, Rank: 4, Layers: []int{3}}, from, "has no hidden layers"},
		{ModelSpec{Name: factorizationName, Rank: 4}, Samples{Cols: 4, Classes: 2},
			"are not ratings; choose one of the sets ratings, generated_ratings"},
		{ModelSpec{Name: "softmax"}, from, "the data set holds ratings, entries of a matrix; choose model matrix_factorization"},
		{ModelSpec{Name: "sparse_logistic"}, from, "the data set holds ratings"},
	} {
		if _, err := NewModel(c.spec, c.from, nil, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q in it", c.spec, err, c.want)
		}
	}
}

// Plain SGD reaches the noise of generated data: least squares with p parameters and n ratings of noise s has a test error of about
// s*sqrt(1+p/n), here 0.052.
func TestFactorizationLearnsUpToTheNoise(t *testing.T) {
	set, err := dataset.Load(DataSpec{Set: "generated_ratings", Rows: 8000, TestRows: 2000,
		Matrix: Matrix{Rows: 80, Columns: 60}, Rank: 3, Noise: 0.05, Seed: 2})
	if err != nil {
		t.Fatal(err)
	}
	const batch = 50
	m := newBoundTo(t, ModelSpec{Name: factorizationName, Rank: 3}, set.Samples(), batch, 1)
	test := NewBatch(factorizationName, set.Samples(), 2000)
	test.Take(set.Test, ascending(0, 2000))
	rmse := func() float64 {
		loss, _, _ := m.Eval(test)
		return math.Sqrt(loss / 2000)
	}
	before := rmse()
	sampler, b := dataset.NewSampler(ascending(0, 8000), batch, 1, 0), NewBatch(factorizationName, set.Samples(), batch)
	var picked []int32
	const steps = 40 * 8000 / batch
	for i := range int64(steps) {
		picked = sampler.Batch(i, picked)
		b.Take(set.Train, picked)
		m.Forward(b, nil)
		m.Backward(nil)
		descend(m, 0.05*(1-float32(i)/steps), 1)
	}
	after := rmse()
	t.Logf("test RMSE %.4f before, %.4f after training", before, after)
	if before < 0.7 || after > 0.058 || after < 0.048 {
		t.Errorf("test RMSE goes from %.4f to %.4f, want from about 1 to about 0.052", before, after)
	}
}
