package kernels

// Device is memory and compute of one rank. It belongs to one goroutine at a time.
type Device interface {
	// Name says what computes, for reports: "cpu (oneDNN 2.6.3 avx2, own avx2, 1 thread)".
	Name() string
	// Alloc returns n zeroed float32 of device memory.
	Alloc(n int) (Vec, error)
	// Wrap makes memory that someone else owns, such as a transport's buffer, usable by kernels.
	// Refresh and Fetch say when either side sees what the other wrote.
	Wrap(p []float32) (Vec, error)
	// Upload copies src to the start of dst. It is an error when dst is shorter.
	Upload(dst Vec, src []float32) error
	// Download waits for src and copies its first len(dst) elements. It is an error when src is shorter.
	Download(dst []float32, src Vec) error
	// Refresh makes what the host wrote into wrapped memory visible to kernels launched after it. The
	// host leaves the memory alone until the device has been waited for, by Download, Sync or the Event of a later Fetch.
	Refresh(v Vec) error
	// Fetch starts to bring what kernels wrote into wrapped memory to the host. The host reads, and may
	// write it, once the Event has passed.
	Fetch(v Vec) (Event, error)
	// Launch starts a kernel; kernels of one device run in the order of their launches. It is an
	// error when an argument is too short for the sizes; nothing has run then.
	Launch(k *Kernel, a Args) error
	// Sync returns when every launched kernel is done, and all that Fetch has started.
	Sync() error
	// Close frees what Alloc handed out. The device is not used afterwards.
	Close() error
}

// Describer is a device that can tell its kernels from others'. All of ours can; one that wraps another hands them on.
type Describer interface {
	// KernelSet names what decides the bits of results, beside inputs and sizes: devices with equal sets compute equal bits.
	KernelSet() string
	// Weak says what keeps the kernels below what the hardware can do, and what to do about it; "" if nothing does.
	Weak() string
}

// Event is a point in the order of a device's work.
type Event interface {
	// Passed says whether the device has come to the point, without waiting.
	Passed() bool
	// Wait returns when it has, or with the error that keeps it from getting there.
	Wait() error
}
