package kernel

import (
	"math"
	"math/rand/v2"
)

// Case is one launch with its correct result. A vector is compared with Want within the tolerance. If it is nil, the
// launch must not change the vector.
type Case struct {
	Name    string
	In      [VecsMax][]float32 // nil: the argument is absent
	Sizes   Sizes
	Scalars Scalars
	Want    [VecsMax][]float64
	Alias   Counts // 1 + index of the vector whose memory this one shares; 0: memory of its own
	Terms   int    // length of the longest reduction
}

// Over makes argument v share the memory of argument into. The first elements of into must then become what v's would.
func (c *Case) Over(v, into int) {
	want := Float64s(c.In[into])
	copy(want, c.Want[v])
	c.In[v], c.Alias[v] = c.In[into], 1+into
	c.Want[into], c.Want[v] = want, nil
}

// Lengths are lengths of vectors: zero, one, primes, and multiples of vector registers and of blocks, with neighbours of these.
var Lengths = []int{0, 1, 2, 7, 31, 64, 257, 1024, 1031, 4099}

// Matrices are rows and columns: one, primes, and no rows.
var Matrices = [][2]int{{1, 1}, {1, 13}, {13, 1}, {7, 11}, {32, 128}, {67, 257}, {1031, 3}, {0, 5}}

// Random returns n values in [-1, 1). Equal seeds give equal values.
func Random(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	return x
}

// NaNs returns n NaN, for memory that a kernel must write without reading it.
func NaNs(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.NaN())
	}
	return x
}

// Float64s returns the values of x as float64.
func Float64s(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
