package payload

import (
	"encoding/binary"
	"math"
)

// Infinite is the first element that is not finite after decoding, though it was finite before encoding; -1: none is. top is the largest
// magnitude of the vector, as bits, so that most codecs need not look at the message.
func Infinite(c Codec, encoded []byte, top uint32) int {
	switch c := c.(type) {
	case dense:
		return c.infinite(encoded, top)
	case *sparse:
		return infinitePair(encoded)
	case *reusing:
		return infinitePair(encoded)
	}
	return -1 // values travel as they are
}

func (d dense) infinite(encoded []byte, top uint32) int {
	x, exponent, of := math.Float32frombits(top), uint16(0), uint16(0)
	switch d.name {
	case half.name:
		exponent, of = 0x7c00, toHalf(x)
	case brain.name:
		exponent, of = 0x7f80, toBrain(x)
	}
	if of < exponent || exponent == 0 { // rounding keeps the order, so no other element is infinite
		return -1
	}
	for i := 0; i+1 < len(encoded); i += d.size {
		if binary.LittleEndian.Uint16(encoded[i:])&exponent == exponent {
			return i / d.size
		}
	}
	return -1
}

// infinitePair looks at the values of pairs: those of the vector and the residual, added up.
func infinitePair(encoded []byte) int {
	for k := countBytes; k+pairBytes <= len(encoded); k += pairBytes {
		pair := binary.LittleEndian.Uint64(encoded[k:])
		if uint32(pair>>32)&0x7f800000 == 0x7f800000 {
			return int(uint32(pair))
		}
	}
	return -1
}
