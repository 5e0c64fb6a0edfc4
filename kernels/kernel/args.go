package kernel

import "fmt"

// Vec is a vector of float32 in a device's memory. The zero Vec stands for an optional argument that is absent.
type Vec struct {
	Host []float32 // the elements, if the host can access them
	Dev  uint64    // address of the elements on a device that has its own memory; 0: kernels use Host
	N    int       // number of elements at Dev
}

// Len returns the number of elements.
func (v Vec) Len() int {
	if v.Dev != 0 {
		return v.N
	}
	return len(v.Host)
}

// Slice returns elements lo to hi-1 of v, in the same memory.
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

// VecsMax is the largest number of vectors that a kernel takes.
const VecsMax = 12

// Counts and Marks have an element for each vector of a launch.
type (
	Counts [VecsMax]int
	Marks  [VecsMax]bool
)

// Vecs, Sizes and Scalars are the arguments of a launch, in the order that the kernel documents.
// They are arrays so that a launch allocates no memory.
type (
	Vecs    [VecsMax]Vec
	Sizes   [8]int
	Scalars [4]float32
)

// Args are all arguments of one launch.
type Args struct {
	V Vecs
	N Sizes
	F Scalars
}
