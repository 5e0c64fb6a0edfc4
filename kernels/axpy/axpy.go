// Package axpy holds the kernels axpy and scale.
package axpy

// add adds a times the first n elements of x to those of y. Each product is rounded before it is added.
func add(y, x []float32, a float32, n int) {
	y = y[:n]
	for i, v := range x[:n] {
		y[i] += float32(a * v)
	}
}

// scale sets the first n elements of y to a times those of x. y may be x.
func scale(y, x []float32, a float32, n int) {
	y = y[:n]
	for i, v := range x[:n] {
		y[i] = a * v
	}
}
