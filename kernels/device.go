package kernels

// Device is the memory and the compute unit of one rank. One goroutine at a time may use it.
type Device interface {
	// Name describes the device for reports: "cpu (oneDNN 2.6.3 avx2, own avx2, 1 thread)".
	Name() string
	// Alloc returns n zeroed float32 of device memory.
	Alloc(n int) (Vec, error)
	// Wrap makes memory that the caller owns, such as a transport's buffer, usable by kernels.
	// Refresh makes the host's writes visible to kernels, Fetch makes kernels' writes visible to the host.
	Wrap(p []float32) (Vec, error)
	// Upload copies src to the start of dst. It is an error when dst is shorter.
	Upload(dst Vec, src []float32) error
	// Download waits for src and copies its first len(dst) elements. It is an error when src is shorter.
	Download(dst []float32, src Vec) error
	// Refresh makes the host's writes to wrapped memory visible to kernels that are launched later. The host
	// must not write the memory again until Download, Sync or the Event of a later Fetch has waited for the device.
	Refresh(v Vec) error
	// Fetch starts to copy to the host what kernels wrote into wrapped memory. The host may read and write
	// the memory once the Event has passed.
	Fetch(v Vec) (Event, error)
	// Launch starts a kernel. The kernels of one device run in the order of their launches. Launch fails, and
	// runs nothing, when an argument is too short for the sizes.
	Launch(k *Kernel, a Args) error
	// Sync returns when every launched kernel and every started Fetch is done.
	Sync() error
	// Close frees the memory that Alloc returned. The caller must not use the device afterwards.
	Close() error
}

// Describer is a device that describes its kernels. All devices of this repository are Describers; a device that wraps
// another one forwards the calls.
type Describer interface {
	// KernelSet names everything, beside inputs and sizes, that decides the bits of results: devices with equal sets
	// compute equal bits.
	KernelSet() string
	// Weak says why the kernels use less than the hardware offers, and how to change that; "" if they use all of it.
	Weak() string
}

// Threaded is a device whose kernels run on several threads of the host.
type Threaded interface {
	// SetThreads sets how many threads the next launches use, at least 1. The bits of results do not depend on it.
	SetThreads(n int)
}

// Event is a point in the order of a device's work.
type Event interface {
	// Passed reports, without waiting, whether the device has reached the point.
	Passed() bool
	// Wait returns when the device has reached the point. It returns the error if the device failed before.
	Wait() error
}
