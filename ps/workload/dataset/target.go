package dataset

import (
	"fmt"
	"math"

	"fluentps/ps/workload/dataset/draw"
	"fluentps/ps/workload/dataset/files"
)

// Targets says what the targets of rows are, if rows have numbers to predict instead of classes: a target t of a table is
// Mean + Deviation*t in the files. Deviation is above 0, or 0 if rows have classes.
type Targets struct{ Mean, Deviation float64 }

// Regression is what a Spec says of targets: On, rows have targets, which are numbers to predict, and no classes. Standardize gives those
// of the training rows the mean 0 and the standard deviation 1.
type Regression struct{ On, Standardize bool }

// TargetOf is the target in a value of y: see Table.
func TargetOf(y int32) float32 { return math.Float32frombits(uint32(y)) }

// yOf is the value of y that stands for a target.
func yOf(target float32) int32 { return int32(math.Float32bits(target)) }

// targeted is a table whose rows may have targets in memory; it returns them as values of y.
type targeted interface{ targets() []int32 }

func (t textRows) targets() []int32 { return t.Labels() }
func (t *sparse) targets() []int32  { return t.y }
func (p pixels) targets() []int32   { return p.Labels() }
func (t *arrays) targets() []int32  { return t.y }

// settleTargets looks at the targets of a set that has been read, and standardises them if that is wanted.
func (s *Set) settleTargets(in *files.Reading) error {
	s.Targets = Targets{Deviation: 1}
	train, ok := s.Train.(targeted)
	if !ok {
		return nil // generated
	}
	y := train.targets()
	var sum, squares float64
	for _, t := range y {
		sum += float64(TargetOf(t))
	}
	mean := sum / float64(len(y))
	for _, t := range y {
		d := float64(TargetOf(t)) - mean
		squares += d * d
	}
	deviation := math.Sqrt(squares / float64(len(y)))
	if deviation == 0 && s.spec.Regress.Standardize {
		return fmt.Errorf("data: %s: the target is %g in all %d training rows, so it has no deviation to be standardized by: is it the right "+
			"column?", s.spec.Path, mean, len(y))
	}
	if deviation == 0 && len(y) > 1 {
		in.Notes = append(in.Notes, fmt.Sprintf("data: %s: the target is %g in all training rows", s.spec.Path, mean))
	}
	if step := math.Abs(mean) / (1 << 23); deviation > 0 && deviation < targetSteps*step {
		in.Notes = append(in.Notes, fmt.Sprintf("data: %s: targets have mean %.8g and deviation %.4g, and at that size float32 has steps of "+
			"%.3g: digits are lost; subtract a number such as %.8g from the targets of the file", s.spec.Path, mean, deviation, step, mean))
	}
	if !s.spec.Regress.Standardize {
		if big := max(math.Abs(mean), deviation); big > targetLarge {
			in.Notes = append(in.Notes, fmt.Sprintf("data: %s: targets have mean %.4g and deviation %.4g: errors of that size make steps too "+
				"long; set data.targets: standardize, which changes no metric", s.spec.Path, mean, deviation))
		}
		return nil
	}
	s.Targets = Targets{Mean: mean, Deviation: deviation}
	for _, table := range []Table{s.Train, s.Test} {
		y := table.(targeted).targets()
		for i, t := range y {
			y[i] = yOf(float32((float64(TargetOf(t)) - mean) / deviation))
		}
	}
	in.Found = append(in.Found, fmt.Sprintf("%s: targets are standardized: mean %.6g, deviation %.6g over the training rows", s.spec.Path,
		mean, deviation))
	return nil
}

// targetSteps is how many steps of float32 the deviation of targets should be at least: fewer, and rounding shows in the metrics.
const targetSteps = 1000

// targetLarge is the mean or the deviation of targets from which on the first steps at a usual rate diverge: a gradient is twice the error.
const targetLarge = 30

