package text

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
)

// A number has the bits that strconv gives it, on the fast way and on the other one.
func TestDecimalsAreThoseOfStrconv(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	for range 200000 {
		text := strconv.FormatFloat((draw.Float64()-0.5)*math.Pow(10, float64(draw.IntN(12)-6)), "fge"[draw.IntN(3)], draw.IntN(18)-1, 64)
		want, err := strconv.ParseFloat(text, 64)
		if got, ok := Decimal(text); err != nil || !ok || math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%s is %v, %v; want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{"-0", "0", "000000000000000000001", "999999999999999", "9999999999999999",
		"123456789012345.", ".123456789012345", "-.5"} {
		want, _ := strconv.ParseFloat(text, 64)
		if got, ok := Decimal(text); !ok || math.Float64bits(got) != math.Float64bits(want) {
			t.Errorf("%s is %v, %v; want %v", text, got, ok, want)
		}
	}
}
