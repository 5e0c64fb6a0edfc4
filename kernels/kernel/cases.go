package kernel

import (
	"math"
	"math/rand/v2"
)

// Case is one launch with its right answer. A vector is compared with Want within the tolerance, or to the bit with Bits;
// where both are nil it must stay as it was.
type Case struct {
	Name    string
	In      [8][]float32 // nil: argument left out
	Sizes   Sizes
	Scalars Scalars
	Want    [8][]float64
	Bits    [8][]uint32
	Alias   [8]int // 1+index of the vector that this one shares memory with; 0: its own
	Terms   int    // length of the longest reduction
}

// Over makes argument v share the memory of argument into, whose first elements become what v's do.
func (c *Case) Over(v, into int) {
	want := Float64s(c.In[into])
	copy(want, c.Want[v])
	c.In[v], c.Alias[v] = c.In[into], 1+into
	c.Want[into], c.Want[v] = want, nil
}

// Lengths of vectors: none, one, primes, multiples of vector registers and of blocks, and one off these.
var Lengths = []int{0, 1, 2, 7, 31, 64, 257, 1024, 1031, 4099}

// Matrices are rows and columns: as few as possible, primes, and none.
var Matrices = [][2]int{{1, 1}, {1, 13}, {13, 1}, {7, 11}, {32, 128}, {67, 257}, {1031, 3}, {0, 5}}

// Random returns n values in [-1, 1), the same for the same seed.
func Random(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	x := make([]float32, n)
	for i := range x {
		x[i] = 2*r.Float32() - 1
	}
	return x
}

// NaNs returns n NaN: what memory that a kernel only writes may hold before.
func NaNs(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.NaN())
	}
	return x
}

// Float64s returns the same values.
func Float64s(x []float32) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = float64(v)
	}
	return y
}
