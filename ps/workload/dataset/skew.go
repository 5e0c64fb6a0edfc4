package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"gonum.org/v1/gonum/stat/distuv"

	"fluentps/ps/workload/dataset/draw"
)

// Skew deals rows unequally, as federated work has them. At most one of the two is set.
type Skew struct {
	Dirichlet float64 `yaml:"dirichlet,omitempty" min:"0.001" max:"1e6" when:"set=idx,cifar10,csv,parquet,libsvm,npy,images,packed,generated,generated_sparse" doc:"each class is shared out by a draw from a Dirichlet distribution of this concentration: 0.1 leaves a worker few classes, and 100 makes all alike"`
	By        string  `yaml:"by,omitempty" form:"column" when:"set=idx,cifar10,csv,parquet,libsvm,npy,images,packed,generated,generated_sparse,ratings,generated_ratings" doc:"rows with the same value stay together: class; csv: or a column, by name or number, which then is no feature; ratings: row or column"`
}

// The values of Skew.By that are no columns of csv.
const (
	byClass  = "class"
	byRow    = "row"
	byColumn = "column"
)

// NoGroups says what the rows of a set can be grouped by, if not by what the keys say; "": they can.
func (d Keys) NoGroups() string {
	isRating := slices.Contains(RatingSetNames(), d.Set)
	switch {
	case d.Set == packedSet: // the file tells
	case isRating && d.Skew.By != byRow && d.Skew.By != byColumn:
		return "row or column"
	case !isRating && d.Set != "csv" && d.Skew.By != byClass:
		return byClass
	}
	return ""
}

// skewStream separates the draws of skewed shares from others with the same seed.
const skewStream = 0x736b6577

// groups are the number of the group of each training row, from 0, and how many groups there are.
func (s *Set) groups(by string) (group []int32, count int, err error) {
	t := s.Train
	if rows, ok := whole(t).(textRows); ok && by != byClass && rows.Group() != nil {
		group = rows.Group()[:t.Rows()]
		return group, int(slices.Max(group)) + 1, nil
	}
	if p, ok := whole(t).(packedRows); ok && by != "" {
		if all, column := p.Group(); column == by {
			group = all[:t.Rows()]
			return group, int(slices.Max(group)) + 1, nil
		}
	}
	if s.Name == packedSet && by != byClass && by != byRow && by != byColumn {
		return nil, 0, fmt.Errorf("data.partition.by: the pack has no column %s: set data.partition: {by: %s} when it is packed", by, by)
	}
	isRating := s.Matrix != Matrix{}
	if s.Targets != (Targets{}) {
		return nil, 0, errors.New("data.partition: rows have targets and no classes, by which they could be shared out; write by: COLUMN of csv")
	}
	if isRating && by != byRow && by != byColumn || !isRating && by != byClass && s.Name != "csv" {
		return nil, 0, fmt.Errorf("data.partition.by: set %s has no %s: write %s", s.Name, by,
			map[bool]string{true: "row or column", false: byClass}[isRating])
	}
	group = make([]int32, t.Rows())
	x, y := make([]float32, t.Cols()), make([]int32, 1)
	class, knows := classesOf(t)
	for r := range group {
		if !isRating && knows {
			group[r] = class.label(r)
			continue
		}
		t.Fill(x, y, []int32{int32(r)})
		switch {
		case !isRating:
			group[r] = y[0]
		case by == byRow:
			group[r] = int32(x[0])
		default:
			group[r] = int32(x[1])
		}
	}
	switch {
	case !isRating:
		return group, s.Classes, nil
	case by == byRow:
		return group, s.Matrix.Rows, nil
	}
	return group, s.Matrix.Columns, nil
}

