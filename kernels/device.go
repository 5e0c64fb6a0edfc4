package kernels

// Device is memory and compute of one rank. It belongs to one goroutine at a time.
type Device interface {
	// Name says what computes, for reports: "cpu (openblas 0.3.21, 1 thread)".
	Name() string
	// Alloc returns n zeroed float32 of device memory.
	Alloc(n int) (Vec, error)
	// Wrap makes memory that someone else owns, such as a transport's buffer, usable by kernels.
	// What kernels write there is visible in p after Sync.
	Wrap(p []float32) (Vec, error)
	// Upload copies src to the start of dst. It is an error when dst is shorter.
	Upload(dst Vec, src []float32) error
	// Download waits for src and copies its first len(dst) elements. It is an error when src is shorter.
	Download(dst []float32, src Vec) error
	// Launch starts a kernel; kernels of one device run in the order of their launches. It is an
	// error when an argument is too short for the sizes; nothing has run then.
	Launch(k *Kernel, a Args) error
	// Sync returns when every launched kernel is done.
	Sync() error
	// Close frees what Alloc handed out. The device is not used afterwards.
	Close() error
}

// Vec is device memory: a vector of float32. The zero Vec stands for an argument left out.
type Vec struct {
	Host []float32 // the elements, where the host can reach them
}

// Len is the number of elements.
func (v Vec) Len() int { return len(v.Host) }

// Slice is elements lo to hi-1 of v, in the same memory.
func (v Vec) Slice(lo, hi int) Vec { return Vec{Host: v.Host[lo:hi]} }

// Vecs, Sizes and Scalars are the arguments of a launch, in the order that the kernel documents.
// They are arrays so that a launch allocates nothing.
type (
	Vecs    [5]Vec
	Sizes   [6]int
	Scalars [1]float32
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
	// Need gives the least length of each vector of a launch with these sizes. A vector that may be
	// left out is listed in Optional.
	Need     func(n Sizes) [5]int
	Optional [5]bool
	// Tol is k in the largest error k * 2^-23 * sqrt(length of the reduction) against float64,
	// relative to values above 1 and absolute below. At most 8.
	Tol float64
	// Cost estimates the work of a launch: floating point operations, and bytes moved between
	// memory and the processor when each operand travels once.
	Cost func(n Sizes) (flops, bytes float64)
}
