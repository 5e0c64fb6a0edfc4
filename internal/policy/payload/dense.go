package payload

import (
	"encoding/binary"
	"fmt"
	"math"
)

// format describes how a dense codec writes one element.
type format struct {
	name   string
	size   int // bytes
	encode func(dst []byte, src []float32)
	decode func(dst []float32, src []byte)
}

var (
	full  = format{"float32", 4, encodeFull, decodeFull}
	half  = format{"float16", 2, encodeHalf, decodeHalf}
	brain = format{"bfloat16", 2, encodeBrain, decodeBrain}
)

// dense writes every element in one format.
type dense struct{ format }

func (d dense) EncodedMax(n int) int { return n * d.size }

func (d dense) Encode(dst []byte, src, residual []float32) int {
	if residual != nil {
		panic(fmt.Sprintf("payload: %s takes no residual", d.name))
	}
	n := len(src) * d.size
	d.encode(dst[:n], src)
	return n
}

func (d dense) Decode(dst []float32, src []byte) error {
	if len(src) != len(dst)*d.size {
		return fmt.Errorf("payload %s: received %d bytes for %d elements of %d bytes; both sides must have the same payload and shards",
			d.name, len(src), len(dst), d.size)
	}
	d.decode(dst, src)
	return nil
}

func encodeFull(dst []byte, src []float32) {
	for i, x := range src {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
	}
}

func decodeFull(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
	}
}

// The loops below run on machines without our vector kernels, and are the reference that the kernels equal.

func encodeHalfGo(dst []byte, src []float32) {
	for i, x := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], toHalf(x))
	}
}

func decodeHalfGo(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = fromHalf(binary.LittleEndian.Uint16(src[2*i:]))
	}
}

func encodeBrainGo(dst []byte, src []float32) {
	for i, x := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], toBrain(x))
	}
}

func decodeBrainGo(dst []float32, src []byte) {
	for i := range dst {
		dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
	}
}

// toHalf rounds to the nearest binary16, ties to even. A NaN keeps its sign and the upper bits of its payload.
func toHalf(x float32) uint16 {
	b := math.Float32bits(x)
	sign, m := uint16(b>>16)&0x8000, b&0x7fffffff
	switch {
	case m > 0x7f800000:
		return sign | 0x7e00 | uint16(m>>13)&0x3ff
	case m >= 0x47800000: // 65536; the next case rounds values just below up to infinity
		return sign | 0x7c00
	case m >= 0x38800000: // 2^-14, the smallest normal number; its exponent bias is smaller by 112
		return sign | uint16((m-112<<23+0xfff+m>>13&1)>>13)
	}
	// Smaller numbers are multiples of 2^-24. The last bit of the sum has that value, so the addition rounds as wanted.
	return sign | uint16(math.Float32bits(math.Float32frombits(m)+0.5)-math.Float32bits(0.5))
}

// fromHalf is exact.
func fromHalf(h uint16) float32 {
	sign, exponent, m := uint32(h&0x8000)<<16, h>>10&0x1f, uint32(h&0x3ff)
	switch {
	case exponent == 0x1f && m != 0:
		return math.Float32frombits(sign | 0x7fc00000 | m<<13)
	case exponent == 0x1f:
		return math.Float32frombits(sign | 0x7f800000)
	case exponent == 0:
		return math.Float32frombits(sign | math.Float32bits(float32(m)*0x1p-24))
	}
	return math.Float32frombits(sign | uint32(exponent+112)<<23 | m<<13)
}

// toBrain rounds to the nearest number with the lower 16 bits zero, ties to even. A NaN stays a NaN.
func toBrain(x float32) uint16 {
	b := math.Float32bits(x)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}
