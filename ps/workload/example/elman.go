package main

import (
	"fmt"
	"math"

	"fluentps/ps/workload"
)

// A recurrent network (Elman, Finding structure in time, Cognitive Science 14, 1990) as a model of two layers. A row is a
// sequence of steps, each with some inputs: h = tanh(in*x + back*h + bias). The last h gives the scores of the classes.
const steps, units = 4, 8

var elman = workload.ModelEntry{
	Name: "elman",
	Doc:  "a recurrent network of 8 units that reads a row in 4 steps",
	Check: func(s workload.ModelSpec, from workload.Samples) error {
		if from.Cols%steps != 0 {
			return fmt.Errorf("model elman: rows of %d numbers are not %d equal steps; take a multiple of %d features",
				from.Cols, steps, steps)
		}
		return nil
	},
	Layers: func(s workload.ModelSpec, from workload.Samples) []workload.Layer {
		inputs := from.Cols / steps
		return []workload.Layer{
			{Name: "cell", Params: []workload.Param{
				{Name: "cell.in", Shape: []int{units, inputs}, Fan: inputs},
				{Name: "cell.back", Shape: []int{units, units}, Fan: 4 * units},
				{Name: "cell.bias", Shape: []int{units}}}},
			{Name: "head", Params: []workload.Param{{Name: "head.weight", Shape: []int{from.Classes, units}, Fan: units}}},
		}
	},
	New: func(s workload.ModelSpec, from workload.Samples, _ workload.Device, batchMax int) (workload.Model, error) {
		return &network{inputs: from.Cols / steps, classes: from.Classes}, nil
	},
}

type network struct {
	inputs, classes int
	p, g            [][]float32         // in, back, bias, weight; their gradients
	x               workload.Batch      // of the last Forward
	h               [][steps + 1]vector // by sample: the state before each step, and the last one
	scores          [][]float64         // by sample: the gradient of its scores
}

type vector [units]float64

func (n *network) Bind(params, grads [][]float32) { n.p, n.g = params, grads }

func (n *network) Clone() (workload.Model, error) {
	return &network{inputs: n.inputs, classes: n.classes}, nil
}

func (n *network) Eval(x workload.Batch) (loss float64, correct int, err error) {
	return n.Forward(x, nil)
}

func (n *network) Forward(x workload.Batch, wait func(layer int)) (loss float64, correct int, err error) {
	n.x, n.h, n.scores = x, make([][steps + 1]vector, x.N), make([][]float64, x.N)
	if wait != nil {
		wait(0) // from now on the parameters of the cell may be read
	}
	for s := range n.h {
		for t := range steps {
			for u := range units {
				sum := float64(n.p[2][u])
				for i, v := range n.input(s, t) {
					sum += float64(n.p[0][u*n.inputs+i]) * float64(v)
				}
				for k, v := range n.h[s][t] {
					sum += float64(n.p[1][u*units+k]) * v
				}
				n.h[s][t+1][u] = math.Tanh(sum)
			}
		}
	}
	if wait != nil {
		wait(1)
	}
	for s := range n.h {
		l, hit := n.score(s, int(x.Y[s]))
		loss, correct = loss+l, correct+hit
	}
	return loss, correct, nil
}

// input is what sample s reads in step t.
func (n *network) input(s, t int) []float32 {
	return n.x.X[s*n.x.Cols+t*n.inputs:][:n.inputs]
}

// score keeps the gradient of a sample's scores, and returns its cross-entropy.
func (n *network) score(s, label int) (loss float64, hit int) {
	z, sum, best := make([]float64, n.classes), 0.0, 0
	for c := range z {
		for u, v := range n.h[s][steps] {
			z[c] += float64(n.p[3][c*units+u]) * v
		}
		if z[c] > z[best] {
			best = c
		}
		sum += math.Exp(z[c])
	}
	loss = math.Log(sum) - z[label]
	for c := range z {
		z[c] = math.Exp(z[c]) / sum
	}
	z[label]--
	n.scores[s] = z
	if best == label {
		hit = 1
	}
	return loss, hit
}

func (n *network) Backward(ready func(layer int)) error {
	dh, sums := make([]vector, n.x.N), make([]float64, len(n.g[3]))
	for s, z := range n.scores {
		for c, d := range z {
			for u, v := range n.h[s][steps] {
				sums[c*units+u] += d * v
				dh[s][u] += d * float64(n.p[3][c*units+u])
			}
		}
	}
	write(n.g[3], sums)
	if ready != nil {
		ready(1) // the gradient of the head leaves now, and its next parameters may land
	}
	in, back, bias := make([]float64, len(n.g[0])), make([]float64, len(n.g[1])), make([]float64, units)
	for s := range dh {
		for t := steps - 1; t >= 0; t-- {
			var before vector
			for u, h := range n.h[s][t+1] {
				d := dh[s][u] * (1 - h*h)
				bias[u] += d
				for i, v := range n.input(s, t) {
					in[u*n.inputs+i] += d * float64(v)
				}
				for k, v := range n.h[s][t] {
					back[u*units+k] += d * v
					before[k] += d * float64(n.p[1][u*units+k])
				}
			}
			dh[s] = before
		}
	}
	write(n.g[0], in)
	write(n.g[1], back)
	write(n.g[2], bias)
	if ready != nil {
		ready(0)
	}
	return nil
}

func write(to []float32, sums []float64) {
	for i, v := range sums {
		to[i] = float32(v)
	}
}
