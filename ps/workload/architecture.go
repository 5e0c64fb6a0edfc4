package workload

import (
	"fmt"
	"strings"

	"fluentps/kernels"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/shapes"
)

// What a model consists of is a package of its own, which who cuts, serves, plans and simulates needs alone.
type (
	Architecture = shapes.Architecture
	Layer        = shapes.Layer
	Param        = shapes.Param
	Cost         = shapes.Cost
	Scratch      = shapes.Scratch
)

// NewArchitecture tells what a model for samples such as from consists of. It allocates nothing of the model's size.
func NewArchitecture(s ModelSpec, from Samples) (*Architecture, error) {
	e, err := fitting(s, from)
	if err != nil {
		return nil, err
	}
	return e.architecture(s, from)
}

func (e *ModelEntry) architecture(s ModelSpec, from Samples) (*Architecture, error) {
	if e.elsewhere {
		a, err := readShapes(s.Shapes)
		if err != nil {
			return nil, err
		}
		return shapes.New(s.Name, withStates(a.Layers, s.States)), nil
	}
	a := shapes.New(s.Name, withStates(e.Layers(s, from), s.States))
	if e.Scratch != nil {
		a.Scratch = e.Scratch(s, from)
	}
	if e.Compute {
		a.Compute = s.Compute
	}
	if e.own { // ours are limited by what a run can hold, whose errors name a key
		return a, a.Check()
	}
	return a, nil
}

// paramsIn lists the parameters of layers in model order.
func paramsIn(layers []Layer) []Param { return shapes.New("", layers).Params() }

// fitting returns the entry of a model that takes samples such as from.
func fitting(s ModelSpec, from Samples) (e ModelEntry, err error) {
	e = modelOf(s.Name)
	switch {
	case e.Name == "":
		return e, fmt.Errorf("model %q is not known; choose one of: %s", s.Name, strings.Join(ModelNames(), ", "))
	case e.elsewhere != from.Elsewhere:
		return e, fmt.Errorf("model %s: the model external and the data set external go together: one has the samples of the other", s.Name)
	case e.elsewhere:
		return e, nil
	case from.Cols < 1:
		return e, fmt.Errorf("model %s: %d inputs, need at least 1; does the data set have columns?", s.Name, from.Cols)
	case from.Classes < 2 && from.Matrix == (Matrix{}) && !from.Regress:
		return e, fmt.Errorf("model %s: %d classes, need at least 2; does the data set have labels?", s.Name, from.Classes)
	case e.Images && from.Image.Values() != from.Cols:
		return e, fmt.Errorf("model %s: the data set's rows are %d numbers, not images; choose one of the sets %s, give "+
			"image to generated, or choose model mlp",
			s.Name, from.Cols, strings.Join(dataset.ImageSetNames(), ", "))
	}
	if err := mustTakeRatings(e, from); err != nil {
		return e, err
	}
	if err := checkLabels(e, s, from); err != nil || e.Check == nil {
		return e, err
	}
	return e, e.Check(s, from)
}

// layersOf are the layers of a chain of stages.
func layersOf(stages []stage) []Layer {
	layers := make([]Layer, len(stages))
	for l, st := range stages {
		layers[l] = Layer{Name: st.name(), Params: st.params()}
	}
	return layers
}

// scratchOf counts the memory of a chain's stages for their values and gradients: each sample takes as much as the one before.
func scratchOf(s ModelSpec, from Samples, stages func(ModelSpec, Samples) []stage) Scratch {
	counted := func(batchMax int) int64 {
		var c counter
		if _, err := newChain(s, from, stages(s, from), &c, batchMax); err != nil {
			return 0
		}
		return c.bytes
	}
	one, two := counted(1), counted(2)
	return Scratch{Fixed: one - (two - one), PerSample: two - one}
}

// counter is a device that allocates nothing, and counts the bytes that it was asked for.
type counter struct {
	kernels.Device
	bytes int64
}

func (c *counter) Alloc(n int) (kernels.Vec, error) {
	c.bytes += 4 * int64(n)
	return kernels.Vec{Dev: 1, N: n}, nil
}

// Wrap counts a batch. A device with memory of its own has two of them.
func (c *counter) Wrap(p []float32) (kernels.Vec, error) {
	c.bytes += 4 * int64(len(p))
	return kernels.Vec{Host: p}, nil
}

// ParamNames are the names of a model's parameters, in model order. There are none for a spec that NewModel refuses for all samples. They
// do not depend on the samples: of a model from elsewhere they are those for the first kind of samples that it takes.
func ParamNames(s ModelSpec) (names []string) {
	for _, p := range paramsOf(s) {
		names = append(names, p.Name)
	}
	return names
}

// paramsOf are the parameters of a model for samples of some size.
func paramsOf(s ModelSpec) []Param {
	const side = 32
	image := Image{Channels: 1, Height: side, Width: side}
	for _, from := range []Samples{
		{Cols: image.Values(), Classes: 2, Image: image}, {Cols: dataset.RatingCols, Matrix: Matrix{Rows: 1, Columns: 1}},
		{Cols: image.Values(), Classes: 10, Image: image}, {Cols: image.Values(), Regress: true, Image: image}, {Elsewhere: true},
	} {
		if a, err := NewArchitecture(s, from); err == nil {
			return a.Params()
		}
	}
	return nil
}

// Statistics are the names of a model's parameters that are averaged, not trained.
func Statistics(s ModelSpec) (names []string) {
	s.States = nil
	for _, p := range paramsOf(s) {
		if p.Stat {
			names = append(names, p.Name)
		}
	}
	return names
}
