package workload

import (
	"fmt"
	"slices"

	"fluentps/kernels"
)

// dense is a fully connected stage, followed by a ReLU unless it is the last stage.
type dense struct {
	layerName    string
	inputs, outs int
	fan          int
	last         bool

	out  kernels.Vec // batch x outs
	grad kernels.Vec // of out; in the last stage the same memory as out, because the loss kernel turns logits into their gradient
}

// denseChain is the stages of softmax, linear, mlp and logistic.
func denseChain(s ModelSpec, from Samples) []stage {
	stages := denseStages(slices.Concat([]int{from.Cols}, s.Layers, []int{outputs(s, from)}))
	if only, ok := stages[0].(*dense); ok && len(stages) == 1 {
		only.fan = 0 // the loss is convex, so zero is as good a start as any, and leaves no noise on inputs that are always 0
	}
	return stages
}

// denseStages are fully connected layers fc1, fc2, ... of these widths, inputs first.
func denseStages(widths []int) []stage {
	var stages []stage
	for l := range len(widths) - 1 {
		stages = append(stages,
			&dense{layerName: fmt.Sprintf("fc%d", l+1), inputs: widths[l], outs: widths[l+1], fan: widths[l], last: l == len(widths)-2})
	}
	return stages
}

func (d *dense) name() string { return d.layerName }

func (d *dense) params() []Param {
	return affine(d.layerName, []int{d.outs, d.inputs}, []int{d.outs}, d.fan)
}

func (d *dense) allocate(perSample, _ func(int) kernels.Vec) {
	d.out = perSample(d.outs)
	d.grad = d.out
	if !d.last {
		d.grad = perSample(d.outs)
	}
}

func (d *dense) ends() (out, grad kernels.Vec) { return d.out, d.grad }

func (d *dense) forward(dev *stream, p pass) {
	product := kernels.Args{V: kernels.Vecs{p.in, p.params[0], d.out, p.params[1]}, N: kernels.Sizes{p.n, d.outs, d.inputs}}
	if d.last {
		dev.launch(kernels.GemmNT, product)
		return
	}
	product.V[3] = kernels.Vec{} // BiasReLU adds the bias in its own pass
	dev.launch(kernels.GemmNT, product)
	dev.launch(kernels.BiasReLU, kernels.Args{V: kernels.Vecs{d.out, p.params[1]}, N: kernels.Sizes{p.n, d.outs}})
}

func (d *dense) backward(dev *stream, p pass) {
	if !d.last {
		dev.launch(kernels.ReLUGrad, kernels.Args{V: kernels.Vecs{d.grad, d.out}, N: kernels.Sizes{p.n, d.outs}})
	}
	dev.launch(kernels.GemmTN, kernels.Args{V: kernels.Vecs{d.grad, p.in, p.grads[0]}, N: kernels.Sizes{d.outs, d.inputs, p.n}})
	dev.launch(kernels.BiasGrad, kernels.Args{V: kernels.Vecs{d.grad, p.grads[1]}, N: kernels.Sizes{p.n, d.outs}})
	if p.below.Len() > 0 {
		dev.launch(kernels.GemmNN, kernels.Args{V: kernels.Vecs{d.grad, p.params[0], p.below}, N: kernels.Sizes{p.n, d.inputs, d.outs}})
	}
}
