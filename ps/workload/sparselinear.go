package workload

import (
	"fmt"

	"fluentps/kernels"
)

// sparseLinear is logistic or linear regression on sparse rows. The cost of a pass is proportional to the entries of the batch, plus the
// clearing of the gradient, which is pushed whole. It always computes on the host, because it does only one addition per fetched
// number. Its parameters are those of logistic and linear.
type sparseLinear struct {
	spec     ModelSpec
	from     Samples
	batchMax int
	layers   []Layer
	head     head
	errors   Errors // over the samples of the last Eval

	params, grads                  [][]float32 // weight, bias
	batch                          Batch       // of the last Forward; without samples there is none that Backward may use
	logits, labels, grad, one, hit []float32   // one element per sample; arguments of the loss kernel, of which hit may be sizes of errors
}

func sparseLinearLayers(_ ModelSpec, from Samples) []Layer {
	return []Layer{{Name: "fc1", Params: []Param{
		{Name: "fc1.weight", Shape: []int{1, from.Cols}}, // initially zero, as in logistic and linear
		{Name: "fc1.bias", Shape: []int{1}},
	}}}
}

func newSparseLinear(s ModelSpec, from Samples, _ kernels.Device, batchMax int) (Model, error) {
	m := &sparseLinear{spec: s, from: from, batchMax: batchMax, layers: sparseLinearLayers(s, from), head: headOf(s, from)}
	for _, v := range []*[]float32{&m.logits, &m.labels, &m.grad, &m.one, &m.hit} {
		*v = make([]float32, batchMax)
	}
	return m, nil
}

func (m *sparseLinear) Clone() (Model, error) {
	return newSparseLinear(m.spec, m.from, nil, m.batchMax)
}

func (m *sparseLinear) Bind(params, grads [][]float32) {
	mustBind(m.layers, m.spec, params, grads)
	m.params, m.grads, m.batch = params, grads, Batch{}
}

func (m *sparseLinear) Forward(x Batch, wait func(layer int)) (loss float64, correct int, err error) {
	if x.N > m.batchMax {
		panic(fmt.Sprintf("workload: Forward of %d samples, model %s was made for %d", x.N, m.spec.Name, m.batchMax))
	}
	m.mustFit(x)
	if wait != nil {
		wait(0)
	}
	m.batch = x
	loss, correct = m.score(x)
	return loss, correct, nil
}

func (m *sparseLinear) Eval(x Batch) (loss float64, correct int, err error) {
	m.mustFit(x)
	m.batch, m.errors = Batch{}, Errors{}
	for lo := 0; lo < x.N; lo += m.batchMax {
		l, c := m.score(x.Part(lo, min(lo+m.batchMax, x.N)))
		loss, correct = loss+l, correct+c
	}
	return loss, correct, nil
}

// Errors are those of the last Eval.
func (m *sparseLinear) Errors() Errors { return m.errors }

func (m *sparseLinear) mustFit(x Batch) {
	if x.Cols != m.from.Cols || len(x.Entries.Start) != x.N+1 {
		panic(fmt.Sprintf("workload: batch of %d x %d with the starts of %d sparse rows does not fit model %s with %d inputs",
			x.N, x.Cols, len(x.Entries.Start)-1, m.spec.Name, m.from.Cols))
	}
	mustHaveLabels(&x, m.from, m.spec)
	if m.params == nil {
		panic(fmt.Sprintf("workload: model %s used before Bind", m.spec.Name))
	}
}

// score writes the gradients of the logits of x, at most batchMax samples, to grad.
func (m *sparseLinear) score(x Batch) (loss float64, correct int) {
	weight, bias, e := m.params[0], float64(m.params[1][0]), &x.Entries
	for i := range x.N {
		lo, hi := e.Start[i], e.Start[i+1]
		value := e.Value[lo:hi]
		z := bias
		for k, j := range e.Index[lo:hi] {
			z += float64(value[k]) * float64(weight[j]) // the product is exact, so fusing it with the sum changes no bit
		}
		m.logits[i] = float32(z)
	}
	fillLabels(m.labels[:x.N], &x)
	m.head.kernel.CPU(kernels.Args{N: kernels.Sizes{x.N}, F: m.head.scalars,
		V: kernels.Vecs{{Host: m.logits}, {Host: m.labels}, {Host: m.grad}, {Host: m.one}, {Host: m.hit}}})
	for i := range x.N {
		loss += float64(m.one[i])
	}
	if m.head.isErrors {
		m.errors.add(m.hit[:x.N])
		return loss, 0
	}
	for _, hit := range m.hit[:x.N] {
		correct += int(hit)
	}
	return loss, correct
}

func (m *sparseLinear) Backward(ready func(layer int)) error {
	if m.batch.N == 0 || m.grads == nil {
		panic(fmt.Sprintf("workload: Backward of model %s without a Forward, or without gradients bound", m.spec.Name))
	}
	dWeight, e, sum := m.grads[0], &m.batch.Entries, float32(0)
	clear(dWeight)
	for i, g := range m.grad[:m.batch.N] {
		lo, hi := e.Start[i], e.Start[i+1]
		value := e.Value[lo:hi]
		for k, j := range e.Index[lo:hi] {
			dWeight[j] += float32(g * value[k])
		}
		sum += g
	}
	m.grads[1][0] = sum
	m.batch = Batch{}
	if ready != nil {
		ready(0)
	}
	return nil
}

// mustBind panics unless params, and grads if they are not nil, have the lengths of the parameters of the layers.
func mustBind(layers []Layer, s ModelSpec, params, grads [][]float32) {
	all := paramsIn(layers)
	for _, given := range [][][]float32{params, grads} {
		if given == nil {
			continue
		}
		if len(given) != len(all) {
			panic(fmt.Sprintf("workload: Bind got %d vectors, model %s has %d parameters", len(given), s.Name, len(all)))
		}
		for i, p := range all {
			if len(given[i]) != p.N() {
				panic(fmt.Sprintf("workload: Bind got %d elements for %s, which has %d", len(given[i]), p.Name, p.N()))
			}
		}
	}
}
