package workload

import (
	"fmt"
	"time"

	"fluentps/kernels"
)

// synthetic is a model that learns nothing: layers of given sizes, constant gradients, and a given time of computing. It shows the
// cost of moving parameters, and how much of it overlap hides. Its computing is a sleep, which is what a host sees of an
// accelerator: the core is free meanwhile.
type synthetic struct {
	spec      ModelSpec
	layers    []Layer
	grads     [][]float32
	filled    int           // the gradients are sums over so many samples
	rows      int           // of the last Forward
	overshoot time.Duration // time by which the sleeps have been too long; the next one is shorter
}

// forwardShare is the share of forward in the computing of a step: backward has two products where forward has one.
const forwardShare = 1.0 / 3

func syntheticLayers(s ModelSpec, _ Samples) (layers []Layer) {
	for l, n := range s.Layers {
		name := fmt.Sprintf("layer%d", l+1)
		layers = append(layers, Layer{Name: name, Params: []Param{{Name: name + ".weight", Shape: []int{n}, Fan: n}}})
	}
	return layers
}

func newSynthetic(s ModelSpec, from Samples, _ kernels.Device, _ int) (Model, error) {
	return &synthetic{spec: s, layers: syntheticLayers(s, from)}, nil
}

func (m *synthetic) Clone() (Model, error) { return newSynthetic(m.spec, Samples{}, nil, 0) }

func (m *synthetic) Bind(params, grads [][]float32) {
	if len(params) != len(m.layers) || grads != nil && len(grads) != len(m.layers) {
		panic(fmt.Sprintf("workload: Bind got %d parameters and %d gradients, model synthetic has %d", len(params), len(grads), len(m.layers)))
	}
	m.grads, m.filled = grads, 0
}

func (m *synthetic) Forward(x Batch, wait func(layer int)) (loss float64, correct int, err error) {
	for l := range m.layers {
		if wait != nil {
			wait(l)
		}
		m.work(forwardShare, x.N)
	}
	m.rows = x.N
	return float64(x.N), 0, nil
}

// Backward writes the gradients once for each batch size, and again where somebody has changed them since: an all-reduce sums in place, and
// so do workers that compute a batch in parts. They are the same in every iteration, and a step without computing must not touch memory.
func (m *synthetic) Backward(ready func(layer int)) error {
	if m.rows == 0 || m.grads == nil {
		panic("workload: Backward of model synthetic without a Forward, or without gradients bound")
	}
	for l := len(m.layers) - 1; l >= 0; l-- {
		if m.filled != m.rows || m.isChanged(m.grads[l]) {
			for i := range m.grads[l] {
				m.grads[l][i] = float32(m.rows) * SyntheticGradient(i)
			}
		}
		m.work(1-forwardShare, m.rows)
		if ready != nil {
			ready(l)
		}
	}
	m.filled, m.rows = m.rows, 0
	return nil
}

// sampleEvery is the distance of the elements that isChanged looks at: one line of memory in 16 KiB. Whoever changes gradients in place
// changes whole pieces of layers, which are longer, or end with the layer.
const sampleEvery = 4096

// isChanged says whether the gradients of a layer are not as Backward wrote them.
func (m *synthetic) isChanged(grads []float32) bool {
	for i := 0; i < len(grads); i += sampleEvery {
		if grads[i] != float32(m.rows)*SyntheticGradient(i) {
			return true
		}
	}
	last := len(grads) - 1
	return grads[last] != float32(m.rows)*SyntheticGradient(last)
}

// SyntheticGradient is the gradient of element i of a layer of model synthetic, for one sample. Sums of a few
// thousand are exact in float32.
func SyntheticGradient(i int) float32 { return float32(1+i%7) / 1024 }

// Eval returns the loss 1 for every sample, and no correct one.
func (m *synthetic) Eval(x Batch) (loss float64, correct int, err error) { return float64(x.N), 0, nil }

// work sleeps for one layer's part of a pass over so many samples.
func (m *synthetic) work(share float64, samples int) {
	whole := m.spec.Compute.Of(samples)
	if whole <= 0 {
		return
	}
	start := time.Now()
	due := time.Duration(share*float64(whole))/time.Duration(len(m.layers)) - m.overshoot
	if due > 0 {
		time.Sleep(due)
	}
	m.overshoot = time.Since(start) - due
}
