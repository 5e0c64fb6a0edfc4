// Package orthogonal replaces a matrix by one that is nearly orthogonal and has the same singular vectors: five iterations of
// Newton-Schulz, as in Muon (Jordan et al. 2024). It computes on float32 vectors only; it does no I/O and reads no clock.
//
// An element of a product is a sum in the order of its terms, and no product is fused into a sum: so the bits depend neither on the
// machine, nor on vector instructions, nor on the number of pieces that work at the same time.
package orthogonal

import (
	"fmt"
	"math"
)

// The polynomial of an iteration is first*x + third*x^3 + fifth*x^5 of each singular value: Jordan et al. chose the largest slope at 0
// whose values stay near 1.
const (
	first, third, fifth = 3.4445, -4.7750, 2.0315

	// Iterations bring singular values from 1/500 of the norm of the matrix on, or more, to between 0.68 and 1.21.
	Iterations = 5

	// Epsilon is added to the norm by which the matrix is divided.
	Epsilon = 1e-7
)

// Maker has the memory for the largest matrix that it has seen. It makes one matrix at a time.
type Maker struct {
	x, y         []float32 // the matrix, or its transpose: it has no more rows than columns
	gram, square []float32 // x times its transpose, and a polynomial of that
	packed       []float32 // columns of the right factor of a product

	parallel func(n int, piece func(i int)) // nil: one piece after the other
	pieces   int
	work     product // the current product of the pieces
	piece    func(i int)
}

// NewMaker makes a Maker without memory for any matrix.
func NewMaker() *Maker {
	m := &Maker{pieces: 1}
	m.piece = m.runPiece
	return m
}

// Spread cuts each large product into up to n pieces. parallel(k, piece) must call piece(i) for each i below k, in any order or at the
// same time, and return when all have returned; nil: one piece does all. The number of pieces does not change a bit.
func (m *Maker) Spread(n int, parallel func(n int, piece func(i int))) {
	m.parallel, m.pieces = parallel, max(1, n)
	if parallel == nil {
		m.pieces = 1
	}
}

// Bytes is the memory of a Maker that makes matrices of this form.
func Bytes(rows, cols int) int64 {
	r, n := int64(min(rows, cols)), int64(rows)*int64(cols)
	return 4 * (2*n + 2*r*r + packedElements)
}

// Reserve takes the memory for matrices of this form.
func (m *Maker) Reserve(rows, cols int) {
	r, n := min(rows, cols), rows*cols
	m.x, m.y, m.gram, m.square = room(m.x, n), room(m.y, n), room(m.gram, r*r), room(m.square, r*r)
	m.packed = room(m.packed, packedElements)
}

func room(v []float32, n int) []float32 {
	if len(v) >= n {
		return v
	}
	return make([]float32, n)
}

// Make replaces a matrix whose rows lie one after the other. A matrix of zeros stays as it is; a value that is not finite makes others
// NaN.
func (m *Maker) Make(matrix []float32, rows, cols int) {
	if rows < 1 || cols < 1 || len(matrix) != rows*cols {
		panic(fmt.Sprintf("orthogonal: a matrix of %d x %d in %d elements", rows, cols, len(matrix)))
	}
	m.Reserve(rows, cols)
	r, c := min(rows, cols), max(rows, cols)
	x, y, gram, square := m.x[:r*c], m.y[:r*c], m.gram[:r*r], m.square[:r*r]
	norm := norm2(matrix) + Epsilon
	for i, v := range matrix {
		matrix[i] = float32(float64(v) / norm)
	}
	if rows > cols {
		transpose(x, matrix, rows, cols)
	} else {
		copy(x, matrix)
	}
	for range Iterations {
		m.timesItsTranspose(gram, x, r, c)
		m.timesItsTranspose(square, gram, r, r)
		for i, v := range gram {
			square[i] = float32(third*v) + float32(fifth*square[i])
		}
		for i, v := range x {
			y[i] = first * v
		}
		m.addProduct(y, square, x, r, c)
		x, y = y, x
	}
	if rows > cols {
		transpose(matrix, x, cols, rows)
	} else {
		copy(matrix, x)
	}
}

// norm2 is in float64, so that squares neither overflow nor vanish.
func norm2(v []float32) float64 {
	var sum float64
	for _, x := range v {
		sum += float64(float64(x) * float64(x))
	}
	return math.Sqrt(sum)
}

// transposeBlock is the side of the squares in which a matrix is transposed: both sides of a square stay in the cache.
const transposeBlock = 32

// transpose writes the transpose of src, of rows x cols, to dst.
func transpose(dst, src []float32, rows, cols int) {
	for i0 := 0; i0 < rows; i0 += transposeBlock {
		for j0 := 0; j0 < cols; j0 += transposeBlock {
			for i := i0; i < min(i0+transposeBlock, rows); i++ {
				for j := j0; j < min(j0+transposeBlock, cols); j++ {
					dst[j*rows+i] = src[i*cols+j]
				}
			}
		}
	}
}
