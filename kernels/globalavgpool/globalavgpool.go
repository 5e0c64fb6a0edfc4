// Package globalavgpool holds the kernels global_avg_pool and global_avg_pool_grad.
package globalavgpool

// forward sets y (planes) to the mean of each plane of x (planes x positions).
func forward(y, x []float32, planes, positions int) {
	for p := range planes {
		var sum float64
		for _, v := range x[p*positions : (p+1)*positions] {
			sum += float64(v)
		}
		y[p] = float32(sum / float64(positions))
	}
}

// backward sets each value of a plane of dx (planes x positions) to the plane's dy divided by positions.
func backward(dx, dy []float32, planes, positions int) {
	share := 1 / float32(positions)
	for p := range planes {
		g := dy[p] * share
		plane := dx[p*positions : (p+1)*positions]
		for j := range plane {
			plane[j] = g
		}
	}
}
