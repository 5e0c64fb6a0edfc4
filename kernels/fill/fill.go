// Package fill is the Go twin of the kernel fill.
package fill

// Value sets every element of x to v.
func Value(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}
