package workload

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload/dataset"
)

// bound is a model with its own memory.
type bound struct {
	Model
	layers        []Layer
	params, grads [][]float32
}

// all are the parameters in model order.
func (b *bound) all() []Param { return paramsIn(b.layers) }

// layersFor are the layers of a model that exists.
func layersFor(t testing.TB, s ModelSpec, from Samples) []Layer {
	t.Helper()
	a, err := NewArchitecture(s, from)
	if err != nil {
		t.Fatal(err)
	}
	return a.Layers
}

func newBound(t testing.TB, s ModelSpec, inputs, classes, batchMax int, seed uint64) *bound {
	t.Helper()
	return newBoundTo(t, s, Samples{Cols: inputs, Classes: classes}, batchMax, seed)
}

// images are samples for a model that takes only images.
func images(channels, height, width, classes int) Samples {
	i := Image{Channels: channels, Height: height, Width: width}
	return Samples{Cols: i.Values(), Classes: classes, Image: i}
}

func newBoundTo(t testing.TB, s ModelSpec, from Samples, batchMax int, seed uint64) *bound {
	t.Helper()
	m, err := NewModel(s, from, cpu.New(1), batchMax)
	if err != nil {
		t.Fatal(err)
	}
	return bind(m, layersFor(t, s, from), seed)
}

// bind gives a model its initial parameters.
func bind(m Model, layers []Layer, seed uint64) *bound {
	b := &bound{Model: m, layers: layers}
	for _, p := range b.all() {
		b.params = append(b.params, make([]float32, p.N()))
		b.grads = append(b.grads, make([]float32, p.N()))
		Fill(b.params[len(b.params)-1], seed, p, 0)
	}
	m.Bind(b.params, b.grads)
	return b
}

func randomBatch(n, cols, classes int) Batch {
	r := rand.New(rand.NewPCG(1, 2))
	b := Batch{X: make([]float32, n*cols), Y: make([]int32, n), N: n, Cols: cols}
	for i := range b.X {
		b.X[i] = float32(r.NormFloat64())
	}
	for i := range b.Y {
		b.Y[i] = int32(r.IntN(classes))
	}
	return b
}

// reference computes the loss sum and correct count of a chain of dense layers in float64.
func reference(params [][]float64, x Batch, sigmoid bool) (loss float64, correct int) {
	return denseReference(params, wide(x.X), x.Y, sigmoid)
}

// denseReference is reference for rows in float64.
func denseReference(params [][]float64, x []float64, y []int32, sigmoid bool) (loss float64, correct int) {
	cols := len(x) / len(y)
	for i := range y {
		in := x[i*cols : (i+1)*cols]
		for l := 0; l < len(params); l += 2 {
			out := slices.Clone(params[l+1])
			for o := range out {
				for j, v := range in {
					out[o] += params[l][o*len(in)+j] * v
				}
				if l+2 < len(params) {
					out[o] = max(out[o], 0)
				}
			}
			in = out
		}
		label := int(y[i])
		if sigmoid {
			in = []float64{0, in[0]} // a sigmoid is a softmax whose other logit is 0
		}
		var sum float64
		for _, z := range in {
			sum += math.Exp(z)
		}
		loss += math.Log(sum) - in[label]
		if slices.Index(in, slices.Max(in)) == label {
			correct++
		}
	}
	return loss, correct
}

func TestGradientsAgainstFiniteDifferences(t *testing.T) {
	for _, c := range []struct {
		spec            ModelSpec
		inputs, classes int
	}{
		{ModelSpec{Name: "softmax"}, 11, 5},
		{ModelSpec{Name: "mlp", Layers: []int{7}}, 9, 3},
		{ModelSpec{Name: "mlp", Layers: []int{13, 6}}, 8, 4},
		{ModelSpec{Name: "logistic"}, 17, 2},
	} {
		t.Run(fmt.Sprintf("%s%v", c.spec.Name, c.spec.Layers), func(t *testing.T) {
			m := newBound(t, c.spec, c.inputs, c.classes, 20, 3)
			awayFromZero(m)
			x := randomBatch(19, c.inputs, c.classes)
			agreeWithDifferences(t, m, x, nil, 0, func(params [][]float64) (float64, int) {
				return reference(params, x, c.spec.Name == "logistic")
			})
		})
	}
}

