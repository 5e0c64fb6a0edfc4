// Package shapes is the architecture of a model as pure data: the names and shapes of its parameters, layer by layer, which of them are
// statistics, and what computing costs. Who cuts shards, serves, plans or simulates needs no more of a model. Read and Write keep it in
// a file, NAME.shapes: a rank, or a login node, then knows a model that it cannot compute.
//
//	fluentps shapes 1
//	model mlp
//	scratch 0 7240
//	layer fc1
//	param fc1.weight 256x784 fan 784
//	param fc1.bias 256
//	end 2 200960
package shapes

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"time"
)

// Param is one parameter tensor of a model.
type Param struct {
	Name  string  // unique in the model: "fc1.weight"
	Shape []int   // row-major; a dense weight is outputs x inputs
	Layer int     // index into Architecture.Layers, which New sets
	Row   int     // elements of a row, if only rows that some sample touches have a gradient; divides N. 0: all elements have one
	Stat  bool    // a running statistic: averaged, never trained
	Fan   int     // inputs of one output, which scale the initial values; 0: initially Start
	Start float32 // initial value if Fan is 0: 1 for the scale and the variance of a batch norm
}

// N is the number of elements.
func (p Param) N() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// Layer is a group of parameters that are needed together, and whose gradients become final together.
type Layer struct {
	Name   string
	Params []Param
}

// Cost is the computing time of an iteration by its batch, C(b) = a + c·b.
type Cost struct {
	Fixed     time.Duration // a
	PerSample time.Duration // c
}

// Of returns the time of an iteration of b samples.
func (c Cost) Of(b int) time.Duration { return c.Fixed + time.Duration(b)*c.PerSample }

// Scratch is the memory, in bytes, that a model takes beside its parameters and gradients, by its batch.
type Scratch struct{ Fixed, PerSample int64 }

// Of returns the memory for batches of up to b samples.
func (s Scratch) Of(b int) int64 {
	if s.PerSample > 0 && int64(b) > (math.MaxInt64-s.Fixed)/s.PerSample {
		return math.MaxInt64 // more than any machine has
	}
	return s.Fixed + int64(b)*s.PerSample
}

// Architecture is what a model consists of. It says nothing about how, or on what device, the model computes. New makes it; then its
// layers do not change.
type Architecture struct {
	Model   string  // the model's name
	Layers  []Layer // in forward order
	Scratch Scratch // zero: the model says nothing
	Compute Cost    // what a step is made to take; zero: as long as it takes

	params []Param // of all layers
}

// New makes the architecture of a model from its layers, in forward order. It numbers the layers of their parameters.
func New(model string, layers []Layer) *Architecture {
	a := &Architecture{Model: model}
	for _, l := range layers {
		a.add(l)
	}
	return a
}

// add adds a layer, with parameters of its own memory.
func (a *Architecture) add(l Layer) {
	l.Params = slices.Clone(l.Params)
	for i := range l.Params {
		l.Params[i].Layer = len(a.Layers)
	}
	a.Layers, a.params = append(a.Layers, l), append(a.params, l.Params...)
}

// Params lists all parameters, layer by layer. This order is the model order.
func (a *Architecture) Params() []Param { return a.params }

// Elements is the number of elements of all parameters.
func (a *Architecture) Elements() (n int) {
	for _, p := range a.params {
		n += p.N()
	}
	return n
}

// evalBytes is about the most memory that a model takes for the batches of an evaluation.
const evalBytes = 64 << 20

// EvalRows is the batch size of evaluation. It is large enough for the kernels, and small enough that a server which evaluates still
// answers, and that the layers of a deep network fit into evalBytes.
func (a *Architecture) EvalRows() int {
	const least, most = 8, 256
	return int(min(max(least, evalBytes/max(1, a.Scratch.PerSample)), most))
}

// Hash is the sha256 of the file of the architecture, in hex: ranks with equal hashes have the same one.
func (a *Architecture) Hash() (string, error) {
	text, err := a.text()
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}
