package numpy

import (
	"math"
	"testing"
)

func TestHalf(t *testing.T) {
	for bits, want := range map[uint16]float64{0: 0, 0x3c00: 1, 0xc000: -2, 0x7bff: 65504, 1: 0x1p-24, 0x8001: -0x1p-24, 0x0400: 0x1p-14,
		0x3555: 0.333251953125, 0x7c00: math.Inf(1), 0xfc00: math.Inf(-1)} {
		if got := float64(Half(bits)); got != want {
			t.Errorf("%#04x is %g, want %g", bits, got, want)
		}
	}
	if v := float64(Half(0x7c01)); !math.IsNaN(v) {
		t.Errorf("a NaN is %g", v)
	}
}
