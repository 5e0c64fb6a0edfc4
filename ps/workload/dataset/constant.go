package dataset

import (
	"math"
	"slices"
)

// constantRows bounds the rows that ConstantLoss reads: more would change the third digit.
const constantRows = 1 << 16

// classesOf is a table that returns classes without values, if it can.
func classesOf(t Table) (labelled, bool) {
	l, ok := whole(t).(labelled)
	return l, ok
}

// ConstantLoss is the mean loss of the best prediction that is the same for every row: the entropy of the classes in nats, or the mean
// squared distance of targets or ratings from their mean. With a delta above 0 it is Huber's loss of targets, half of the square up to
// delta. Of a large table it reads rows at equal distances.
func (s *Set) ConstantLoss(t Table, delta float64) float64 {
	n := min(t.Rows(), constantRows)
	at := func(i int) int { return int(int64(i) * int64(t.Rows()) / int64(n)) }
	if s.Classes == 0 {
		each, values := s.outcomes(t), make([]float64, n)
		for i := range values {
			values[i] = each(at(i))
		}
		return constantError(values, delta)
	}
	count := make([]float64, s.Classes)
	x, y := make([]float32, t.Cols()), make([]int32, 1)
	class, knows := classesOf(t)
	for i := range n {
		if knows {
			count[class.label(at(i))]++
			continue
		}
		t.Fill(x, y, []int32{int32(at(i))})
		count[y[0]]++
	}
	var entropy float64
	for _, c := range count {
		if c > 0 {
			entropy -= c / float64(n) * math.Log(c/float64(n))
		}
	}
	return entropy
}

// constantError is the mean loss of the best constant. That of Huber's loss is where as much pulls up as down.
func constantError(values []float64, delta float64) float64 {
	var sum float64
	for _, v := range values {
		sum += v
	}
	best := sum / float64(len(values))
	if delta > 0 {
		lo, hi := slices.Min(values), slices.Max(values)
		for range 100 {
			best = lo + (hi-lo)/2
			var pull float64
			for _, v := range values {
				pull += max(-delta, min(delta, v-best))
			}
			if pull > 0 {
				lo = best
			} else {
				hi = best
			}
		}
	}
	var loss float64
	for _, v := range values {
		switch d := math.Abs(v - best); {
		case delta == 0:
			loss += d * d
		case d <= delta:
			loss += d * d / 2
		default:
			loss += delta * (d - delta/2)
		}
	}
	return loss / float64(len(values))
}

// Largest is the largest finite magnitude of the data in training rows at equal distances.
func (s *Set) Largest() (top float64) {
	const values = 1 << 20
	t := s.Train
	if s.Elsewhere {
		return 0
	}
	n := min(t.Rows(), max(1, values/t.Cols()))
	x, y, row := make([]float32, t.Cols()), make([]int32, 1), make([]int32, 1)
	for i := range n {
		row[0] = int32(int64(i) * int64(t.Rows()) / int64(n))
		t.Fill(x, y, row)
		top = max(top, largest(x, s.Matrix.every()))
	}
	return top
}

// every says which values of rows are data: of so many the last. The row and the column of a rating are places, and may be large.
func (m Matrix) every() int {
	if m.Rows > 0 {
		return RatingCols
	}
	return 1
}

// largest is the largest finite magnitude in the last of every so many values.
func largest(x []float32, every int) (top float64) {
	for at := every - 1; at < len(x); at += every {
		if m := math.Abs(float64(x[at])); m > top && !math.IsInf(m, 0) {
			top = m
		}
	}
	return top
}