// Parameters may arrive while Forward runs, and may change as soon as Backward says that their layer is ready. Until then the last
// gradients of the layers below may be in flight.
func TestWaitAndReadyOrder(t *testing.T) {
	for _, c := range []struct {
		spec   ModelSpec
		from   Samples
		layers int
	}{
		{ModelSpec{Name: "mlp", Layers: []int{6, 5}}, Samples{Cols: 7, Classes: 3}, 3},
		{ModelSpec{Name: "lenet"}, images(1, 12, 13, 3), 5},
		{ModelSpec{Name: "resnet20"}, images(1, 8, 9, 3), 20},
	} {
		var want []string
		for l := range c.layers {
			want = append(want, fmt.Sprint("wait", l))
		}
		for l := range c.layers {
			want = append(want, fmt.Sprint("ready", c.layers-1-l))
		}
		t.Run(c.spec.Name, func(t *testing.T) { waitAndReadyOrder(t, c.spec, c.from, strings.Join(want, " ")) })
	}
}

func waitAndReadyOrder(t *testing.T, spec ModelSpec, from Samples, want string) {
	x := randomBatch(4, from.Cols, from.Classes)
	plain := newBoundTo(t, spec, from, 4, 5)
	wantLoss, _, _ := plain.Forward(x, nil)
	plain.Backward(nil)

	m := newBoundTo(t, spec, from, 4, 5)
	of := func(layer int) (params []int) { // in model order
		for i, p := range m.all() {
			if p.Layer == layer {
				params = append(params, i)
			}
		}
		return params
	}
	poison := func(layer int) {
		for _, k := range of(layer) {
			for i := range m.params[k] {
				m.params[k][i] = float32(math.NaN())
			}
		}
	}
	for l := range m.layers {
		poison(l)
	}
	var order []string
	loss, _, _ := m.Forward(x, func(l int) {
		order = append(order, fmt.Sprint("wait", l))
		for _, k := range of(l) {
			copy(m.params[k], plain.params[k])
		}
	})
	for _, g := range m.grads {
		g[0] = float32(math.Inf(1))
	}
	m.Backward(func(l int) {
		for i := range of(l)[0] {
			if !math.IsInf(float64(m.grads[i][0]), 1) {
				t.Errorf("gradient of %s was written before layer %d was ready", m.all()[i].Name, l)
			}
		}
		order = append(order, fmt.Sprint("ready", l))
		poison(l)
		for _, i := range of(l) {
			if !slices.Equal(m.grads[i], plain.grads[i]) {
				t.Errorf("gradient of %s is not final when layer %d is ready", m.all()[i].Name, l)
			}
		}
	})
	if got := strings.Join(order, " "); got != want {
		t.Errorf("order is %q, want %q", got, want)
	}
	if loss != wantLoss {
		t.Errorf("loss %g, want %g", loss, wantLoss)
	}
	for i := range m.grads {
		if !slices.Equal(m.grads[i], plain.grads[i]) {
			t.Errorf("gradient of %s differs after parameters changed", m.all()[i].Name)
		}
	}
}

func TestEvalTakesAnyBatchAndClonesAreApart(t *testing.T) {
	t.Run("mlp", func(t *testing.T) {
		evalAndClone(t, ModelSpec{Name: "mlp", Layers: []int{5}}, Samples{Cols: 6, Classes: 4})
	})
	t.Run("lenet", func(t *testing.T) { evalAndClone(t, ModelSpec{Name: "lenet"}, images(2, 13, 12, 4)) })
}

func evalAndClone(t *testing.T, spec ModelSpec, from Samples) {
	x := randomBatch(50, from.Cols, 4)
	m := newBoundTo(t, spec, from, 50, 1)
	want, wantCorrect, _ := m.Forward(x, nil)

	small := newBoundTo(t, spec, from, 7, 1)
	if loss, correct, _ := small.Eval(x); math.Abs(loss-want) > 1e-4 || correct != wantCorrect {
		t.Errorf("Eval in parts of 7: loss %g correct %d, want %g and %d", loss, correct, want, wantCorrect)
	}
	clone, err := m.Clone()
	if err != nil {
		t.Fatal(err)
	}
	clone.Bind(m.params, nil)
	if loss, correct, _ := clone.Eval(randomBatch(3, from.Cols, 4)); loss <= 0 || correct > 3 {
		t.Errorf("clone: loss %g correct %d", loss, correct)
	}
	m.Backward(nil) // the clone's Eval must not change m's activations
	if again, _, _ := m.Forward(x, nil); again != want {
		t.Errorf("loss %g after using a clone, want %g", again, want)
	}
}

