package workload

// rowsTable is a dense table of float32.
type rowsTable struct {
	x    []float32 // rows x cols
	y    []int32
	cols int
}

func (t *rowsTable) Rows() int { return len(t.y) }
func (t *rowsTable) Cols() int { return t.cols }

func (t *rowsTable) Fill(x []float32, y []int32, rows []int32) {
	for i, r := range rows {
		y[i] = t.y[r]
		copy(x[i*t.cols:(i+1)*t.cols], t.x[int(r)*t.cols:])
	}
}

// ascending are the numbers lo, lo+1 ... hi-1.
func ascending(lo, hi int) []int32 {
	rows := make([]int32, 0, hi-lo)
	for r := lo; r < hi; r++ {
		rows = append(rows, int32(r))
	}
	return rows
}
