package gpucheck

import (
	"fmt"
	"strings"
	"time"

	"fluentps/kernels/kernel"
)

// Sizes are the sizes at which the checks work.
type Sizes struct {
	Emulated bool // the driver is the emulated one: its times mean nothing

	Cases int // of the conformance suite: one case of so many is run

	Batch      int // samples of a launch at training sizes, and of a step
	LayersMax  int // of a kernel at training sizes
	Side       int // of images
	LongMin    int // elements of vectors that must be long
	LongPiece  int // elements that have the same value in a long vector
	LongImages int // of 16 x 32 x 32: the elements of a convolution on so many images are long, too

	Net   string // whose 100 steps are compared
	Steps int
	Last  int // steps whose losses are averaged

	StepModels []string      // whose steps are timed
	StepTime   time.Duration // of one figure

	PeerModels  []string      // whose steps are compared with PyTorch's, the most valuable ones first
	TraceModel  string        // of these, the one whose kernels are listed
	CaseTime    time.Duration // after which a case of PyTorch is ended: a model in one class of precision
	CompileTime time.Duration // the same with torch.compile
	ConvsMax    int           // of the convolutions that cuDNN computes, too
	Workspace   int           // bytes that its algorithms may take

	Timed    int            // launches between two events
	BusySide int            // of the product that keeps the GPU busy while these are queued
	Products []kernel.Sizes // that our kernels and cuBLAS compute

	Pinned      int // bytes
	SharedSteps int // of each process that shares the GPU
}

// Card and Emulated are all sizes of gpu-check: those for a card, and those for the emulated driver, on which a test runs all of it.
var (
	Card = Sizes{
		Cases: 1,
		Batch: 128, LayersMax: 99, Side: 32,
		LongMin: 1<<29 + 4099, LongPiece: 1 << 20, LongImages: 1<<15 + 1, // 2^29 elements are 2^31 bytes
		Net: "resnet20", Steps: 100, Last: 20,
		StepModels: []string{"mlp", "lenet", "resnet20", "resnet56"}, StepTime: 500 * time.Millisecond,
		PeerModels: []string{"resnet20", "lenet", "mlp", "resnet56"}, TraceModel: "resnet20",
		CaseTime: 20 * time.Second, CompileTime: 150 * time.Second, ConvsMax: 99, Workspace: 256 << 20,
		Timed: 100, BusySide: 4096,
		Products: []kernel.Sizes{{128, 256, 784}, {128, 128, 10}, {2048, 2048, 2048}, {4096, 4096, 4096}},
		Pinned:   256 << 20, SharedSteps: 50,
	}
	Emulated = Sizes{
		Emulated: true,
		Cases:    24,
		Batch:    1, LayersMax: 99, Side: 8,
		LongMin: 1<<14 + 4099, LongPiece: 1 << 10, LongImages: 2,
		Net: "lenet", Steps: 3, Last: 2,
		StepModels: []string{"mlp"}, StepTime: 0,
		PeerModels: []string{"mlp"}, TraceModel: "mlp", CaseTime: 2 * time.Second, CompileTime: 2 * time.Second, ConvsMax: 2, Workspace: 1 << 20,
		Timed: 2, BusySide: 32,
		Products: []kernel.Sizes{{16, 16, 20}},
		Pinned:   1 << 20, SharedSteps: 2,
	}
)

// Layer reduces the sizes of a layer, which are those at batch 128, to these sizes.
func (s Sizes) Layer(n []int) (reduced []int) {
	for _, size := range n {
		switch {
		case size%128 == 0: // samples, or planes of all samples; no network has so many channels
			size = size / 128 * s.Batch
		case s.Emulated && size >= 1<<15: // all parameters of a model
			size /= 64
		}
		reduced = append(reduced, size)
	}
	return reduced
}

// By writes sizes as in 128x16x32x32.
func By(n []int) string { return strings.ReplaceAll(strings.Trim(fmt.Sprint(n), "[]"), " ", "x") }
