package cast

import (
	"fmt"
	"math"
	"math/rand/v2"

	"fluentps/kernels/kernel"
)

// format16 is a binary floating point format of 16 bits.
type format16 struct {
	exponentBits, fractionBits int
	nan                        func(bits uint32) uint32 // rounds a NaN, both as bits
}

var (
	float16  = format16{5, 10, func(b uint32) uint32 { return b>>16&0x8000 | 0x7e00 | b>>13&0x3ff }}
	bfloat16 = format16{8, 7, func(b uint32) uint32 { return b>>16 | 0x40 }}
)

func (f format16) infinity() uint32 { return (1<<f.exponentBits - 1) << f.fractionBits }

// exponentMin is the exponent of the smallest normal number.
func (f format16) exponentMin() int { return 2 - 1<<(f.exponentBits-1) }

// round defines the correct result: the nearest multiple of the unit in the last place, ties to even.
func (f format16) round(x float32) uint32 {
	bits := math.Float32bits(x)
	sign, a := bits>>16&0x8000, math.Abs(float64(x))
	switch {
	case math.IsNaN(a):
		return f.nan(bits)
	case a == 0:
		return sign
	case math.IsInf(a, 0):
		return sign | f.infinity()
	}
	e := max(math.Ilogb(a), f.exponentMin())
	units := math.RoundToEven(math.Ldexp(a, f.fractionBits-e))
	return sign | min(uint32(e-f.exponentMin())<<f.fractionBits+uint32(units), f.infinity())
}

// value returns the float32 that the pattern h encodes, as bits.
func (f format16) value(h uint32) uint32 {
	sign, field, fraction := h&0x8000<<16, int(h>>f.fractionBits)&(1<<f.exponentBits-1), h&(1<<f.fractionBits-1)
	e := field - 1 + f.exponentMin()
	switch {
	case field == 1<<f.exponentBits-1 && fraction != 0 && f.fractionBits == 10:
		return sign | 0x7fc00000 | fraction<<13 // a signalling NaN becomes quiet; the upper half of a float32 stays as it is
	case field == 1<<f.exponentBits-1:
		return sign | 0x7f800000 | fraction<<(23-f.fractionBits)
	case field == 0:
		e = f.exponentMin()
	default:
		fraction += 1 << f.fractionBits
	}
	return sign | math.Float32bits(float32(math.Ldexp(float64(fraction), e-f.fractionBits)))
}

// packCases include values next to each pattern's value and half-way between two neighbours.
func packCases(f format16) (cases []kernel.Case) {
	for _, n := range kernel.Lengths {
		cases = append(cases, packCase(f, sample(n)))
	}
	return append(cases, packCase(f, f.edges()))
}

// unpackCases include every pattern.
func unpackCases(f format16) (cases []kernel.Case) {
	for _, n := range kernel.Lengths {
		values := sample(n)
		cases = append(cases, unpackCase(f, n, func(i int) uint32 { return f.round(values[i]) }))
	}
	return append(cases, unpackCase(f, 1<<16, func(i int) uint32 { return uint32(i) }))
}

// sample returns n values that cover the range of float16, including its subnormal numbers, and go beyond it.
func sample(n int) []float32 {
	values := make([]float32, n)
	r := rand.New(rand.NewPCG(40, uint64(n)))
	for i := range values {
		values[i] = float32(math.Ldexp(r.Float64()-0.5, r.IntN(60)-40))
	}
	return values
}

// edges returns the values of some patterns and the middles between neighbours, each with the float32 on both sides and
// with both signs. It adds values that overflow, and NaN.
func (f format16) edges() []float32 {
	bits := []uint32{0, 1, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fc00000, 0x7fffe000, 0x477fefff, 0x477ff000, 0x47800000, 0x7f7f7fff, 0x7f7f8000}
	for h := uint32(0); h < f.infinity(); h += 13 {
		if low := f.value(h); low > 0 {
			bits = append(bits, low-1, low, low+1)
		}
	}
	for _, h := range []uint32{0, 1, 2, 1<<f.fractionBits - 1, 1 << f.fractionBits, 1<<f.fractionBits + 1, 0x2a01, 0x3802, f.infinity() - 2} {
		low, high := math.Float32frombits(f.value(h)), math.Float32frombits(f.value(h+1))
		middle := math.Float32bits(float32((float64(low) + float64(high)) / 2))
		bits = append(bits, middle-1, middle, middle+1)
	}
	values := make([]float32, 0, 2*len(bits)+1)
	for _, b := range bits {
		values = append(values, math.Float32frombits(b), math.Float32frombits(b|1<<31))
	}
	return append(values, 1) // for an odd count
}

func packCase(f format16, values []float32) kernel.Case {
	n := len(values)
	c := kernel.Case{Name: fmt.Sprintf("n=%d", n), Sizes: kernel.Sizes{n}}
	halves := make([]uint32, n)
	for i, x := range values {
		halves[i] = f.round(x)
	}
	c.In[0], c.In[1], c.Bits[1] = values, kernel.NaNs((n+1)/2), packed(halves)
	return c
}

func unpackCase(f format16, n int, half func(i int) uint32) kernel.Case {
	c := kernel.Case{Name: fmt.Sprintf("n=%d", n), Sizes: kernel.Sizes{n}}
	halves, values := make([]uint32, n), make([]uint32, n)
	for i := range halves {
		halves[i] = half(i)
		values[i] = f.value(halves[i])
	}
	c.In[0], c.In[1], c.Bits[1] = floats(packed(halves)), kernel.NaNs(n), values
	return c
}

// packed puts two halves into each word, the first in the lower bits.
func packed(halves []uint32) []uint32 {
	words := make([]uint32, (len(halves)+1)/2)
	for i, h := range halves {
		words[i/2] |= h << (16 * (i % 2))
	}
	return words
}

func floats(bits []uint32) []float32 {
	x := make([]float32, len(bits))
	for i, b := range bits {
		x[i] = math.Float32frombits(b)
	}
	return x
}
