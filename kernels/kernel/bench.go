package kernel

// Bench is what the verb bench kernels times of a kernel.
type Bench struct {
	// Layers, at least one, each do some work and leave no vector without elements.
	Layers []Layer
	// Scalars are such that a kernel launched many times over its own output stays finite.
	Scalars Scalars
	// Positive are the vectors whose values must lie in [0, 1), not in [-1, 1): variances; class numbers and places in a
	// block, which are all 0 then.
	Positive [8]bool
}

// Layer is the sizes of a kernel in a layer of a network, for batches of 128: the MLP 784-256-128-10, LeNet on images of
// 28 x 28, ResNet-20 on 32 x 32 x 3.
type Layer struct {
	Name string
	N    []int // in the order that the kernel documents
}

// Sizes are those of a launch.
func (l Layer) Sizes() (n Sizes) {
	copy(n[:], l.N)
	return n
}

// Layers that kernels of several folders have.
var (
	Models       = []Layer{{"lenet", []int{61_706}}, {"mlp", []int{235_146}}, {"resnet20", []int{269_722}}} // all parameters
	DenseOutputs = []Layer{{"mlp fc1", []int{128, 256}}, {"mlp fc2", []int{128, 128}}, {"lenet fc1", []int{128, 120}}}
)

// BenchRate is the scalar of kernels that add to their output, or scale it.
const BenchRate = 0.01
