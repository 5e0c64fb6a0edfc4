package workload

import "fluentps/kernels"

// evalBytes is about the most memory that a model takes for the batches of an evaluation.
const evalBytes = 64 << 20

// EvalRows is the batch of evaluation: large enough for the kernels, small enough that a server which evaluates still
// answers, and that the layers of a deep network on as many images find room.
func EvalRows(s ModelSpec, from Samples) int {
	const least, most = 8, 256
	one, two := ScratchBytes(s, from, 1), ScratchBytes(s, from, 2)
	return int(min(max(least, evalBytes/max(1, two-one)), most))
}

// ScratchBytes is what a model takes of its device for the values and gradients of its layers, on batches of up to
// batchMax samples; 0 for models without layers on a device, and for what NewModel refuses.
func ScratchBytes(s ModelSpec, from Samples, batchMax int) int64 {
	var c counter
	if _, err := NewModel(s, from, &c, batchMax); err != nil {
		return 0
	}
	return c.bytes
}

// counter is a device that hands out no memory, and says how much it would have been.
type counter struct {
	kernels.Device
	bytes int64
}

func (c *counter) Alloc(n int) (kernels.Vec, error) {
	c.bytes += 4 * int64(n)
	return kernels.Vec{Dev: 1, N: n}, nil
}
