package kernels

import "fmt"

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

// Vec is device memory: a vector of float32. The zero Vec stands for an argument left out.
type Vec struct {
	Host []float32 // the elements, where the host can reach them
	Dev  uint64    // address of the elements on a device that has memory of its own; 0: kernels use Host
	N    int       // elements at Dev
}

// Len is the number of elements.
func (v Vec) Len() int {
	if v.Dev != 0 {
		return v.N
	}
	return len(v.Host)
}

// Slice is elements lo to hi-1 of v, in the same memory.
func (v Vec) Slice(lo, hi int) Vec {
	var part Vec
	if v.Host != nil {
		part.Host = v.Host[lo:hi]
	}
	if v.Dev != 0 {
		if lo < 0 || lo > hi || hi > v.N {
			panic(fmt.Sprintf("kernels: slice %d:%d of a vector of %d elements", lo, hi, v.N))
		}
		part.Dev, part.N = v.Dev+4*uint64(lo), hi-lo
	}
	return part
}

// Vecs, Sizes and Scalars are the arguments of a launch, in the order that the kernel documents.
// They are arrays so that a launch allocates nothing.
type (
	Vecs    [8]Vec
	Sizes   [8]int
	Scalars [4]float32
)

// Args is what a kernel is launched with.
type Args struct {
	V Vecs
	N Sizes
	F Scalars
}

// Kernel is one entry of the Table.
type Kernel struct {
	Name string
	// CPU is the Go twin: the definition of correct. It expects arguments that Need accepts.
	CPU func(a Args)
	// CUDA is the kernel's source for GPUs.
	CUDA *CUDA
	// Need gives the least length of each vector of a launch with these sizes. A vector that may be
	// left out is listed in Optional.
	Need     func(n Sizes) [8]int
	Optional [8]bool
	// Tol is k in the largest error k * 2^-23 * sqrt(length of the reduction) against float64,
	// relative to values above 1 and absolute below. At most 8.
	Tol float64
	// Cost estimates the work of a launch: floating point operations, and bytes moved between
	// memory and the processor when each operand travels once.
	Cost func(n Sizes) (flops, bytes float64)
}

// CUDA is how GPUs compute a kernel. Each of its entries takes the kernel's first Vecs vectors
// (float *, null for one left out), its first Sizes sizes (int), its first Scalars scalars (float), and,
// where Scratch is set, memory of the device (float *).
type CUDA struct {
	Source string // NAME.cu
	PTX    string // made of it: NAME.ptx

	Vecs, Sizes, Scalars int

	// Scratch is how many float32 of scratch a launch needs; nil: none.
	Scratch func(n Sizes) int
	// Steps are the launches that compute the kernel, one after the other; the first without an Entry ends them.
	Steps func(n Sizes) [4]Step
}

// Step is one launch of an entry of a kernel's source.
type Step struct {
	Entry       string
	Grid, Block [3]int
}
