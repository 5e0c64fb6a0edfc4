package text

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// A number has the bits that strconv and rounding to float32 give it, or is left to them.
func TestNumbersAreThoseOfStrconv(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	taken := 0
	check := func(text string, scale float64) {
		exact, err := strconv.ParseFloat(text, 64)
		v, end, isExact := Scan([]byte(text+",1"), '.')
		if end == 0 {
			return
		}
		if err != nil || end != len(text) {
			t.Fatalf("%s: %v, read to %d", text, err, end)
		}
		if isExact && math.Float64bits(v) != math.Float64bits(exact) {
			t.Fatalf("%s is %v, want %v", text, v, exact)
		}
		f, ok := Single(v/scale, isExact)
		if !ok {
			return
		}
		taken++
		if want := float32(exact / scale); math.Float32bits(f) != math.Float32bits(want) {
			t.Fatalf("%s / %v is %v, want %v", text, scale, f, want)
		}
	}
	for range 300_000 {
		v := (draw.Float64() - 0.5) * math.Pow(10, float64(draw.IntN(40)-20))
		scale := []float64{1, 255, 3e-7}[draw.IntN(3)]
		check(strconv.FormatFloat(v, "fge"[draw.IntN(3)], draw.IntN(20)-1, 64), scale)
		near := float64(math.Float32frombits(draw.Uint32()&0x3fffffff|0x20000000)) * (1 + 0x1p-24) // half way between two float32
		check(strconv.FormatFloat(near, 'g', 14+draw.IntN(7), 64), 1)
	}
	if taken < 530_000 {
		t.Errorf("only %d numbers were read the short way", taken)
	}
	for _, text := range []string{"-0", "0", "0000000000000000001", "9007199254740993", "9999999999999999999", "1234567890123456789.",
		".1234567890123456789", "-.5", "+5.", "1e22", "1e-22", "12345678", "1234567890123456", "1.5E+3", "16777217", "33554435"} {
		check(text, 1)
	}
	for _, text := range []string{"", "-", ".", "e5", "1e", "1e+", "x", "--1", "1e1234", strings.Repeat("1", 20)} {
		if v, end, _ := Scan([]byte(text), '.'); end != 0 {
			t.Errorf("%q is read as %v, to %d", text, v, end)
		}
	}
}
