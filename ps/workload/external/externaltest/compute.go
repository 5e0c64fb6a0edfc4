package externaltest

import (
	"math"

	"fluentps/ps/workload/shapes"
)

const (
	inputs  = 3
	hidden  = 4
	classes = 3
)

// The tensors, in model order.
const (
	weight1 = iota
	bias1
	mean // of what comes into the hidden neurons; it is subtracted
	weight2
	bias2
	tensors
)

// layerOf is the layer of each tensor.
var layerOf = [tensors]int{0, 0, 0, 1, 1}

const layers = 2

// Shapes is what a good child binds.
func Shapes() *shapes.Architecture {
	return shapes.New("external", []shapes.Layer{
		{Name: "hidden", Params: []shapes.Param{{Name: "hidden.weight", Shape: []int{hidden, inputs}},
			{Name: "hidden.bias", Shape: []int{hidden}}, {Name: "hidden.mean", Shape: []int{hidden}, Stat: true}}},
		{Name: "out", Params: []shapes.Param{{Name: "out.weight", Shape: []int{classes, hidden}}, {Name: "out.bias", Shape: []int{classes}}}},
	})
}

// Values are those that tensors begin with. Those of a good child have seed 0.
func Values(seed int) [][]float32 {
	values := make([][]float32, tensors)
	for i, p := range Shapes().Params() {
		values[i] = make([]float32, p.N())
		if i == weight1 || i == weight2 {
			for j := range values[i] {
				values[i][j] = float32(0.5 * noise(1000+100*seed+i, j))
			}
		}
	}
	return values
}

// noise is a number from -1 to 1, the same for the same arguments.
func noise(i, j int) float64 {
	x := uint64(i+1)*0x9e3779b97f4a7c15 + uint64(j+1)*0xbf58476d1ce4e5b9
	x = (x ^ x>>30) * 0x94d049bb133111eb
	return float64((x^x>>31)>>11)/(1<<52) - 1
}

// sample computes a row from its number.
func sample(row int32, test bool) (x [inputs]float64, class int) {
	number := int(row)
	if test {
		number += 1 << 30
	}
	for i := range x {
		x[i] = noise(number, i)
	}
	switch {
	case x[0] > 0.2:
		return x, 0
	case x[1] > x[2]:
		return x, 1
	}
	return x, 2
}

// Compute is a pass over rows: the loss, summed, the samples that the model has right, and the gradients, as a child writes them. It calls
// need before it reads a layer; need may be nil.
func Compute(params [][]float32, rows []int32, test bool, need func(layer int)) (loss float64, correct int, grads [][]float32) {
	var d [tensors][]float64
	for i, p := range Shapes().Params() {
		d[i] = make([]float64, p.N())
	}
	if need == nil {
		need = func(int) {}
	}
	var sums [hidden]float64 // of what comes into the hidden neurons
	for _, row := range rows {
		x, class := sample(row, test)
		need(0)
		h := hiddenOf(params, x, &sums)
		need(1)
		q := probabilities(params, h)
		loss -= math.Log(q[class])
		best := true
		for k := range q {
			best = best && q[k] <= q[class]
		}
		if best {
			correct++
		}
		q[class]--
		addGradients(&d, params, x, h, q)
	}
	n := float64(len(rows))
	for j := range sums {
		d[mean][j] = n * (0.9*float64(params[mean][j]) + 0.1*sums[j]/n)
	}
	grads = make([][]float32, tensors)
	for i := range d {
		grads[i] = make([]float32, len(d[i]))
		for j, v := range d[i] {
			grads[i][j] = float32(v)
		}
	}
	return loss, correct, grads
}

func hiddenOf(params [][]float32, x [inputs]float64, sums *[hidden]float64) (h [hidden]float64) {
	for j := range h {
		z := float64(params[bias1][j])
		for i := range x {
			z += float64(params[weight1][j*inputs+i]) * x[i]
		}
		sums[j] += z
		h[j] = math.Tanh(z - float64(params[mean][j]))
	}
	return h
}

func probabilities(params [][]float32, h [hidden]float64) (q [classes]float64) {
	sum := 0.0
	for k := range q {
		z := float64(params[bias2][k])
		for j := range h {
			z += float64(params[weight2][k*hidden+j]) * h[j]
		}
		q[k] = math.Exp(z)
		sum += q[k]
	}
	for k := range q {
		q[k] /= sum
	}
	return q
}

// addGradients adds those of a sample. e is the difference of probabilities from those that are right.
func addGradients(d *[tensors][]float64, params [][]float32, x [inputs]float64, h [hidden]float64, e [classes]float64) {
	for k := range e {
		d[bias2][k] += e[k]
		for j := range h {
			d[weight2][k*hidden+j] += e[k] * h[j]
		}
	}
	for j := range h {
		dz := 0.0
		for k := range e {
			dz += e[k] * float64(params[weight2][k*hidden+j])
		}
		dz *= 1 - h[j]*h[j]
		d[bias1][j] += dz
		for i := range x {
			d[weight1][j*inputs+i] += dz * x[i]
		}
	}
}
