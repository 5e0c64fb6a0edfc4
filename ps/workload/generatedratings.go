package workload

import (
	"fmt"
	"math"
	"math/bits"
)

// product is generated data: rating r is an entry, drawn from (seed, r), of the product of two Gaussian factors, plus Gaussian
// noise. Entries of the product have variance 1. So the root mean squared error of the best model is the noise, and that of a
// constant model is about 1.
type product struct {
	first, rows int // ratings first to first+rows-1 of the endless sequence of the seed
	matrix      Matrix
	rank        int
	noise       float32
	seed        uint64
	left, right []float32 // Rows x rank, Columns x rank
	normal      normals
}

func loadGeneratedRatings(s DataSpec, in *reading) (*Set, error) {
	m := s.Matrix
	switch {
	case s.Rows < 1:
		return nil, fmt.Errorf("data: set generated_ratings needs rows, the number of training ratings, such as 10000")
	case m.Rows < 1 || m.Columns < 1 || m.Rows > matrixMax || m.Columns > matrixMax:
		return nil, fmt.Errorf("data: set generated_ratings: a matrix of %d x %d; rows and columns must be 1 to %d", m.Rows, m.Columns, matrixMax)
	case s.Rank < 1 || s.Rank > rankMax || (m.Rows+m.Columns)*s.Rank > 1<<28:
		return nil, fmt.Errorf("data: set generated_ratings: rank %d of a matrix of %d x %d; it must be 1 to %d, and "+
			"(rows+columns)*rank at most %d", s.Rank, m.Rows, m.Columns, rankMax, 1<<28)
	case s.Noise < 0 || !(s.Noise <= 1e6):
		return nil, fmt.Errorf("data: set generated_ratings: noise is %g, must be 0 to 1e6", s.Noise)
	case s.Rows+s.TestRows > math.MaxInt32:
		return nil, fmt.Errorf("data: set generated_ratings: %d rows and %d test_rows, at most %d together", s.Rows, s.TestRows, math.MaxInt32)
	}
	train := &product{rows: s.Rows, matrix: m, rank: s.Rank, noise: float32(s.Noise),
		seed: mix(s.Seed, 0x726174696e6773), normal: newNormals()}
	factors, err := in.make(s.Set, "the factors of its matrix", (m.Rows+m.Columns)*s.Rank)
	if err != nil {
		return nil, err
	}
	train.left, train.right = factors[:m.Rows*s.Rank], factors[m.Rows*s.Rank:]
	train.normal.fill(train.left, mix(^train.seed, 0))
	train.normal.fill(train.right, mix(^train.seed, 1))
	scale := float32(1 / math.Sqrt(float64(s.Rank)))
	for i := range train.left {
		train.left[i] *= scale
	}
	test := *train
	test.first, test.rows = s.Rows, s.TestRows
	return &Set{Train: train, Test: &test, Matrix: m}, nil
}

func (t *product) Rows() int { return t.rows }
func (t *product) Cols() int { return ratingCols }

func (t *product) Fill(x []float32, y []int32, rows []int32) {
	var e [1]float32
	for i, r := range rows {
		key := mix(t.seed, uint64(t.first)+uint64(r))
		place := mix(key, 1)
		row, column := below(place>>32, t.matrix.Rows), below(place&(1<<32-1), t.matrix.Columns)
		t.normal.fill(e[:], mix(key, 2))
		v := float32(t.noise * e[0])
		right := t.right[column*t.rank:]
		for k, l := range t.left[row*t.rank:][:t.rank] {
			v += float32(l * right[k])
		}
		x[i*ratingCols], x[i*ratingCols+1], x[i*ratingCols+2], y[i] = float32(row), float32(column), v, 0
	}
}

// below maps 32 random bits to 0 to n-1.
func below(word uint64, n int) int {
	hi, _ := bits.Mul64(word<<32, uint64(n))
	return int(hi)
}