// TestSpread is the mean squared distance of the targets of the test rows from their mean, in the unit of the tables, or that of the values
// of ratings. R2 is 1 minus the mean squared error divided by it (Draper and Smith, Applied Regression Analysis, section 1.3, recalled [M];
// as scikit-learn's r2_score).
func (s *Set) TestSpread() float64 {
	var sum, squares float64
	n := s.Test.Rows()
	each := s.outcomes(s.Test)
	for r := range n {
		sum += each(r)
	}
	mean := sum / float64(n)
	for r := range n {
		d := each(r) - mean
		squares += d * d
	}
	return squares / float64(n)
}

// outcomes returns what the rows of a table are to be predicted as, if that is a number.
func (s *Set) outcomes(t Table) func(row int) float64 {
	if table, ok := whole(t).(targeted); ok && s.Targets != (Targets{}) {
		y := table.targets()
		return func(row int) float64 { return float64(TargetOf(y[row])) }
	}
	x, y, rows := make([]float32, t.Cols()), make([]int32, 1), make([]int32, 1)
	return func(row int) float64 {
		rows[0] = int32(row)
		t.Fill(x, y, rows)
		if s.Targets != (Targets{}) {
			return float64(TargetOf(y[0]))
		}
		return float64(x[len(x)-1])
	}
}

// describeOutcomes describes the values that rows are to be predicted as, in the unit of the files.
func (s *Set) describeOutcomes(t Table) (v Values) {
	each, n := s.outcomes(t), float64(t.Rows())
	value := func(r int) float64 {
		if s.Targets != (Targets{}) {
			return s.Targets.Mean + s.Targets.Deviation*each(r)
		}
		return each(r)
	}
	var sum, squares float64
	for r := range t.Rows() {
		y := value(r)
		if r == 0 {
			v.Min, v.Max = y, y
		}
		v.Min, v.Max = min(v.Min, y), max(v.Max, y)
		sum += y
	}
	if n == 0 {
		return v
	}
	v.Mean = sum / n
	for r := range t.Rows() {
		d := value(r) - v.Mean
		squares += d * d
	}
	v.Deviation = math.Sqrt(squares / n)
	return v
}

// linear is generated data: the features of row r are Gaussian, drawn from (seed, r), and its target is their product with weights of
// length 1, plus Gaussian noise. So the mean squared error of the best model is that of the noise, and that of a constant is about 1.
type linear struct {
	first, rows int // rows first to first+rows-1 of the endless sequence of the seed
	seed        uint64
	weight      []float32 // per feature
	normal      normals
}

// linearNoise is the standard deviation of the noise in targets.
const linearNoise = 0.1

func loadLinear(s Spec, in *files.Reading) (*Set, error) {
	if s.Regress.Standardize {
		return nil, fmt.Errorf("data: set %s: its targets have mean 0 and deviation 1 as they are; leave out data.targets", s.Set)
	}
	train := &linear{rows: s.Rows, seed: draw.Mix(s.Seed, 0x6c696e656172), normal: newNormals()}
	var err error
	if train.weight, err = in.Make(s.Set, "the weights of its features", s.Features); err != nil {
		return nil, err
	}
	train.normal.fill(train.weight, draw.Mix(^train.seed, 0))
	var squares float64
	for _, w := range train.weight {
		squares += float64(w) * float64(w)
	}
	for j := range train.weight {
		train.weight[j] = float32(float64(train.weight[j]) / math.Sqrt(squares))
	}
	test := *train
	test.first, test.rows = s.Rows, s.TestRows
	return &Set{Train: train, Test: &test, Image: s.Image}, nil
}

func (t *linear) Rows() int { return t.rows }
func (t *linear) Cols() int { return len(t.weight) }

func (t *linear) Fill(x []float32, y []int32, rows []int32) {
	n := len(t.weight)
	var noise [1]float32
	for i, r := range rows {
		key := draw.Mix(t.seed, uint64(t.first)+uint64(r))
		row := x[i*n : (i+1)*n]
		t.normal.fill(row, key)
		t.normal.fill(noise[:], draw.Mix(key, math.MaxUint64))
		target := linearNoise * float64(noise[0])
		for j, w := range t.weight {
			target += float64(row[j]) * float64(w) // the product is exact, so fusing it with the sum changes no bit
		}
		y[i] = yOf(float32(target))
	}
}

func (t *linear) holds() (own, common int64) {
	return 0, valueBytes * int64(len(t.weight)+len(t.normal))
}
