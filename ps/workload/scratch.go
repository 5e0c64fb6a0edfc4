package workload

import "fluentps/kernels"

// evalBytes is about the most memory that a model takes for the batches of an evaluation.
const evalBytes = 64 << 20

// EvalRows is the batch size of evaluation. It is large enough for the kernels, and small enough that a server which evaluates still
// answers, and that the layers of a deep network fit into evalBytes.
func EvalRows(s ModelSpec, from Samples) int {
	const least, most = 8, 256
	one, two := counted(s, from, 1), counted(s, from, 2)
	return int(min(max(least, evalBytes/max(1, two-one)), most))
}

// ScratchBytes is the device memory of a model for the values and gradients of its layers, on batches of up to batchMax samples. It
// is 0 for models without layers on a device, and for a spec that NewModel refuses. It takes no memory of a batch itself, because it also answers
// whether a batch is too large for this machine: each sample takes as much as the one before.
func ScratchBytes(s ModelSpec, from Samples, batchMax int) int64 {
	one, two := counted(s, from, 1), counted(s, from, 2)
	return one + int64(batchMax-1)*(two-one)
}

// counted makes a model for a small batch, and counts.
func counted(s ModelSpec, from Samples, batchMax int) int64 {
	var c counter
	if _, err := NewModel(s, from, &c, batchMax); err != nil {
		return 0
	}
	return c.bytes
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
