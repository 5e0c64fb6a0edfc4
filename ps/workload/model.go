package workload

import (
	"fmt"
	"strings"

	"fluentps/kernels"
)

// Param is one parameter tensor of a model.
type Param struct {
	Name  string  // unique in the model: "fc1.weight"
	Shape []int   // row-major; a dense weight is outputs x inputs
	Layer int     // index into Layers
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

// Params lists all parameters of m, layer by layer. This order is the model order.
func Params(m Model) []Param {
	var all []Param
	for _, l := range m.Layers() {
		all = append(all, l.Params...)
	}
	return all
}

// Model computes losses and gradients on the memory that Bind sets. It belongs to one goroutine at a time. Losses are sums over
// samples of the cross-entropy in nats, and correct counts samples whose largest output is the right class. If samples are ratings,
// losses are squared errors and correct is 0. Callers divide by the number of samples. A device that fails, or a batch that does not
// fit the model, panics: neither can be handled in the middle of a step.
type Model interface {
	// Layers are in forward order and do not change.
	Layers() []Layer
	// Bind sets the memory of parameters and gradients: one slice for each parameter in model order, of exactly its length. grads
	// may be nil; then Backward must not be called.
	Bind(params, grads [][]float32)
	// Forward calls wait(l) before it first reads parameters of layer l, in forward order. x must stay unchanged until Backward
	// has returned.
	Forward(x Batch, wait func(layer int)) (loss float64, correct int)
	// Backward overwrites the gradients with the sum over the samples of the last Forward. The gradient of a statistic becomes the
	// number of samples times its next value. Backward calls ready(l), last layer first, when the gradient of layer l is final
	// and its parameters are no longer read; both may then be changed. It does not write the gradient of a layer before ready of
	// the layer above has returned.
	Backward(ready func(layer int))
	// Eval computes only the loss, of a batch of any size. Backward may not use a Forward before Eval.
	Eval(x Batch) (loss float64, correct int)
	// Clone returns an unbound model of the same architecture, with its own scratch on the same device.
	Clone() Model
}

// Resident is a Model whose parameters and gradients can stay on its device between steps.
type Resident interface {
	Model
	// Apart says whether the device has memory of its own. Where it has none, BindVecs saves nothing.
	Apart() bool
	// BindVecs is Bind with vectors of the model's device, in model order. Forward does not refresh them, and Backward does not fetch
	// them: wait(l) and ready(l) mean that kernels which are launched from then on may write or read them, not the host.
	BindVecs(params, grads []kernels.Vec)
}

// Holder is a Model that copies its parameters to a device.
type Holder interface {
	Model
	// Hold says whether the parameters stay as the last Forward has read them, so that the next ones need not copy them. Bind ends it.
	Hold(held bool)
}

// Forehanded is a Model that takes the next batch to its device while the device still computes.
type Forehanded interface {
	Model
	// Ahead says where the batch of the next Forward comes from; nil ends it. Backward may call next once the batch of the last Forward is no
	// longer read. If next returns a batch, the batch may not change until the next Forward. That may get another one all the same.
	Ahead(next func() (Batch, bool))
}

// ModelSpec chooses a model.
type ModelSpec struct {
	Name    string `yaml:"name,required" values:"@models" doc:"the model; lenet: LeNet-5 for images; resnet20 to resnet110: residual networks for images, with batch norm; sparse_logistic: logistic, at a cost that goes with the entries of sparse rows; matrix_factorization: a product of low rank, for ratings; synthetic learns nothing: it shows what moving parameters costs"`
	Layers  []int  `yaml:"layers,required" min:"1" max:"1e9" items:"1" when:"name=mlp,synthetic" doc:"mlp: widths of the hidden layers; synthetic: parameters of each layer"`
	Compute Cost   `yaml:"compute" min:"0" max:"86400" when:"name=synthetic" doc:"time of one step's computing, a third of it forward, which the worker sleeps"`
	Rank    int    `yaml:"rank" min:"1" max:"4096" when:"name=matrix_factorization" doc:"numbers for each row and each column of the matrix"`
	// States name the numbers of an optimizer beside each trained parameter, if they are averaged over workers as its parameters are.
	States []string
	Init   string `yaml:"init,omitempty" form:"parameter file" doc:"a file that training begins with, FILE.safetensors or FILE.npz as fluentps export writes it, with exactly the parameters of the model; all hosts must see it; without it they follow from the seed. A run that resumes takes its checkpoint's, and does not read the file"`
}

// ModelDefaults is a model of which only the name is missing.
func ModelDefaults() ModelSpec { return ModelSpec{Rank: 10} }

// modelEntry is one model: layers on a device, or made by plain.
type modelEntry struct {
	name    string
	images  bool // samples must be images
	ratings bool // samples must be ratings, which no other model takes
	form    form
	check   func(s ModelSpec, from Samples) error
	stages  func(s ModelSpec, from Samples) []stage
	plain   func(s ModelSpec, from Samples, batchMax int) Model
}

var models = []modelEntry{
	{name: "softmax", check: noHidden, stages: denseChain},
	{name: "mlp", check: hiddenWidths, stages: denseChain},
	{name: "lenet", images: true, check: lenetImages, stages: lenetStages},
	{name: "resnet20", images: true, check: residualImages, stages: residual(3)},
	{name: "resnet32", images: true, check: residualImages, stages: residual(5)},
	{name: "resnet44", images: true, check: residualImages, stages: residual(7)},
	{name: "resnet56", images: true, check: residualImages, stages: residual(9)},
	{name: "resnet110", images: true, check: residualImages, stages: residual(18)},
	{name: "logistic", check: binaryOnly, stages: denseChain},
	{name: "sparse_logistic", form: sparseRows, check: binaryOnly, plain: newSparseLogistic},
	{name: "matrix_factorization", ratings: true, check: factorable, plain: newFactorization},
	{name: "synthetic", check: layerSizes, plain: newSynthetic},
}

// modelOf returns the entry of that name, or an empty one if there is none.
func modelOf(name string) modelEntry {
	for _, m := range models {
		if m.name == name {
			return m
		}
	}
	return modelEntry{}
}

// ModelNames lists the values of ModelSpec.Name.
func ModelNames() []string {
	names := make([]string, len(models))
	for i, m := range models {
		names[i] = m.name
	}
	return names
}

// NeedsImages says whether a model takes only samples that are images.
func NeedsImages(name string) bool { return modelOf(name).images }

// TakesSparse says whether a model takes the entries of rows. A change of Batch.X does not affect such a model.
func TakesSparse(name string) bool { return modelOf(name).form == sparseRows }

// Statistics are the names of a model's parameters that are averaged, not trained.
func Statistics(name string) (names []string) {
	m := modelOf(name)
	if !m.images {
		return nil
	}
	for _, st := range m.stages(ModelSpec{Name: name}, Samples{Cols: 32 * 32, Classes: 2, Image: Image{1, 32, 32}}) {
		for _, p := range st.params() {
			if p.Stat {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

// ParamNames are the names of a model's parameters, in model order. They do not depend on the samples. There are none for a spec
// that NewModel refuses for all samples.
func ParamNames(s ModelSpec) (names []string) {
	m, from := modelOf(s.Name), Samples{Cols: 32 * 32, Classes: 2, Image: Image{1, 32, 32}}
	if m.ratings {
		from = Samples{Cols: ratingCols, Matrix: Matrix{1, 1}}
	}
	if m.name == "" || m.check(s, from) != nil {
		return nil
	}
	var all []Param
	if m.plain != nil {
		all = Params(m.plain(s, from, 1))
	} else {
		for _, st := range m.stages(s, from) {
			all = append(all, st.params()...)
		}
	}
	for _, p := range all {
		names = append(names, p.Name)
		for _, state := range s.States {
			if !p.Stat {
				names = append(names, StateName(p.Name, state))
			}
		}
	}
	return names
}

// NewModel makes an unbound model for samples such as from, with scratch on dev for Forward batches of
// up to batchMax samples.
func NewModel(s ModelSpec, from Samples, dev kernels.Device, batchMax int) (Model, error) {
	m := modelOf(s.Name)
	switch {
	case from.Cols < 1:
		return nil, fmt.Errorf("model %s: %d inputs, need at least 1; does the data set have columns?", s.Name, from.Cols)
	case from.Classes < 2 && from.Matrix == (Matrix{}):
		return nil, fmt.Errorf("model %s: %d classes, need at least 2; does the data set have labels?", s.Name, from.Classes)
	case batchMax < 1:
		return nil, fmt.Errorf("model %s: batches of %d samples, need at least 1", s.Name, batchMax)
	}
	switch {
	case m.name == "":
		return nil, fmt.Errorf("model %q is not known; choose one of: %s", s.Name, strings.Join(ModelNames(), ", "))
	case m.images && from.Image.values() != from.Cols:
		return nil, fmt.Errorf("model %s: the data set's rows are %d numbers, not images; choose one of the sets %s, give image to generated, or choose model mlp",
			s.Name, from.Cols, strings.Join(ImageSetNames(), ", "))
	}
	if err := mustTakeRatings(m, from); err != nil {
		return nil, err
	}
	if err := m.check(s, from); err != nil {
		return nil, err
	}
	if m.plain != nil {
		return withStates(m.plain(s, from, batchMax), s.States), nil
	}
	c, err := newChain(s, from, m.stages(s, from), dev, batchMax)
	if err != nil {
		return nil, err
	}
	return withStates(c, s.States), nil
}

func noHidden(s ModelSpec, _ Samples) error {
	if len(s.Layers) > 0 {
		return fmt.Errorf("model %s: has no hidden layers, but layers is %v; leave it out or choose mlp", s.Name, s.Layers)
	}
	return nil
}

func hiddenWidths(s ModelSpec, _ Samples) error {
	if len(s.Layers) == 0 {
		return fmt.Errorf("model mlp: layers is empty; give the widths of the hidden layers, such as [256, 128], or choose softmax")
	}
	for i, w := range s.Layers {
		if w < 1 {
			return fmt.Errorf("model mlp: hidden layer %d has width %d, need at least 1", i+1, w)
		}
	}
	return nil
}

func layerSizes(s ModelSpec, _ Samples) error {
	if len(s.Layers) == 0 {
		return fmt.Errorf("model synthetic: layers is empty; give the number of parameters of each layer, such as [65536, 65536]")
	}
	for i, n := range s.Layers {
		if n < 1 {
			return fmt.Errorf("model synthetic: layer %d has %d parameters, need at least 1", i+1, n)
		}
	}
	if s.Compute.Fixed < 0 || s.Compute.PerSample < 0 {
		return fmt.Errorf("model synthetic: compute is %v and %v for each sample, need 0 or more", s.Compute.Fixed, s.Compute.PerSample)
	}
	return nil
}

func binaryOnly(s ModelSpec, from Samples) error {
	if from.Classes != 2 {
		return fmt.Errorf("model %s: the data set has %d classes, %s takes 2; choose softmax", s.Name, from.Classes, s.Name)
	}
	return noHidden(s, from)
}
