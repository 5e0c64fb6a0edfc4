package workload

import "fmt"

// rowsToJudge is the fewest rows from which on the values of a column say what it may be.
const rowsToJudge = 20

// column is what the values of a column of whole numbers from 0 are like.
type column struct {
	distinct int
	most     int // the largest value
}

// isDense says whether the column has each number from 0 to its largest, as numbered classes have.
func (c column) isDense() bool { return c.distinct == c.most+1 }

// columnOf looks at so many values. ok is false if one of them is no whole number that can be a class.
func columnOf(rows int, value func(row int) float32) (c column, ok bool) {
	seen := map[int32]bool{}
	for r := range rows {
		v := value(r)
		y := int32(v)
		if v < 0 || v >= classesMax || float32(y) != v {
			return c, false
		}
		if !seen[y] {
			seen[y] = true
			c.distinct++
			c.most = max(c.most, int(y))
		}
	}
	return c, true
}

// noteClasses notes what makes the class of a table doubtful: too many classes for the rows, and a first column that looks more like the
// class than the last. Without a note, training on a feature as the class looks like a model that does not learn.
func noteClasses(path string, t *rowsTable, in *reading) {
	rows := t.Rows()
	label, _ := columnOf(rows, func(row int) float32 { return float32(t.y[row]) })
	first, whole := columnOf(rows, func(row int) float32 { return t.x[row*t.cols] })
	classes := max(2, label.most+1)
	many := rows >= rowsToJudge && classes > rows/10
	if rows >= rowsToJudge && whole && first.isDense() && first.distinct > 1 && first.distinct <= rows/10 &&
		(many || label.distinct == 1 || !label.isDense()) {
		like := fmt.Sprintf("has %d different values up to %d", label.distinct, label.most)
		if label.distinct == 1 {
			like = fmt.Sprintf("is %d in all rows", label.most)
		}
		in.notes = append(in.notes, fmt.Sprintf("data: %s: the class may be in the first column, which has each number "+
			"from 0 to %d; csv takes the class from the last column, which %s; if the first is the class, move it to the end of each line",
			path, first.most, like))
		return
	}
	if many || classes > max(2, rows) {
		in.notes = append(in.notes, fmt.Sprintf("data: %s: the last column, the class, has numbers up to %d in %d rows: "+
			"fewer than ten rows for each of %d classes; if it is a feature, put the class there, and number classes from 0 without gaps",
			path, label.most, rows, classes))
	}
}
