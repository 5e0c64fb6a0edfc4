package kernels

// Range is elements Lo to Hi-1 of a vector.
type Range struct{ Lo, Hi int }

// Placer is a Device whose memory a library such as a CUDA-aware MPI can read and write directly.
type Placer interface {
	// Place allocates zeroed memory on the device for the arena p and returns it. A part of p that is wrapped later
	// has the same place there as in p. The library itself moves the elements of reached, which is in ascending order:
	// Refresh and Fetch copy none of them. The Event of a Fetch passes once the kernels before the Fetch are done,
	// whatever the Fetch copied.
	Place(p []float32, reached []Range) (Vec, error)
	// Attach makes this device the current one of the calling thread, and keeps the goroutine on that thread until
	// Detach: a library that receives the device's memory may look for the device there. Any goroutine may call Attach
	// until Close, and Detach even later.
	Attach() error
	Detach()
}
