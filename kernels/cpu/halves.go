//go:build blas && halves

package cpu

// With the tag halves, the convolutions with 16 lanes run on processors without AVX-512, with two registers in place of one.
// The tag is for tests.

// #cgo CFLAGS: -DHALVES
import "C"
