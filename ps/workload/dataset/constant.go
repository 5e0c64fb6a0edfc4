package dataset

import "math"

// constantRows bounds the rows that ConstantLoss reads: more would change the third digit.
const constantRows = 1 << 16

// classesOf is a table that returns classes without values, if it can.
func classesOf(t Table) (labelled, bool) {
	l, ok := whole(t).(labelled)
	return l, ok
}

// ConstantLoss is the mean loss of the best prediction that is the same for every row: the entropy of the classes in nats, or the variance
// of ratings. Of a large table it reads rows at equal distances.
func ConstantLoss(t Table, classes int) float64 {
	n := min(t.Rows(), constantRows)
	count := make([]float64, classes)
	var sum, squares float64
	x, y, row := make([]float32, t.Cols()), make([]int32, 1), make([]int32, 1)
	class, knows := classesOf(t)
	for i := range n {
		row[0] = int32(int64(i) * int64(t.Rows()) / int64(n))
		if knows && classes > 0 {
			count[class.label(int(row[0]))]++
			continue
		}
		t.Fill(x, y, row)
		if classes > 0 {
			count[y[0]]++
			continue
		}
		v := float64(x[len(x)-1])
		sum, squares = sum+v, squares+v*v
	}
	if classes == 0 {
		mean := sum / float64(n)
		return max(0, squares/float64(n)-mean*mean)
	}
	var entropy float64
	for _, c := range count {
		if c > 0 {
			entropy -= c / float64(n) * math.Log(c/float64(n))
		}
	}
	return entropy
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
