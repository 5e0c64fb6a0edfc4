package payload

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// half16 and brain16 decode all 65,536 patterns by the definition of the formats.
func half16(h uint16) float64 { return binary16(h, 5, 10) }

func brain16(h uint16) float64 { return binary16(h, 8, 7) }

func binary16(h uint16, exponentBits, fractionBits int) float64 {
	sign := 1 - 2*float64(h>>15)
	exponent := int(h) >> fractionBits & (1<<exponentBits - 1)
	fraction := float64(int(h)&(1<<fractionBits-1)) / float64(int(1)<<fractionBits)
	bias := 1<<(exponentBits-1) - 1
	switch {
	case exponent == 1<<exponentBits-1 && fraction != 0:
		return math.NaN()
	case exponent == 1<<exponentBits-1:
		return sign * math.Inf(1)
	case exponent == 0:
		return math.Copysign(math.Ldexp(fraction, 1-bias), sign)
	}
	return sign * math.Ldexp(1+fraction, exponent-bias)
}

type format16 struct {
	format
	value func(uint16) float64
	infty uint16 // positive
}

var formats16 = []format16{{half, half16, 0x7c00}, {brain, brain16, 0x7f80}}

func TestEveryPatternDecodes(t *testing.T) {
	for _, f := range formats16 {
		src, dst := make([]byte, 2<<16), make([]float32, 1<<16)
		for h := range 1 << 16 {
			binary.LittleEndian.PutUint16(src[2*h:], uint16(h))
		}
		f.decode(dst, src)
		for h, got := range dst {
			want := float32(f.value(uint16(h)))
			if math.Float32bits(got) != math.Float32bits(want) && (got == got || want == want) {
				t.Fatalf("%s %#04x decodes to %v, want %v", f.name, h, got, want)
			}
		}
		back := make([]byte, len(src))
		f.encode(back, dst)
		for h := range 1 << 16 {
			if got := binary.LittleEndian.Uint16(back[2*h:]); got != uint16(h) && dst[h] == dst[h] {
				t.Fatalf("%s %#04x, which is %v, comes back as %#04x", f.name, h, dst[h], got)
			} else if dst[h] != dst[h] && !math.IsNaN(f.value(got)) {
				t.Fatalf("%s %#04x, a NaN, comes back as %#04x, which is none", f.name, h, got)
			}
		}
	}
}

// TestRoundsToNearestEven tries every number of a format and the middle to the next one, with the float32 on both sides
// of each.
func TestRoundsToNearestEven(t *testing.T) {
	for _, f := range formats16 {
		for h := uint16(0); h < f.infty; h++ {
			low, high := f.value(h), f.value(h+1)
			if math.IsInf(high, 0) { // rounding behaves as if there were one more binade
				high = 2*low - f.value(h-1)
			}
			middle := float32((low + high) / 2) // exact: these formats have few digits; not for bfloat16 below the range of float32
			exact := float64(middle) == (low+high)/2
			even := h + h&1
			for _, c := range []struct {
				x    float32
				want uint16
				skip bool
			}{
				{float32(low), h, false},
				{math.Nextafter32(middle, 0), h, false},
				{middle, even, !exact},
				{math.Nextafter32(middle, float32(math.Inf(1))), h + 1, false},
			} {
				for _, sign := range []uint16{0, 0x8000} {
					x := c.x
					if sign != 0 {
						x = -x
					}
					var got [2]byte
					f.encode(got[:], []float32{x})
					if g := binary.LittleEndian.Uint16(got[:]); g != c.want|sign && !c.skip {
						t.Fatalf("%s: %v (%#x) becomes %#04x, want %#04x", f.name, x, math.Float32bits(x), g, c.want|sign)
					}
				}
			}
		}
	}
}

// TestDenseKernelsEqualTheGoLoops, over numbers of every exponent, odd ones, NaNs, many lengths and alignments.
func TestDenseKernelsEqualTheGoLoops(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 3000 {
		n, at := rng.IntN(70), rng.IntN(9)
		src := make([]float32, n+at)[at:]
		for i := range src {
			switch rng.IntN(8) {
			case 0:
				src[i] = math.Float32frombits(0x7f800000 + rng.Uint32N(3) - 1 | rng.Uint32()&0x80000000)
			case 1:
				src[i] = math.Float32frombits(rng.Uint32N(1<<16) << 15)
			case 2:
				src[i] = math.Float32frombits(0x38000000 + rng.Uint32N(0x10000000)) // around the smallest and largest numbers of binary16
			case 3:
				src[i] = math.Float32frombits(0x33000000 + rng.Uint32N(0x6000000))
			default:
				src[i] = math.Float32frombits(rng.Uint32())
			}
		}
		for _, c := range []struct {
			format
			encodeGo func(dst []byte, src []float32)
			decodeGo func(dst []float32, src []byte)
		}{{half, encodeHalfGo, decodeHalfGo}, {brain, encodeBrainGo, decodeBrainGo}} {
			got, want := make([]byte, 2*n+at+4)[at:], make([]byte, 2*n+4)
			c.encode(got[:2*n], src)
			c.encodeGo(want[:2*n], src)
			if string(got) != string(want) {
				t.Fatalf("%s, round %d: % x, the twin gives % x, of %v", c.name, round, got, want, src)
			}
			x, y := make([]float32, n+at+1)[at:], make([]float32, n+1)
			c.decode(x[:n], want[:2*n])
			c.decodeGo(y[:n], want[:2*n])
			for i := range y {
				if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
					t.Fatalf("%s, round %d: element %d decodes to %v, the twin gives %v", c.name, round, i, x[i], y[i])
				}
			}
		}
	}
}

func TestDenseRefuses(t *testing.T) {
	for _, name := range []string{"float32", "float16", "bfloat16"} {
		c := mustNew(t, name, Params{})
		src := make([]byte, c.EncodedMax(3)+1)
		for _, n := range []int{0, len(src) - 2, len(src)} {
			if err := c.Decode(make([]float32, 3), src[:n]); err == nil || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %d bytes for 3 elements: %v", name, n, err)
			}
		}
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s took a residual", name)
				}
			}()
			c.Encode(src, make([]float32, 3), make([]float32, 3))
		}()
	}
}
