// Package biasgrad holds the kernel bias_grad.
package biasgrad

// sum sets db (cols) to the column sums of dy (rows x cols), added in row order.
func sum(db, dy []float32, rows, cols int) {
	db = db[:cols]
	clear(db)
	for i := range rows {
		row := dy[i*cols : (i+1)*cols]
		for j := range db {
			db[j] += row[j]
		}
	}
}
