package workload

import "math"

// constantRows bounds the rows that ConstantLoss reads: more would change the third digit.
const constantRows = 1 << 16

// ConstantLoss is the mean loss of the best prediction that is the same for every row: the entropy of the classes in nats, or the variance
// of ratings. Of a large table it reads rows at equal distances.
func ConstantLoss(t Table, classes int) float64 {
	n := min(t.Rows(), constantRows)
	count := make([]float64, classes)
	var sum, squares float64
	x, y, row := make([]float32, t.Cols()), make([]int32, 1), make([]int32, 1)
	for i := range n {
		row[0] = int32(int64(i) * int64(t.Rows()) / int64(n))
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

// Largest is the largest finite magnitude in rows at equal distances.
func Largest(t Table) (top float64) {
	const values = 1 << 20
	n := min(t.Rows(), max(1, values/t.Cols()))
	x, y, row := make([]float32, t.Cols()), make([]int32, 1), make([]int32, 1)
	for i := range n {
		row[0] = int32(int64(i) * int64(t.Rows()) / int64(n))
		t.Fill(x, y, row)
		for _, v := range x {
			if m := math.Abs(float64(v)); m > top && !math.IsInf(m, 0) {
				top = m
			}
		}
	}
	return top
}
