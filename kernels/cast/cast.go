// Package cast holds the kernels to_float16, from_float16, to_bfloat16 and from_bfloat16.
//
// A float32 word holds two halves, the first in its lower 16 bits. In the memory of a little endian
// machine the halves follow one another, 2 bytes each, as the codecs of package payload send them. After an
// odd number of halves the upper 16 bits of the last word are 0.
package cast

import "math"

// packFloat16 rounds the n elements of x to the nearest binary16 (IEEE 754-2008), ties to even, and
// writes words(n) words to h. Magnitudes from 65520 on become infinite. A NaN keeps its sign and the upper
// bits of its payload, and becomes quiet.
func packFloat16(h, x []float32, n int) { pack(h, x, n, toFloat16) }

// unpackFloat16 writes the values of n binary16 to x, exactly.
func unpackFloat16(x, h []float32, n int) { unpack(x, h, n, fromFloat16) }

// packBFloat16 rounds the n elements of x to the nearest number whose lower 16 bits are zero, ties to even,
// and writes the upper halves to h. A NaN keeps its upper bits, and becomes quiet.
func packBFloat16(h, x []float32, n int) { pack(h, x, n, toBFloat16) }

// unpackBFloat16 writes the values of n bfloat16 to x, exactly.
func unpackBFloat16(x, h []float32, n int) { unpack(x, h, n, fromBFloat16) }

// words returns how many float32 words n halves take.
func words(n int) int { return (n + 1) / 2 }

func pack(h, x []float32, n int, round func(bits uint32) uint32) {
	for i := range n / 2 {
		low, high := round(math.Float32bits(x[2*i])), round(math.Float32bits(x[2*i+1]))
		h[i] = math.Float32frombits(low | high<<16)
	}
	if n%2 == 1 {
		h[n/2] = math.Float32frombits(round(math.Float32bits(x[n-1])))
	}
}

func unpack(x, h []float32, n int, value func(half uint32) uint32) {
	for i := range n {
		x[i] = math.Float32frombits(value(math.Float32bits(h[i/2]) >> (16 * (i % 2)) & 0xffff))
	}
}

func toFloat16(b uint32) uint32 {
	sign, m := b>>16&0x8000, b&0x7fffffff
	switch {
	case m > 0x7f800000: // NaN
		return sign | 0x7e00 | m>>13&0x3ff
	case m >= 0x47800000: // 65536; a smaller number that rounds up to it becomes infinite below
		return sign | 0x7c00
	case m >= 0x38800000: // 2^-14, the smallest normal number; the exponent's bias is 112 less
		return sign | (m-112<<23+0xfff+m>>13&1)>>13
	}
	// Subnormal numbers are multiples of 2^-24. That is the last bit of the sum, so the addition rounds correctly.
	return sign | (math.Float32bits(math.Float32frombits(m)+0.5) - math.Float32bits(0.5))
}

func fromFloat16(h uint32) uint32 {
	sign, exponent, m := h&0x8000<<16, h>>10&0x1f, h&0x3ff
	switch {
	case exponent == 0x1f && m != 0:
		return sign | 0x7fc00000 | m<<13
	case exponent == 0x1f:
		return sign | 0x7f800000
	case exponent == 0:
		return sign | math.Float32bits(float32(m)*0x1p-24)
	}
	return sign | (exponent+112)<<23 | m<<13
}

func toBFloat16(b uint32) uint32 {
	if b&0x7fffffff > 0x7f800000 { // NaN
		return b>>16 | 0x40
	}
	return (b + 0x7fff + b>>16&1) >> 16
}

func fromBFloat16(h uint32) uint32 { return h << 16 }
