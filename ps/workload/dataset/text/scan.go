package text

import (
	"encoding/binary"
	"math"
)

// tens are the powers of ten that float64 has exactly.
var tens = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
	1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// exactMax is the integer up to which float64 has all.
const exactMax = 1 << 53

// Scan reads a plain decimal number at the beginning of b: an optional sign, digits with or without a point, and an optional exponent. end
// is where it ends; 0: there is none, or it is not plain, and another way must read it. If isExact is false, v may be off by 2 units
// in the last place.
func Scan(b []byte, point byte) (v float64, end int, isExact bool) {
	i := 0
	negative := false
	if len(b) > 0 && (b[0] == '-' || b[0] == '+') {
		negative, i = b[0] == '-', 1
	}
	from := i
	for i < len(b) && b[i] == '0' {
		i++
	}
	zeros := i - from
	mantissa, i := digits(b, i, 0)
	number, fraction := i-from, 0
	if i < len(b) && b[i] == point {
		start := i + 1
		if i = start; mantissa == 0 {
			for i < len(b) && b[i] == '0' {
				i++
			}
			zeros += i - start
		}
		mantissa, i = digits(b, i, mantissa)
		fraction = i - start
	}
	if number += fraction; number == 0 || number-zeros > 19 {
		return 0, 0, false
	}
	power := -fraction
	if i < len(b) && b[i]|0x20 == 'e' {
		var exponent int
		if exponent, i = exponentOf(b, i+1); i == 0 {
			return 0, 0, false
		}
		power += exponent
	}
	v, isExact = float64(mantissa), mantissa <= exactMax
	switch {
	case power == 0:
	case power < 0 && power > -len(tens):
		v /= tens[-power]
	case power > 0 && power < len(tens):
		v *= tens[power]
	case power < 0 && power > 2-2*len(tens):
		v, isExact = v/tens[len(tens)-1]/tens[-power-len(tens)+1], false
	default:
		return 0, 0, false
	}
	if negative {
		v = -v
	}
	return v, i, isExact
}

// digits adds the decimal digits at b[i:] to a number, which may overflow if there are more than 19. It returns where they end.
func digits(b []byte, i int, number uint64) (uint64, int) {
	for i+8 <= len(b) {
		word := binary.LittleEndian.Uint64(b[i:])
		if word&0xF0F0F0F0F0F0F0F0|(word+0x0606060606060606)&0xF0F0F0F0F0F0F0F0>>4 != 0x3333333333333333 {
			break
		}
		word -= 0x3030303030303030
		word = word*10 + word>>8 // pairs of digits in every other byte
		word = (word&0x000000FF000000FF*0x000F424000000064 + word>>16&0x000000FF000000FF*0x0000271000000001) >> 32
		number, i = number*100_000_000+word, i+8
	}
	for ; i < len(b); i++ {
		digit := b[i] - '0'
		if digit > 9 {
			break
		}
		number = number*10 + uint64(digit)
	}
	return number, i
}

// exponentOf reads a sign and up to 3 digits. It returns where they end; 0: there is no such exponent.
func exponentOf(b []byte, i int) (exponent, end int) {
	negative := false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		negative = b[i] == '-'
		i++
	}
	from := i
	for ; i < len(b) && b[i]-'0' <= 9 && i-from <= 3; i++ {
		exponent = exponent*10 + int(b[i]-'0')
	}
	if i == from || i-from > 3 {
		return 0, 0
	}
	if negative {
		exponent = -exponent
	}
	return exponent, i
}

// Single rounds to float32 a value that Scan has read. ok is false where the units that Scan may be off could round it another way, and
// for values that float32 has not with all its digits.
func Single(v float64, isExact bool) (f float32, ok bool) {
	const half, off = 1 << 28, 8 // of the bits that float32 drops
	if !isExact {
		if low := int64(math.Float64bits(v) & (2*half - 1)); low > half-off && low < half+off {
			return 0, false
		}
	}
	if a := math.Abs(v); a > math.MaxFloat32 || a < 1.2e-38 && a > 0 {
		return 0, false
	}
	return float32(v), true
}