// Shares returns the rows of each worker: every training row is one worker's, and each worker has one.
//
// With Dirichlet, of each class a share p_w goes to worker w, with p drawn from the symmetric Dirichlet distribution of that concentration
// (Yurochkin et al., ICML 2019, section 4, recalled [M]; Li et al., ICDE 2022, the label skew of NIID-Bench, recalled [M]). A worker that
// would have no row gets one of the worker with the most. With By, the largest group that is left goes to the worker with the fewest rows.
//
// Whoever asks again for the same gets the same memory, which nobody changes: all ranks of a process, and each for several purposes.
func (s *Set) Shares(k Skew, workers int, seed uint64) ([][]int32, error) {
	if s.dealt == nil {
		return s.share(k, workers, seed)
	}
	s.dealt.Lock()
	defer s.dealt.Unlock()
	key := dealtKey{k, workers, seed}
	if s.dealt.shares != nil && s.dealt.key == key {
		return s.dealt.shares, nil
	}
	shares, err := s.share(k, workers, seed)
	if err == nil {
		s.dealt.key, s.dealt.shares = key, shares
	}
	return shares, err
}

// dealt are the shares that were asked for last.
type dealt struct {
	sync.Mutex
	key    dealtKey
	shares [][]int32
}

type dealtKey struct {
	Skew
	workers int
	seed    uint64
}

func (s *Set) share(k Skew, workers int, seed uint64) (shares [][]int32, err error) {
	rows := s.Train.Rows()
	if rows < workers {
		return nil, fmt.Errorf("data.partition: %d rows for %d workers leave some without data; use at most %d workers", rows, workers, rows)
	}
	by := k.By
	if k.Dirichlet > 0 {
		by = byClass
	}
	group, count, err := s.groups(by)
	if err != nil {
		return nil, err
	}
	of := make([][]int32, count) // the rows of each group
	for r, g := range group {
		of[g] = append(of[g], int32(r))
	}
	shares = make([][]int32, workers)
	if k.Dirichlet > 0 {
		for c, all := range of {
			draw := rand.New(rand.NewPCG(draw.Mix(seed, uint64(c)), skewStream))
			draw.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			at := 0
			for w, end := range cuts(len(all), workers, k.Dirichlet, draw) {
				shares[w] = append(shares[w], all[at:end]...)
				at = end
			}
		}
		fillEmpty(shares)
	} else if err := dealGroups(by, of, shares); err != nil {
		return nil, err
	}
	for w := range shares {
		slices.Sort(shares[w])
		shares[w] = slices.Clip(shares[w])
	}
	return shares, nil
}

// cuts are where the share of each worker ends, of n rows of a class.
func cuts(n, workers int, concentration float64, draw *rand.Rand) []int {
	p, sum := make([]float64, workers), 0.0
	for w := range p {
		p[w] = distuv.Gamma{Alpha: concentration, Beta: 1, Src: draw}.Rand()
		sum += p[w]
	}
	if sum == 0 { // all draws were too small for float64: one of them is far larger than the others
		p[draw.IntN(workers)], sum = 1, 1
	}
	ends, part := make([]int, workers), 0.0
	for w := range p {
		part += p[w]
		ends[w] = min(n, int(math.Round(part/sum*float64(n))))
	}
	ends[workers-1] = n
	return ends
}

// fillEmpty gives each worker without rows one of the worker that has the most.
func fillEmpty(shares [][]int32) {
	for w := range shares {
		if len(shares[w]) > 0 {
			continue
		}
		most := 0
		for v := range shares {
			if len(shares[v]) > len(shares[most]) {
				most = v
			}
		}
		last := len(shares[most]) - 1
		shares[w] = append(shares[w], shares[most][last])
		shares[most] = shares[most][:last]
	}
}

// dealGroups deals whole groups, the largest first, to the worker with the fewest rows.
func dealGroups(by string, of, shares [][]int32) error {
	var order []int
	for g := range of {
		if len(of[g]) > 0 {
			order = append(order, g)
		}
	}
	if len(order) < len(shares) {
		return fmt.Errorf("data.partition.by: %s has %d values in the training rows, for %d workers; use at most %d workers", by, len(order),
			len(shares), len(order))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(of[b]), len(of[a])) })
	for _, g := range order {
		fewest := 0
		for w := range shares {
			if len(shares[w]) < len(shares[fewest]) {
				fewest = w
			}
		}
		shares[fewest] = append(shares[fewest], of[g]...)
	}
	return nil
}
