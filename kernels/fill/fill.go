// Package fill holds the kernel fill.
package fill

// value sets every element of x to v.
func value(x []float32, v float32) {
	for i := range x {
		x[i] = v
	}
}
