package workload

import (
	"fmt"
	"slices"

	"fluentps/kernels"
)

// dense is a chain of fully connected layers with ReLU between them and a cross-entropy at the end:
// softmax over the classes, or a sigmoid when there is one output.
type dense struct {
	spec            ModelSpec
	dev             kernels.Device
	inputs, classes int
	batchMax        int
	widths          []int // inputs, hidden widths, outputs
	layers          []Layer
	head            *kernels.Kernel

	params, grads []kernels.Vec // model order: weight, bias of each layer
	x, labels     kernels.Vec   // the current batch
	loss, hit     kernels.Vec   // one element a sample
	out           []kernels.Vec // of layer l; after Forward the last holds the gradient of the logits
	outGrad       []kernels.Vec // gradient of out[l] of the hidden layers
	rows          int           // samples of the last Forward; 0: none that Backward may use
	host          []float32     // batchMax elements to convert labels and fetch losses
}

func newDense(s ModelSpec, inputs, classes int, dev kernels.Device, batchMax int) (*dense, error) {
	m := &dense{spec: s, dev: dev, inputs: inputs, classes: classes, batchMax: batchMax, head: kernels.SoftmaxXent}
	outputs := classes
	if s.Name == "logistic" {
		m.head, outputs = kernels.SigmoidXent, 1
	}
	m.widths = slices.Concat([]int{inputs}, s.Layers, []int{outputs})
	for l := range len(m.widths) - 1 {
		in, out, name := m.widths[l], m.widths[l+1], fmt.Sprintf("fc%d", l+1)
		fan := in
		if len(s.Layers) == 0 {
			fan = 0 // the loss is convex: zero is as good a start as any, and leaves no noise on inputs that are always 0
		}
		m.layers = append(m.layers, Layer{Name: name, Params: []Param{
			{Name: name + ".weight", Shape: []int{out, in}, Layer: l, Fan: fan},
			{Name: name + ".bias", Shape: []int{out}, Layer: l},
		}})
	}
	if err := m.allocate(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *dense) allocate() error {
	var failed error
	alloc := func(cols int) kernels.Vec {
		v, err := m.dev.Alloc(m.batchMax * cols)
		if err != nil && failed == nil {
			failed = fmt.Errorf("model %s: scratch for batches of %d: %w", m.spec.Name, m.batchMax, err)
		}
		return v
	}
	m.x, m.labels, m.loss, m.hit = alloc(m.inputs), alloc(1), alloc(1), alloc(1)
	last := len(m.layers) - 1
	for l := range m.layers {
		m.out = append(m.out, alloc(m.widths[l+1]))
		if l < last {
			m.outGrad = append(m.outGrad, alloc(m.widths[l+1]))
		}
	}
	// The loss kernel turns logits into their gradient in place.
	m.outGrad = append(m.outGrad, m.out[last])
	m.host = make([]float32, m.batchMax)
	return failed
}

func (m *dense) Layers() []Layer { return m.layers }

func (m *dense) Clone() Model {
	c, err := newDense(m.spec, m.inputs, m.classes, m.dev, m.batchMax)
	must(err)
	return c
}

func (m *dense) Bind(params, grads [][]float32) {
	m.params, m.grads, m.rows = m.wrap("parameters", params), nil, 0
	if grads != nil {
		m.grads = m.wrap("gradients", grads)
	}
}

func (m *dense) wrap(what string, given [][]float32) []kernels.Vec {
	all := Params(m)
	if len(given) != len(all) {
		panic(fmt.Sprintf("workload: Bind got %d %s, model %s has %d", len(given), what, m.spec.Name, len(all)))
	}
	vecs := make([]kernels.Vec, len(all))
	for i, p := range all {
		if len(given[i]) != p.N() {
			panic(fmt.Sprintf("workload: Bind got %d elements of %s for %s, which has %d", len(given[i]), what, p.Name, p.N()))
		}
		v, err := m.dev.Wrap(given[i])
		must(err)
		vecs[i] = v
	}
	return vecs
}

func (m *dense) Forward(x Batch, wait func(layer int)) (loss float64, correct int) {
	if x.N > m.batchMax {
		panic(fmt.Sprintf("workload: Forward of %d samples, model %s was made for %d", x.N, m.spec.Name, m.batchMax))
	}
	m.propagate(x, wait)
	m.rows = x.N
	return m.score(x.N, m.out[len(m.out)-1])
}

func (m *dense) Eval(x Batch) (loss float64, correct int) {
	m.rows = 0
	for lo := 0; lo < x.N; lo += m.batchMax {
		n := min(m.batchMax, x.N-lo)
		m.propagate(Batch{X: x.X[lo*x.Cols : (lo+n)*x.Cols], Y: x.Y[lo : lo+n], N: n, Cols: x.Cols}, nil)
		l, c := m.score(n, kernels.Vec{})
		loss, correct = loss+l, correct+c
	}
	return loss, correct
}

// propagate leaves the logits of x in the last element of out, and its labels on the device.
func (m *dense) propagate(x Batch, wait func(layer int)) {
	if x.Cols != m.inputs || len(x.X) < x.N*x.Cols || len(x.Y) < x.N {
		panic(fmt.Sprintf("workload: batch of %d x %d with %d values and %d labels does not fit model %s with %d inputs",
			x.N, x.Cols, len(x.X), len(x.Y), m.spec.Name, m.inputs))
	}
	if m.params == nil {
		panic(fmt.Sprintf("workload: model %s used before Bind", m.spec.Name))
	}
	must(m.dev.Upload(m.x, x.X[:x.N*x.Cols]))
	for i, y := range x.Y[:x.N] {
		m.host[i] = float32(y)
	}
	must(m.dev.Upload(m.labels, m.host[:x.N]))
	in, last := m.x, len(m.layers)-1
	for l, out := range m.out {
		if wait != nil {
			wait(l)
		}
		weight, bias := m.params[2*l], m.params[2*l+1]
		product := kernels.Args{V: kernels.Vecs{in, weight, out, bias}, N: kernels.Sizes{x.N, m.widths[l+1], m.widths[l]}}
		if l < last {
			product.V[3] = kernels.Vec{} // BiasReLU adds it in the pass that it makes anyway
		}
		m.launch(kernels.GemmNT, product)
		if l < last {
			m.launch(kernels.BiasReLU, kernels.Args{V: kernels.Vecs{out, bias}, N: kernels.Sizes{x.N, m.widths[l+1]}})
		}
		in = out
	}
}

// score runs the loss kernel on n rows of logits and adds its results up in float64.
func (m *dense) score(n int, grad kernels.Vec) (loss float64, correct int) {
	logits := m.out[len(m.out)-1]
	args := kernels.Args{V: kernels.Vecs{logits, m.labels, grad, m.loss, m.hit}, N: kernels.Sizes{n, m.classes}}
	m.launch(m.head, args)
	must(m.dev.Download(m.host[:n], m.loss))
	for _, v := range m.host[:n] {
		loss += float64(v)
	}
	must(m.dev.Download(m.host[:n], m.hit))
	for _, v := range m.host[:n] {
		correct += int(v)
	}
	return loss, correct
}

func (m *dense) Backward(ready func(layer int)) {
	if m.rows == 0 || m.grads == nil {
		panic(fmt.Sprintf("workload: Backward of model %s without a Forward, or without gradients bound", m.spec.Name))
	}
	n := m.rows
	m.rows = 0 // the logits are overwritten: a second Backward would be wrong
	for l := len(m.layers) - 1; l >= 0; l-- {
		in, out := m.widths[l], m.widths[l+1]
		input := m.x
		if l > 0 {
			input = m.out[l-1]
		}
		m.launch(kernels.GemmTN, kernels.Args{V: kernels.Vecs{m.outGrad[l], input, m.grads[2*l]}, N: kernels.Sizes{out, in, n}})
		m.launch(kernels.BiasGrad, kernels.Args{V: kernels.Vecs{m.outGrad[l], m.grads[2*l+1]}, N: kernels.Sizes{n, out}})
		if l > 0 {
			below := m.outGrad[l-1]
			m.launch(kernels.GemmNN, kernels.Args{V: kernels.Vecs{m.outGrad[l], m.params[2*l], below}, N: kernels.Sizes{n, in, out}})
			m.launch(kernels.ReLUGrad, kernels.Args{V: kernels.Vecs{below, input}, N: kernels.Sizes{n, in}})
		}
		must(m.dev.Sync())
		if ready != nil {
			ready(l)
		}
	}
}

func (m *dense) launch(k *kernels.Kernel, a kernels.Args) { must(m.dev.Launch(k, a)) }

func must(err error) {
	if err != nil {
		panic(fmt.Errorf("workload: %w", err))
	}
}
