// Package axpy is the Go twin of the kernels axpy and scale.
package axpy

// Add adds a times the first n elements of x to those of y. A product is rounded before it is added.
func Add(y, x []float32, a float32, n int) {
	y = y[:n]
	for i, v := range x[:n] {
		y[i] += float32(a * v)
	}
}

// Scale sets the first n elements of y to a times those of x. y may be x.
func Scale(y, x []float32, a float32, n int) {
	y = y[:n]
	for i, v := range x[:n] {
		y[i] = a * v
	}
}
