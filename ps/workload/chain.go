package workload

import (
	"fmt"

	"fluentps/kernels"
)

// chain is a sequence of layers, each with its own parameters, and a loss at the end.
type chain struct {
	spec     ModelSpec
	from     Samples
	dev      *stream
	batchMax int
	layers   []Layer
	stages   []stage // one for each layer
	head     head
	errors   Errors // over the samples of the last Eval

	first         []int // by layer: its first parameter in model order; the last element is the number of parameters
	params, grads side
	resident      bool // they stay on the device: BindVecs
	held          bool // the parameters are on the device as the host has them
	in            inputs
	scores        scores
	fetches       []kernels.Event // of the gradients of the layer that travels to the host
	rows          int             // samples of the last Forward; 0: there is none that Backward may use
}

// stage computes one layer of a chain.
type stage interface {
	// name is the name of the layer.
	name() string
	// params are the parameters of the layer, with Layer unset.
	params() []Param
	// allocate allocates the scratch of the stage: perSample makes a vector of batchMax times so many values, once one of so many.
	allocate(perSample, once func(values int) kernels.Vec)
	// ends are the output of forward, and the vector in which the next stage leaves the gradient of that output for backward.
	ends() (out, grad kernels.Vec)
	forward(dev *stream, p pass)
	backward(dev *stream, p pass)
}

// pass has the arguments of forward and backward of a stage.
type pass struct {
	n      int           // samples
	train  bool          // backward will follow forward
	in     kernels.Vec   // the output of the stage below
	params []kernels.Vec // in the order of the stage's params
	grads  []kernels.Vec // backward writes them
	below  kernels.Vec   // backward writes the gradient of in there; empty: it is not needed
}

func newChain(s ModelSpec, from Samples, stages []stage, dev kernels.Device, batchMax int) (*chain, error) {
	m := &chain{spec: s, from: from, dev: &stream{Device: dev}, batchMax: batchMax, stages: stages,
		layers: layersOf(stages), first: []int{0}, head: headOf(s, from)}
	for l := range m.layers {
		m.first = append(m.first, m.first[l]+len(m.layers[l].Params))
	}
	if err := m.allocate(); err != nil {
		return nil, err
	}
	return m, nil
}

func (m *chain) allocate() error {
	var failed error
	once := func(values int) kernels.Vec {
		v, err := m.dev.Alloc(values)
		if err != nil && failed == nil {
			failed = fmt.Errorf("model %s: scratch for batches of %d: %w", m.spec.Name, m.batchMax, err)
		}
		return v
	}
	perSample := func(values int) kernels.Vec { return once(m.batchMax * values) }
	if err := m.allocateInputs(); err != nil {
		return fmt.Errorf("model %s: samples for batches of %d: %w", m.spec.Name, m.batchMax, err)
	}
	m.scores = scores{vec: perSample(2), host: make([]float32, 2*m.batchMax)}
	for _, st := range m.stages {
		st.allocate(perSample, once)
	}
	return failed
}

func (m *chain) Clone() (Model, error) {
	s := m.spec
	s.States = nil
	return NewModel(s, m.from, m.dev.Device, m.batchMax)
}

// failed is why the device computes no more; nil: it does.
func (m *chain) failed() error {
	if m.dev.err == nil {
		return nil
	}
	return fmt.Errorf("model %s: %w", m.spec.Name, m.dev.err)
}

func (m *chain) Bind(params, grads [][]float32) {
	m.params, m.grads, m.rows, m.resident, m.held = m.wrap("parameters", params), side{}, 0, false, false
	if grads != nil {
		m.grads = m.wrap("gradients", grads)
	}
}

func (m *chain) Hold(held bool) { m.held = held }

func (m *chain) Apart() bool { return m.in.buffers[0].vec.Dev != 0 }

func (m *chain) BindVecs(params, grads []kernels.Vec) {
	for _, given := range [][]kernels.Vec{params, grads} {
		all := paramsIn(m.layers)
		for i, p := range all {
			if len(given) != len(all) || given[i].Len() != p.N() {
				panic(fmt.Sprintf("workload: BindVecs got %d vectors for model %s, which do not fit %s of %d elements",
					len(given), m.spec.Name, p.Name, p.N()))
			}
		}
	}
	m.params, m.grads, m.rows, m.resident = side{vecs: params}, side{vecs: grads}, 0, true
}

