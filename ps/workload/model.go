package workload

import (
	"fmt"

	"fluentps/kernels"
	"fluentps/ps/workload/external"
)

// Model computes losses and gradients on the memory that Bind sets. It belongs to one goroutine at a time. Losses are sums over
// samples of the cross-entropy in nats, and correct counts samples whose largest output is the right class. If samples have targets or are
// ratings, losses are squared errors, or Huber's, and correct is 0; such a model is a Regressor. Callers divide by the number of samples.
//
// An error of Forward, Backward or Eval means that the device, or whatever computes, has failed: it ends the run on all ranks, and no
// other method of the model is called. What is in the gradients then is used by nobody. A batch that does not fit the model, or a call in
// the wrong order, is a bug of the caller and panics.
type Model interface {
	// Bind sets the memory of parameters and gradients: one slice for each parameter of the architecture, in model order, of exactly its
	// length. grads may be nil; then Backward must not be called.
	Bind(params, grads [][]float32)
	// Forward calls wait(l), unless wait is nil, before it first reads parameters of layer l, in forward order. x must stay unchanged
	// until Backward has returned.
	Forward(x Batch, wait func(layer int)) (loss float64, correct int, err error)
	// Backward overwrites the gradients with the sum over the samples of the last Forward. The gradient of a statistic becomes the
	// number of samples times its next value. Backward calls ready(l), unless ready is nil, last layer first, when the gradient of layer
	// l is final and its parameters are no longer read; both may then be changed. It does not write the gradient of a layer before
	// ready of the layer above has returned. If it fails, it calls ready for no layer whose gradient may be wrong.
	Backward(ready func(layer int)) error
	// Eval computes only the loss, of a batch of any size. Backward may not use a Forward before Eval.
	Eval(x Batch) (loss float64, correct int, err error)
	// Clone returns an unbound model of the same architecture, with its own scratch on the same device.
	Clone() (Model, error)
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
	// Ahead says where the batch of the next Forward comes from; nil ends it. Backward may call next once the batch of the last Forward is
	// no longer read. If next returns a batch, the batch may not change until the next Forward. That may get another one all the same.
	Ahead(next func() (Batch, bool))
}

// ModelSpec chooses a model.
type ModelSpec struct {
	Name    string   `yaml:"name,required" values:"@models" doc:"the model; external: a program of your own, in PyTorch or another language, which each worker starts; lenet: LeNet-5 for images; resnet20 to resnet110: residual networks for images, with batch norm; linear: a number, for data.task: regress; sparse_logistic, sparse_linear: logistic and linear, at a cost that goes with the entries of sparse rows; matrix_factorization: a product of low rank, for ratings; synthetic learns nothing: it shows what moving parameters costs"`
	Layers  []int    `yaml:"layers,required" min:"1" max:"1e9" items:"1" when:"name=@models with layers" doc:"mlp: widths of the hidden layers; synthetic: parameters of each layer"`
	Compute Cost     `yaml:"compute" min:"0" max:"86400" when:"name=synthetic" doc:"time of one step's computing, a third of it forward, which the worker sleeps"`
	Rank    int      `yaml:"rank" min:"1" max:"4096" when:"name=matrix_factorization" doc:"numbers for each row and each column of the matrix"`
	Command []string `yaml:"command,required" form:"word" items:"1" when:"name=external" doc:"the program that computes, and its arguments, such as [python3, train.py]; each worker starts one"`
	Shapes  string   `yaml:"shapes,required" form:"shapes file" when:"name=external" doc:"FILE.shapes, which fluentps probe --out writes once: names and shapes of the model's tensors; all hosts must see it"`
	Loss    string   `yaml:"loss" values:"auto,mse,huber" when:"name=@models with targets" doc:"auto: the cross-entropy of classes, or mse of targets; mse: the square of the error, without a half; huber: half the square up to huber_delta, and a line beyond it; losses other than auto need data.task: regress"`
	Delta   float64  `yaml:"huber_delta" above:"0" max:"1e30" when:"loss=huber" as:"float32" doc:"the error from which on the loss grows as a line, in the unit of the targets that the model sees"`
	// States name the numbers of an optimizer beside each trained parameter, if they are averaged over workers as its parameters are.
	States []string
	// Child computes, if the model is external. Evaluates: it is for evaluations. A spec of a configuration has neither.
	Child     *external.Child
	Evaluates bool
	Init      string `yaml:"init,omitempty" form:"parameter file" doc:"a file that training begins with, FILE.safetensors or FILE.npz as fluentps export writes it, with exactly the parameters of the model; all hosts must see it; without it they follow from the seed. A run that resumes takes its checkpoint's, and does not read the file"`
}

// ModelDefaults is a model of which only the name is missing.
func ModelDefaults() ModelSpec { return ModelSpec{Rank: 10, Loss: LossAuto, Delta: 1} }

