package dataset

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"fluentps/ps/workload/dataset/classes"
	"fluentps/ps/workload/dataset/draw"
	"fluentps/ps/workload/dataset/files"
)

// blobs is generated data: row r is the centre of a class drawn from (seed, r), plus Gaussian noise of standard deviation 1. Only
// the centres are stored, so any number of rows fits into memory. The centres are Gaussian, too, and about blobDistance*sqrt(2)
// apart for any number of features. So neighbouring classes overlap and no model is perfect.
type blobs struct {
	first, rows int // rows first to first+rows-1 of the endless sequence of the seed
	features    int
	classes     int
	seed        uint64
	centres     []float32 // classes x features
	normal      normals
}

const (
	blobDistance  = 3
	quantileCount = 4096 // divides 2^16, so that 16 random bits pick one
)

func loadGenerated(s Spec, in *files.Reading) (*Set, error) {
	switch {
	case s.Rows < 1:
		return nil, fmt.Errorf("data: set generated needs rows, the number of training rows, such as 10000")
	case s.Features < 1:
		return nil, fmt.Errorf("data: set generated needs features, the number of columns, such as 100")
	case s.Classes < 2 && !s.Regress.On:
		return nil, fmt.Errorf("data: set generated needs classes of at least 2, have %d", s.Classes)
	case s.Image != Image{} && (s.Image.Values() != s.Features || min(s.Image.Channels, s.Image.Height, s.Image.Width) < 1):
		return nil, fmt.Errorf("data: set generated: an image of %d x %d x %d does not have features %d; set features to "+
			"the product", s.Image.Channels, s.Image.Height, s.Image.Width, s.Features)
	case s.Rows+s.TestRows > math.MaxInt32:
		return nil, fmt.Errorf("data: set generated: %d rows and %d test_rows, at most %d together", s.Rows, s.TestRows, math.MaxInt32)
	case s.Features > featuresMax || s.Classes > classes.Max || s.Classes*s.Features > 1<<28:
		return nil, fmt.Errorf("data: set generated: %d classes of %d features; at most %d, %d, and %d for their product",
			s.Classes, s.Features, classes.Max, featuresMax, 1<<28)
	}
	if s.Regress.On {
		return loadLinear(s, in)
	}
	train := &blobs{rows: s.Rows, features: s.Features, classes: s.Classes, seed: draw.Mix(s.Seed, 0x626c6f6273), normal: newNormals()}
	var err error
	if train.centres, err = in.Make(s.Set, "the centres of its classes", s.Classes*s.Features); err != nil {
		return nil, err
	}
	scale := float32(blobDistance / math.Sqrt(float64(s.Features)))
	for c := range s.Classes {
		centre := train.centres[c*s.Features : (c+1)*s.Features]
		train.normal.fill(centre, draw.Mix(^train.seed, uint64(c)))
		for i := range centre {
			centre[i] *= scale
		}
	}
	test := *train
	test.first, test.rows = s.Rows, s.TestRows
	return &Set{Train: train, Test: &test, Classes: s.Classes, Image: s.Image}, nil
}

func (t *blobs) Rows() int { return t.rows }
func (t *blobs) Cols() int { return t.features }

func (t *blobs) Fill(x []float32, y []int32, rows []int32) {
	for i, r := range rows {
		key := draw.Mix(t.seed, uint64(t.first)+uint64(r))
		class := int(key>>32) % t.classes
		y[i] = int32(class)
		row := x[i*t.features : (i+1)*t.features]
		t.normal.fill(row, key)
		for j, c := range t.centres[class*t.features:][:t.features] {
			row[j] += c
		}
	}
}

// normals are quantiles of the normal distribution.
type normals []float32

func newNormals() normals {
	q := make(normals, quantileCount)
	for i := range q {
		q[i] = float32(math.Sqrt2 * math.Erfinv((2*float64(i)+1)/quantileCount-1))
	}
	return q
}

// fill fills x with normal values that are a pure function of key, four from each hash.
func (q normals) fill(x []float32, key uint64) {
	var word uint64
	for j := range x {
		if j%4 == 0 {
			word = draw.Mix(key, uint64(j/4))
		}
		x[j] = q[word%quantileCount]
		word >>= 16
	}
}

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

func loadGeneratedRatings(s Spec, in *files.Reading) (*Set, error) {
	m := s.Matrix
	switch {
	case s.Rows < 1:
		return nil, fmt.Errorf("data: set generated_ratings needs rows, the number of training ratings, such as 10000")
	case m.Rows < 1 || m.Columns < 1 || m.Rows > matrixMax || m.Columns > matrixMax:
		return nil, fmt.Errorf("data: set generated_ratings: a matrix of %d x %d; rows and columns must be 1 to %d", m.Rows, m.Columns, matrixMax)
	case s.Rank < 1 || s.Rank > RankMax || (m.Rows+m.Columns)*s.Rank > 1<<28:
		return nil, fmt.Errorf("data: set generated_ratings: rank %d of a matrix of %d x %d; it must be 1 to %d, and "+
			"(rows+columns)*rank at most %d", s.Rank, m.Rows, m.Columns, RankMax, 1<<28)
	case s.Noise < 0 || !(s.Noise <= 1e6):
		return nil, fmt.Errorf("data: set generated_ratings: noise is %g, must be 0 to 1e6", s.Noise)
	case s.Rows+s.TestRows > math.MaxInt32:
		return nil, fmt.Errorf("data: set generated_ratings: %d rows and %d test_rows, at most %d together", s.Rows, s.TestRows, math.MaxInt32)
	}
	train := &product{rows: s.Rows, matrix: m, rank: s.Rank, noise: float32(s.Noise),
		seed: draw.Mix(s.Seed, 0x726174696e6773), normal: newNormals()}
	factors, err := in.Make(s.Set, "the factors of its matrix", (m.Rows+m.Columns)*s.Rank)
	if err != nil {
		return nil, err
	}
	train.left, train.right = factors[:m.Rows*s.Rank], factors[m.Rows*s.Rank:]
	train.normal.fill(train.left, draw.Mix(^train.seed, 0))
	train.normal.fill(train.right, draw.Mix(^train.seed, 1))
	scale := float32(1 / math.Sqrt(float64(s.Rank)))
	for i := range train.left {
		train.left[i] *= scale
	}
	test := *train
	test.first, test.rows = s.Rows, s.TestRows
	return &Set{Train: train, Test: &test, Matrix: m}, nil
}

