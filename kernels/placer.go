package kernels

// Range is elements Lo to Hi-1 of a vector.
type Range struct{ Lo, Hi int }

// Placer is a Device with memory that others can reach, such as a CUDA-aware MPI.
type Placer interface {
	// Place gives an arena memory on the device, zeroed, and returns it: what Wrap is given of p later lies there as it
	// does in p. The elements of reached, which ascends, are brought to and from there by others: Refresh and Fetch leave
	// them alone, on both sides. The Event of a Fetch passes once the kernels before it are over, whatever was copied.
	Place(p []float32, reached []Range) (Vec, error)
	// Attach makes the device that of the calling thread, which stays the goroutine's until Detach: libraries that are
	// given the device's memory may look for it there. Any goroutine may call them until Close.
	Attach() error
	Detach()
}