// ModelEntry is a model of the table.
type ModelEntry struct {
	Name string // model.name in the YAML
	Doc  string // what it is, in a few words, for explain
	// Images: samples must be images. Ratings: samples must be entries of a matrix, which no other model takes; it has no accuracy. Sparse:
	// a Batch has Entries instead of X.
	Images, Ratings, Sparse bool
	// Labels is what it predicts, unless samples are ratings. Of classes there are Samples.Classes, of targets it has one output.
	Labels Labels
	// Hidden: model.layers must be given: the widths of the hidden layers, or what else the model takes numbers for.
	Hidden bool
	// Compute: model.compute may be given.
	Compute bool
	// Check says why there is no model of this spec for such samples, and what to change; nil: there is one for all.
	Check func(s ModelSpec, from Samples) error
	// Layers are the architecture, a pure function of its arguments, which Check has passed. Param.Layer need not be set.
	Layers func(s ModelSpec, from Samples) []Layer
	// Scratch is the memory of the model's values beside parameters and gradients, which plan counts; nil: none to speak of.
	Scratch func(s ModelSpec, from Samples) Scratch
	// New makes an unbound model that computes on dev, with scratch for Forward batches of up to batchMax samples. Check has passed.
	New func(s ModelSpec, from Samples, dev Device, batchMax int) (Model, error)

	// elsewhere: it takes only the numbers of rows, and no other model does.
	elsewhere bool
	own       bool // of another module
}

// chained is the entry of a model that is a chain of stages on a device.
func chained(e ModelEntry, stages func(s ModelSpec, from Samples) []stage) ModelEntry {
	e.Layers = func(s ModelSpec, from Samples) []Layer { return layersOf(stages(s, from)) }
	e.Scratch = func(s ModelSpec, from Samples) Scratch { return scratchOf(s, from, stages) }
	e.New = func(s ModelSpec, from Samples, dev Device, batchMax int) (Model, error) {
		return newChain(s, from, stages(s, from), dev, batchMax)
	}
	return e
}

// resnet is the entry of a residual network of 6n+2 layers.
func resnet(n int) ModelEntry {
	return chained(ModelEntry{Name: fmt.Sprintf("resnet%d", 6*n+2), Images: true, Labels: Either, Check: residualImages}, residual(n))
}

var models = []ModelEntry{
	chained(ModelEntry{Name: "softmax", Check: noHidden}, denseChain),
	chained(ModelEntry{Name: "linear", Labels: Targets, Check: noHidden}, denseChain),
	chained(ModelEntry{Name: "mlp", Hidden: true, Labels: Either, Check: hiddenWidths}, denseChain),
	chained(ModelEntry{Name: "lenet", Images: true, Labels: Either, Check: lenetImages}, lenetStages),
	resnet(3), resnet(5), resnet(7), resnet(9), resnet(18),
	chained(ModelEntry{Name: "logistic", Check: binaryOnly}, denseChain),
	{Name: "sparse_logistic", Sparse: true, Check: binaryOnly, Layers: sparseLinearLayers, New: newSparseLinear},
	{Name: "sparse_linear", Sparse: true, Labels: Targets, Check: noHidden, Layers: sparseLinearLayers, New: newSparseLinear},
	{Name: "matrix_factorization", Ratings: true, Check: factorable, Layers: factorizationLayers, New: newFactorization},
	externalEntry,
	{Name: "synthetic", Hidden: true, Compute: true, Check: layerSizes, Layers: syntheticLayers, New: newSynthetic},
}

// modelOf returns the entry of that name, or an empty one if there is none.
func modelOf(name string) ModelEntry {
	for _, m := range models {
		if m.Name == name {
			return m
		}
	}
	return ModelEntry{}
}

// ModelNames lists the values of ModelSpec.Name.
func ModelNames() []string { return namesOf(func(*ModelEntry) bool { return true }) }

// NeedsImages says whether a model takes only samples that are images.
func NeedsImages(name string) bool { return modelOf(name).Images }

// WithLayers lists the models that take ModelSpec.Layers.
func WithLayers() (names []string) { return namesOf(func(e *ModelEntry) bool { return e.Hidden }) }

// TakesSparse says whether a model takes the entries of rows. A change of Batch.X does not affect such a model.
func TakesSparse(name string) bool { return modelOf(name).Sparse }

// NewModel makes an unbound model for samples such as from, with scratch on dev for Forward batches of
// up to batchMax samples. Its architecture is that of NewArchitecture.
func NewModel(s ModelSpec, from Samples, dev Device, batchMax int) (Model, error) {
	e, err := fitting(s, from)
	if err != nil {
		return nil, err
	}
	if batchMax < 1 {
		return nil, fmt.Errorf("model %s: batches of %d samples, need at least 1", s.Name, batchMax)
	}
	m, err := e.New(s, from, dev, batchMax)
	if err != nil {
		return nil, err
	}
	states := s.States
	s.States = nil
	a, err := e.architecture(s, from)
	if err != nil {
		return nil, err
	}
	return besideStates(m, a.Layers, states), nil
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