func TestLayers(t *testing.T) {
	m := newBound(t, ModelSpec{Name: "mlp", Layers: []int{256, 128}}, 784, 10, 1, 0)
	var got []string
	for _, p := range m.all() {
		got = append(got, fmt.Sprint(p.Name, p.Shape, p.Layer, " ", p.Fan))
	}
	want := []string{
		"fc1.weight[256 784]0 784", "fc1.bias[256]0 0",
		"fc2.weight[128 256]1 256", "fc2.bias[128]1 0",
		"fc3.weight[10 128]2 128", "fc3.bias[10]2 0",
	}
	for i := range want {
		if strings.ReplaceAll(got[i], " ", "") != strings.ReplaceAll(want[i], " ", "") {
			t.Errorf("parameter %d is %s, want %s", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d parameters, want %d", len(got), len(want))
	}
}

func TestFillIsPureAndSpread(t *testing.T) {
	p := Param{Name: "fc1.weight", Shape: []int{100, 50}, Fan: 24}
	whole := make([]float32, p.N())
	Fill(whole, 7, p, 0)
	part := make([]float32, 123)
	Fill(part, 7, p, 1000)
	if !slices.Equal(part, whole[1000:1123]) {
		t.Error("a slice is filled differently from the whole")
	}
	var sum, squares float64
	for _, v := range whole {
		if math.Abs(float64(v)) > 0.5 { // sqrt(6/24)
			t.Fatalf("value %g is past the limit 0.5", v)
		}
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	n := float64(len(whole))
	if mean, variance := sum/n, squares/n; math.Abs(mean) > 0.02 || math.Abs(variance-0.25/3) > 0.005 {
		t.Errorf("mean %g variance %g, want 0 and %g", mean, variance, 0.25/3)
	}
	for _, other := range []struct {
		seed uint64
		p    Param
	}{{8, p}, {7, Param{Name: "fc2.weight", Shape: p.Shape, Fan: p.Fan}}} {
		Fill(part, other.seed, other.p, 1000)
		if slices.Equal(part, whole[1000:1123]) {
			t.Errorf("seed %d name %s gives the same values", other.seed, other.p.Name)
		}
	}
	Fill(part, 7, Param{Name: "fc1.bias", Shape: []int{123}}, 0)
	if slices.Max(part) != 0 || slices.Min(part) != 0 {
		t.Error("without fan, values are not zero")
	}
}

func TestNewModelErrors(t *testing.T) {
	for _, c := range []struct {
		spec           ModelSpec
		inputs, labels int
		batch          int
		want           string
	}{
		{ModelSpec{Name: "cnn"}, 4, 2, 1,
			`model "cnn" is not known; choose one of: softmax, linear, mlp, lenet, resnet20, resnet32, resnet44, resnet56, resnet110, logistic, sparse_logistic, sparse_linear, matrix_factorization, external, synthetic`},
		{ModelSpec{Name: "synthetic"}, 4, 2, 1, "layers is empty"},
		{ModelSpec{Name: "synthetic", Layers: []int{5, 0}}, 4, 2, 1, "layer 2 has 0 parameters"},
		{ModelSpec{Name: "mlp"}, 4, 2, 1, "layers is empty"},
		{ModelSpec{Name: "mlp", Layers: []int{3, 0}}, 4, 2, 1, "hidden layer 2 has width 0"},
		{ModelSpec{Name: "softmax", Layers: []int{3}}, 4, 2, 1, "has no hidden layers"},
		{ModelSpec{Name: "logistic"}, 4, 3, 1, "has 3 classes"},
		{ModelSpec{Name: "sparse_logistic"}, 4, 3, 1, "model sparse_logistic: the data set has 3 classes"},
		{ModelSpec{Name: "softmax"}, 0, 2, 1, "0 inputs"},
		{ModelSpec{Name: "softmax"}, 4, 1, 1, "1 classes"},
		{ModelSpec{Name: "softmax"}, 4, 2, 0, "batches of 0"},
		{ModelSpec{Name: "lenet"}, 784, 10, 1,
			"model lenet: the data set's rows are 784 numbers, not images; choose one of the sets idx, cifar10, images, give image " +
				"to generated, or choose model mlp"},
	} {
		if _, err := NewModel(c.spec, Samples{Cols: c.inputs, Classes: c.labels}, cpu.New(1), c.batch); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q in it", c.spec, err, c.want)
		}
	}
	m, err := NewModel(ModelSpec{Name: "softmax"}, Samples{Cols: 4, Classes: 2}, full{cpu.New(1)}, 1)
	if !errors.Is(err, errFull) || m != nil {
		t.Errorf("a full device: model %v, error %v", m, err)
	}
}

var errFull = errors.New("out of memory")

type full struct{ kernels.Device }

func (full) Alloc(int) (kernels.Vec, error) { return kernels.Vec{}, errFull }

// unbound is a clone of a model.
func unbound(m Model) Model {
	c, _ := m.Clone()
	return c
}

func TestMisusePanics(t *testing.T) {
	m := newBound(t, ModelSpec{Name: "softmax"}, 4, 3, 2, 1)
	for name, f := range map[string]func(){
		"batch too large":    func() { m.Forward(randomBatch(3, 4, 3), nil) },
		"wrong columns":      func() { m.Forward(randomBatch(2, 5, 3), nil) },
		"no Forward":         func() { m.Bind(m.params, m.grads); m.Backward(nil) },
		"second Backward":    func() { m.Forward(randomBatch(2, 4, 3), nil); m.Backward(nil); m.Backward(nil) },
		"too few parameters": func() { m.Bind(m.params[:1], nil) },
		"wrong length":       func() { m.Bind([][]float32{m.params[1], m.params[0]}, nil) },
		"unbound":            func() { unbound(m).Eval(randomBatch(1, 4, 3)) },
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

func TestStepAllocatesNothing(t *testing.T) {
	for name, m := range map[string]*bound{
		"mlp":      newBound(t, ModelSpec{Name: "mlp", Layers: []int{8}}, 144, 3, 4, 1),
		"lenet":    newBoundTo(t, ModelSpec{Name: "lenet"}, images(1, 12, 12, 3), 4, 1),
		"resnet20": newBoundTo(t, ModelSpec{Name: "resnet20"}, images(1, 12, 12, 3), 4, 1),
	} {
		x := randomBatch(4, 144, 3)
		if n := testing.AllocsPerRun(10, func() { m.Forward(x, nil); m.Backward(nil) }); n != 0 {
			t.Errorf("a step of %s allocates %g times", name, n)
		}
	}
}

func BenchmarkMLPStep(b *testing.B) {
	for _, batch := range []int{32, 64} {
		b.Run(fmt.Sprintf("784-256-128-10/batch=%d/%s", batch, strings.ReplaceAll(cpu.Backend(), " ", "-")), func(b *testing.B) {
			m := newBound(b, ModelSpec{Name: "mlp", Layers: []int{256, 128}}, 784, 10, batch, 1)
			x := randomBatch(batch, 784, 10)
			for b.Loop() {
				m.Forward(x, nil)
				m.Backward(nil)
			}
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N), "ms/step")
		})
	}
}

// A rule of sync names parameters, so their names must not depend on the data.
func TestParameterNamesDoNotDependOnTheSamples(t *testing.T) {
	for _, name := range ModelNames() {
		s := ModelSpec{Name: name}
		if IsExternal(name) { // a file has them
			continue
		}
		switch name {
		case "mlp", "synthetic":
			s.Layers = []int{7, 5}
		case "matrix_factorization":
			s.Rank = 3
		}
		for _, from := range []Samples{{Cols: 3 * 32 * 32, Classes: 2, Image: Image{Channels: 3, Height: 32, Width: 32}},
			{Cols: 28 * 28, Classes: 2, Image: Image{Channels: 1, Height: 28, Width: 28}}} {
			if TakesRatings(name) {
				from = Samples{Cols: dataset.RatingCols, Matrix: Matrix{Rows: from.Cols, Columns: 9}}
			}
			if _, classes := TakesTargets(name); !classes && from.Classes > 0 {
				from.Classes, from.Regress = 0, true
			}
			var want []string
			for _, p := range paramsIn(layersFor(t, s, from)) {
				want = append(want, p.Name)
			}
			if got := ParamNames(s); len(got) == 0 || !slices.Equal(got, want) {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	}
	if got := ParamNames(ModelSpec{Name: "mlp"}); got != nil {
		t.Errorf("a model that is refused has the names %v", got)
	}
}

// These values may not change: runs and checkpoints of an older version depend on them.
func TestInitialValuesArePinned(t *testing.T) {
	x := make([]float32, 2)
	Fill(x, 7, Param{Name: "fc1.weight", Fan: 6}, 100)
	if x[0] != 0.8358427 || x[1] != 0.10971928 {
		t.Errorf("initial values are %v, want [0.8358427 0.10971928]", x)
	}
}
