package workload

import (
	"fmt"
	"math"
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

func loadGenerated(s DataSpec, in *reading) (*Set, error) {
	switch {
	case s.Rows < 1:
		return nil, fmt.Errorf("data: set generated needs rows, the number of training rows, such as 10000")
	case s.Features < 1:
		return nil, fmt.Errorf("data: set generated needs features, the number of columns, such as 100")
	case s.Classes < 2:
		return nil, fmt.Errorf("data: set generated needs classes of at least 2, have %d", s.Classes)
	case s.Image != Image{} && (s.Image.values() != s.Features || min(s.Image.Channels, s.Image.Height, s.Image.Width) < 1):
		return nil, fmt.Errorf("data: set generated: an image of %d x %d x %d does not have features %d; set features to "+
			"the product", s.Image.Channels, s.Image.Height, s.Image.Width, s.Features)
	case s.Rows+s.TestRows > math.MaxInt32:
		return nil, fmt.Errorf("data: set generated: %d rows and %d test_rows, at most %d together", s.Rows, s.TestRows, math.MaxInt32)
	case s.Features > featuresMax || s.Classes > classesMax || s.Classes*s.Features > 1<<28:
		return nil, fmt.Errorf("data: set generated: %d classes of %d features; at most %d, %d, and %d for their product",
			s.Classes, s.Features, classesMax, featuresMax, 1<<28)
	}
	train := &blobs{rows: s.Rows, features: s.Features, classes: s.Classes, seed: mix(s.Seed, 0x626c6f6273), normal: newNormals()}
	var err error
	if train.centres, err = in.make(s.Set, "the centres of its classes", s.Classes*s.Features); err != nil {
		return nil, err
	}
	scale := float32(blobDistance / math.Sqrt(float64(s.Features)))
	for c := range s.Classes {
		centre := train.centres[c*s.Features : (c+1)*s.Features]
		train.normal.fill(centre, mix(^train.seed, uint64(c)))
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
		key := mix(t.seed, uint64(t.first)+uint64(r))
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
			word = mix(key, uint64(j/4))
		}
		x[j] = q[word%quantileCount]
		word >>= 16
	}
}
