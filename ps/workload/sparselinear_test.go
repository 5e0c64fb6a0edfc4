package workload

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/workload/dataset"
)

// sparseBatch returns n rows with about share of their cols values not 0, as a batch of either form.
func sparseBatch(seed uint64, n, cols int, share float64) (compressed, full Batch) {
	r := rand.New(rand.NewPCG(seed, 5))
	t := &rowsTable{x: make([]float32, n*cols), y: make([]int32, n), cols: cols}
	for i := range t.x {
		if r.Float64() < share {
			t.x[i] = float32(r.NormFloat64())
		}
	}
	for i := range t.y {
		t.y[i] = int32(r.IntN(2))
	}
	from := Samples{Cols: cols, Classes: 2}
	compressed, full = NewBatch("sparse_logistic", from, n), NewBatch("logistic", from, n)
	rows := ascending(0, n)
	compressed.Take(t, rows)
	full.Take(t, rows)
	return compressed, full
}

func TestSparseLogisticGradientsAgainstFiniteDifferences(t *testing.T) {
	const n, cols = 19, 23
	x, full := sparseBatch(1, n, cols, 0.2)
	m := newBound(t, ModelSpec{Name: "sparse_logistic"}, cols, 2, n, 3)
	for i := range m.params {
		for j := range m.params[i] {
			m.params[i][j] = 0.3 * float32(j%5-2)
		}
	}
	agreeWithDifferences(t, m, x, nil, 0, func(params [][]float64) (float64, int) { return reference(params, full, true) })
}

// On all rows sparse_logistic equals logistic: the parameters have the same names, shapes and initial values, and a step gives the
// same loss, hits and gradients, except for rounding.
func TestSparseLogisticIsLogistic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n, cols := rapid.IntRange(1, 12).Draw(rt, "n"), rapid.IntRange(1, 40).Draw(rt, "cols")
		share := rapid.SampledFrom([]float64{0, 0.1, 1}).Draw(rt, "share")
		seed := rapid.Uint64().Draw(rt, "seed")
		x, full := sparseBatch(seed, n, cols, share)
		a, b := newBound(t, ModelSpec{Name: "sparse_logistic"}, cols, 2, n, 1), newBound(t, ModelSpec{Name: "logistic"}, cols, 2, n, 1)
		if fmt.Sprint(a.layers) != fmt.Sprint(b.layers) || fmt.Sprint(a.params) != fmt.Sprint(b.params) {
			rt.Fatalf("layers %v, those of logistic are %v", a.layers, b.layers)
		}
		r := rand.New(rand.NewPCG(seed, 6))
		for i := range a.params {
			for j := range a.params[i] {
				a.params[i][j] = float32(r.NormFloat64())
			}
			copy(b.params[i], a.params[i])
		}
		loss, correct, _ := a.Forward(x, nil)
		a.Backward(nil)
		wantLoss, wantCorrect, _ := b.Forward(full, nil)
		b.Backward(nil)
		if math.Abs(loss-wantLoss) > 1e-4*(1+wantLoss) {
			rt.Fatalf("loss %g, that of logistic is %g", loss, wantLoss)
		}
		if correct != wantCorrect && share < 1 { // rounding may move a logit of many terms past 0
			rt.Fatalf("%d correct, of logistic %d", correct, wantCorrect)
		}
		for i := range a.grads {
			for j, g := range a.grads[i] {
				if want := b.grads[i][j]; math.Abs(float64(g-want)) > 1e-4*float64(n) {
					rt.Fatalf("gradient %d of %s is %g, that of logistic %g", j, a.all()[i].Name, g, want)
				}
			}
		}
		small := newBound(t, ModelSpec{Name: "sparse_logistic"}, cols, 2, 5, 1)
		small.Bind(a.params, nil)
		if again, hits, _ := small.Eval(x); math.Abs(again-loss) > 1e-6*(1+loss) || hits != correct {
			rt.Fatalf("Eval in parts of 5: loss %g correct %d, want %g and %d", again, hits, loss, correct)
		}
	})
}

func TestSparseLogisticMisusePanics(t *testing.T) {
	spec := ModelSpec{Name: "sparse_logistic"}
	m := newBound(t, spec, 4, 2, 2, 1)
	batch := func(n, cols int) Batch { b, _ := sparseBatch(1, n, cols, 0.5); return b }
	for name, f := range map[string]func(){
		"batch too large":    func() { m.Forward(batch(3, 4), nil) },
		"wrong columns":      func() { m.Forward(batch(2, 5), nil) },
		"dense rows":         func() { m.Forward(randomBatch(2, 4, 2), nil) },
		"no Forward":         func() { m.Bind(m.params, m.grads); m.Backward(nil) },
		"second Backward":    func() { m.Forward(batch(2, 4), nil); m.Backward(nil); m.Backward(nil) },
		"too few parameters": func() { m.Bind(m.params[:1], nil) },
		"wrong length":       func() { m.Bind([][]float32{m.params[1], m.params[0]}, nil) },
		"unbound":            func() { unbound(m).Eval(batch(1, 4)) },
		"too many rows": func() {
			b := batch(2, 4)
			b.Take(&rowsTable{x: make([]float32, 12), y: make([]int32, 3), cols: 4}, []int32{0, 1, 2})
		},
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
}

func TestSparseStepAllocatesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(path, []byte("-1 1:2 4:0.5\n+1 2:1 3:1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := dataset.Load(DataSpec{Set: "libsvm", Path: path})
	if err != nil {
		t.Fatal(err)
	}
	m := newBoundTo(t, ModelSpec{Name: "sparse_logistic"}, set.Samples(), 2, 1)
	b, rows := NewBatch("sparse_logistic", set.Samples(), 2), []int32{1, 0}
	if n := testing.AllocsPerRun(10, func() { b.Take(set.Train, rows); m.Forward(b, nil); m.Backward(nil) }); n != 0 {
		t.Errorf("a step allocates %g times", n)
	}
}

// BenchmarkLogisticStep has the shape of RCV1: 47,236 features, of which a row has about 75.
func BenchmarkLogisticStep(b *testing.B) {
	const n, cols = 32, 47236
	compressed, full := sparseBatch(1, n, cols, 75.0/cols)
	for name, x := range map[string]Batch{"sparse_logistic": compressed, "logistic": full} {
		b.Run(name, func(b *testing.B) {
			m := newBound(b, ModelSpec{Name: name}, cols, 2, n, 1)
			for b.Loop() {
				m.Forward(x, nil)
				m.Backward(nil)
			}
		})
	}
}