func (m *chain) Forward(x Batch, wait func(layer int)) (loss float64, correct int, err error) {
	if x.N > m.batchMax {
		panic(fmt.Sprintf("workload: Forward of %d samples, model %s was made for %d", x.N, m.spec.Name, m.batchMax))
	}
	m.propagate(x, true, wait)
	m.rows = x.N
	logits, grad := m.stages[len(m.stages)-1].ends()
	loss, correct = m.score(x.N, logits, grad)
	return loss, correct, m.failed()
}

func (m *chain) Eval(x Batch) (loss float64, correct int, err error) {
	m.rows, m.errors = 0, Errors{}
	logits, _ := m.stages[len(m.stages)-1].ends()
	for lo := 0; lo < x.N && m.dev.err == nil; lo += m.batchMax {
		n := min(m.batchMax, x.N-lo)
		m.propagate(x.Part(lo, lo+n), false, nil)
		l, c := m.score(n, logits, kernels.Vec{})
		loss, correct = loss+l, correct+c
	}
	return loss, correct, m.failed()
}

// Errors are those of the last Eval.
func (m *chain) Errors() Errors { return m.errors }

// propagate leaves the logits of x at the end of the last stage, and its labels on the device.
func (m *chain) propagate(x Batch, train bool, wait func(layer int)) {
	m.mustFit(x)
	if m.params.vecs == nil {
		panic(fmt.Sprintf("workload: model %s used before Bind", m.spec.Name))
	}
	m.bring(x)
	in := m.in.x
	for l, st := range m.stages {
		if m.dev.err != nil {
			return
		}
		if wait != nil {
			wait(l)
		}
		if !m.resident && !m.held {
			for _, v := range m.params.runs[l] {
				m.dev.refresh(v)
			}
		}
		st.forward(m.dev, pass{n: x.N, train: train, in: in, params: m.of(l, m.params)})
		in, _ = st.ends()
	}
}

func (m *chain) Backward(ready func(layer int)) error {
	if m.rows == 0 || m.grads.vecs == nil {
		panic(fmt.Sprintf("workload: Backward of model %s without a Forward, or without gradients bound", m.spec.Name))
	}
	n := m.rows
	m.rows = 0 // the logits are overwritten: a second Backward would be wrong
	// A device with its own memory computes a layer while the gradients of the layer above travel to the host. The gradients of
	// a layer are not fetched before the layer above is ready, because the last gradients on the host may still be in flight.
	apart := m.grads.vecs[0].Dev != 0
	top := len(m.stages) - 1
	if m.resident {
		for l := top; l >= 0; l-- {
			m.differentiate(l, n)
			if l == 0 {
				m.loadAhead()
			}
			m.finish(l, ready)
		}
		return m.failed()
	}
	for l := top; l >= 0; l-- {
		if apart {
			m.differentiate(l, n)
		}
		if l == 0 {
			m.loadAhead() // the device still computes the lowest layers
		}
		if l < top {
			m.finish(l+1, ready)
		}
		if !apart {
			m.differentiate(l, n)
		}
		m.fetches = m.fetches[:0]
		for _, v := range m.grads.runs[l] {
			m.fetches = m.dev.fetch(m.fetches, v)
		}
	}
	m.finish(0, ready)
	return m.failed()
}

// of is the parameters or gradients of layer l.
func (m *chain) of(l int, s side) []kernels.Vec { return s.vecs[m.first[l]:m.first[l+1]] }

// differentiate launches the kernels that compute the gradients of layer l for n samples.
func (m *chain) differentiate(l, n int) {
	p := pass{n: n, in: m.in.x}
	if l > 0 {
		p.in, p.below = m.stages[l-1].ends()
	}
	p.params, p.grads = m.of(l, m.params), m.of(l, m.grads)
	m.stages[l].backward(m.dev, p)
}

// finish waits until the host has the gradients of layer l, if they travel to it, and calls ready, unless the device has failed.
func (m *chain) finish(l int, ready func(layer int)) {
	for _, e := range m.fetches {
		m.dev.see("wait for gradients", e.Wait())
	}
	if ready != nil && m.dev.err == nil {
		ready(l)
	}
}

// affine are the parameters of a layer with a weight and a bias; fan is Param.Fan of the weight.
func affine(layer string, weight, bias []int, fan int) []Param {
	return []Param{{Name: layer + ".weight", Shape: weight, Fan: fan}, {Name: layer + ".bias", Shape: bias}}
}
