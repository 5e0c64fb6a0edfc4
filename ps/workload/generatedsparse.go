package workload

import (
	"fmt"
	"math"
	"slices"
)

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

func loadGeneratedSparse(s DataSpec, in *reading) (*Set, error) {
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
	train := &words{rows: s.Rows, nonzeros: s.Nonzeros, seed: mix(s.Seed, 0x776f726473), normal: newNormals()}
	var err error
	if train.weight, err = in.make(s.Set, "the weights of its features", s.Features); err != nil {
		return nil, err
	}
	train.normal.fill(train.weight, mix(^train.seed, 0))
	scale := float32(wordWeight / math.Sqrt(float64(s.Nonzeros)))
	for j := range train.weight {
		if mix(^train.seed, uint64(1+j))%4 == 0 {
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
	key, from := mix(t.seed, uint64(t.first)+uint64(r)), len(index)
	for k := range t.nonzeros {
		u := float64(mix(key, uint64(k))>>11) / (1 << 53)
		index = append(index, int32(u*u*u*float64(len(t.weight))))
	}
	slices.Sort(index[from:])
	index = index[:from+len(slices.Compact(index[from:]))]
	var score [1]float32
	t.normal.fill(score[:], mix(key, math.MaxUint64))
	for _, j := range index[from:] {
		score[0] += t.weight[j]
	}
	if score[0] > 0 {
		class = 1
	}
	return index, class
}
