package kernel

// Bench says what the verb bench kernels times of a kernel.
type Bench struct {
	// Layers has at least one layer. Each layer does some work and gives every vector at least one element.
	Layers []Layer
	// Scalars keep the values finite when a kernel is launched many times on its own output.
	Scalars Scalars
	// Positive marks the vectors whose values must lie in [0, 1), not in [-1, 1): variances, class numbers, and indices
	// within a block. Class numbers and indices are all 0 then.
	Positive Marks
}

// Layer holds the sizes of a kernel in one layer of a network, at batch 128: the MLP 784-256-128-10, LeNet on images of
// 28 x 28, ResNet-20 on 32 x 32 x 3.
type Layer struct {
	Name string
	N    []int // in the order that the kernel documents
}

// Sizes returns the sizes of a launch of this layer.
func (l Layer) Sizes() (n Sizes) {
	copy(n[:], l.N)
	return n
}

// Layers that the kernels of several folders share.
var (
	Models       = []Layer{{"lenet", []int{61_706}}, {"mlp", []int{235_146}}, {"resnet20", []int{269_722}}} // all parameters
	DenseOutputs = []Layer{{"mlp fc1", []int{128, 256}}, {"mlp fc2", []int{128, 128}}, {"lenet fc1", []int{128, 120}}}
)

// BenchRate is the scalar of kernels that add to their output or scale it.
const BenchRate = 0.01
