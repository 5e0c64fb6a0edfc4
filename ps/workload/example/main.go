// Command models is fluentps with two more models. It shows how a module outside fluentps adds a model. This file is a
// whole one: logistic regression for any number of classes, by hand.
package main

import (
	"math"
	"slices"

	"fluentps"
	"fluentps/ps/workload"
)

var byHand = workload.ModelEntry{
	Name: "by_hand", Doc: "logistic regression, written by hand",
	Layers: func(_ workload.ModelSpec, from workload.Samples) []workload.Layer {
		weight := workload.Param{Name: "fc.weight", Shape: []int{from.Classes, from.Cols}, Fan: from.Cols}
		return []workload.Layer{{Name: "fc", Params: []workload.Param{weight}}}
	},
	New: func(_ workload.ModelSpec, from workload.Samples, _ workload.Device, _ int) (workload.Model, error) {
		return &logistic{classes: from.Classes}, nil
	},
}

func main() { fluentps.Main(fluentps.WithModel(byHand, elman)) }

type logistic struct {
	classes       int
	params, grads [][]float32
	d             []float64      // of the last Forward, by sample and class: the gradient of the score
	x             workload.Batch // of the last Forward
}

func (m *logistic) Bind(params, grads [][]float32) { m.params, m.grads = params, grads }

func (m *logistic) Clone() (workload.Model, error) { return &logistic{classes: m.classes}, nil }

// Eval takes batches of any size, so Forward does, too.
func (m *logistic) Eval(x workload.Batch) (loss float64, correct int, err error) {
	return m.Forward(x, nil)
}

func (m *logistic) Forward(x workload.Batch, wait func(layer int)) (loss float64, correct int, err error) {
	if wait != nil {
		wait(0) // returns when the weights of this iteration have arrived
	}
	m.x, m.d = x, slices.Grow(m.d[:0], x.N*m.classes)[:x.N*m.classes]
	for s := range x.N {
		d, sum, label := m.d[s*m.classes:][:m.classes], 0.0, x.Y[s]
		for c := range d {
			d[c] = 0
			for i, v := range x.X[s*x.Cols:][:x.Cols] {
				d[c] += float64(m.params[0][c*x.Cols+i]) * float64(v)
			}
			sum += math.Exp(d[c])
		}
		if d[label] == slices.Max(d) {
			correct++
		}
		loss += math.Log(sum) - d[label] // a sum over samples, as the gradient
		for c := range d {
			d[c] = math.Exp(d[c]) / sum
		}
		d[label]--
	}
	return loss, correct, nil
}

func (m *logistic) Backward(ready func(layer int)) error {
	clear(m.grads[0])
	for s := range m.x.N {
		for c, d := range m.d[s*m.classes:][:m.classes] {
			for i, v := range m.x.X[s*m.x.Cols:][:m.x.Cols] {
				m.grads[0][c*m.x.Cols+i] += float32(d * float64(v))
			}
		}
	}
	if ready != nil {
		ready(0) // the gradient leaves now
	}
	return nil
}