func (t *product) Rows() int { return t.rows }
func (t *product) Cols() int { return RatingCols }

func (t *product) Fill(x []float32, y []int32, rows []int32) {
	var e [1]float32
	for i, r := range rows {
		key := draw.Mix(t.seed, uint64(t.first)+uint64(r))
		place := draw.Mix(key, 1)
		row, column := below(place>>32, t.matrix.Rows), below(place&(1<<32-1), t.matrix.Columns)
		t.normal.fill(e[:], draw.Mix(key, 2))
		v := float32(t.noise * e[0])
		right := t.right[column*t.rank:]
		for k, l := range t.left[row*t.rank:][:t.rank] {
			v += float32(l * right[k])
		}
		x[i*RatingCols], x[i*RatingCols+1], x[i*RatingCols+2], y[i] = float32(row), float32(column), v, 0
	}
}

// below maps 32 random bits to 0 to n-1.
func below(word uint64, n int) int {
	hi, _ := bits.Mul64(word<<32, uint64(n))
	return int(hi)
}

// words is generated data as sparse as text: up to nonzeros features of row r are 1 and the others 0. They are drawn from (seed, r),
// the first features far more often. A quarter of the features have a weight. The class of a row is 1 if its product with the
// weights, plus Gaussian noise of standard deviation 1, is above 0.
type words struct {
	first, rows int // rows first to first+rows-1 of the endless sequence of the seed
	nonzeros    int
	seed        uint64
	weight      []float32 // per feature
	normal      normals
}

// wordWeight is the standard deviation of the weights that are not 0, times the root of nonzeros. The standard deviation of the
// product is half of it.
const wordWeight = 6

func loadGeneratedSparse(s Spec, in *files.Reading) (*Set, error) {
	switch {
	case s.Rows < 1:
		return nil, fmt.Errorf("data: set generated_sparse needs rows, the number of training rows, such as 10000")
	case s.Features < 1 || s.Features > featuresMax:
		return nil, fmt.Errorf("data: set generated_sparse: features is %d, must be 1 to %d", s.Features, featuresMax)
	case s.Nonzeros < 1 || s.Nonzeros > s.Features:
		return nil, fmt.Errorf("data: set generated_sparse: nonzeros is %d, must be 1 to features (%d)", s.Nonzeros, s.Features)
	case s.Rows+s.TestRows > math.MaxInt32:
		return nil, fmt.Errorf("data: set generated_sparse: %d rows and %d test_rows, at most %d together", s.Rows, s.TestRows, math.MaxInt32)
	}
	train := &words{rows: s.Rows, nonzeros: s.Nonzeros, seed: draw.Mix(s.Seed, 0x776f726473), normal: newNormals()}
	var err error
	if train.weight, err = in.Make(s.Set, "the weights of its features", s.Features); err != nil {
		return nil, err
	}
	train.normal.fill(train.weight, draw.Mix(^train.seed, 0))
	scale := float32(wordWeight / math.Sqrt(float64(s.Nonzeros)))
	for j := range train.weight {
		if draw.Mix(^train.seed, uint64(1+j))%4 == 0 {
			train.weight[j] *= scale
		} else {
			train.weight[j] = 0
		}
	}
	test := *train
	test.first, test.rows = s.Rows, s.TestRows
	return &Set{Train: train, Test: &test, Classes: 2}, nil
}

func (t *words) Rows() int { return t.rows }
func (t *words) Cols() int { return len(t.weight) }

func (t *words) Fill(x []float32, y []int32, rows []int32) {
	clear(x[:len(rows)*len(t.weight)])
	var index []int32
	for i, r := range rows {
		index, y[i] = t.row(r, index[:0])
		for _, j := range index {
			x[i*len(t.weight)+int(j)] = 1
		}
	}
}

func (t *words) fillSparse(e *Entries, y []int32, rows []int32) {
	for i, r := range rows {
		e.Index, y[i] = t.row(r, e.Index)
		for len(e.Value) < len(e.Index) {
			e.Value = append(e.Value, 1)
		}
		e.Start = append(e.Start, int32(len(e.Index)))
	}
}

// row appends the features of a row to index. It also returns the class of the row.
func (t *words) row(r int32, index []int32) (longer []int32, class int32) {
	key, from := draw.Mix(t.seed, uint64(t.first)+uint64(r)), len(index)
	for k := range t.nonzeros {
		u := float64(draw.Mix(key, uint64(k))>>11) / (1 << 53)
		index = append(index, int32(u*u*u*float64(len(t.weight))))
	}
	slices.Sort(index[from:])
	index = index[:from+len(slices.Compact(index[from:]))]
	var score [1]float32
	t.normal.fill(score[:], draw.Mix(key, math.MaxUint64))
	for _, j := range index[from:] {
		score[0] += t.weight[j]
	}
	if score[0] > 0 {
		class = 1
	}
	return index, class
}
