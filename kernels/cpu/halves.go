//go:build blas && halves

package cpu

// With the tag halves, the convolutions with 16 lanes run on processors without AVX-512, two registers for one. For tests.

// #cgo CFLAGS: -DHALVES
import "C"
