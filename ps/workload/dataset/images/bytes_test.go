package images

import (
	"math"
	"testing"
)

func TestChannelMoments(t *testing.T) {
	p := &Bytes{data: []byte{1, 3, 10, 10, 20, 0, 5, 7, 10, 30, 20, 200}, y: []int32{0, 1}, image: Shape{3, 1, 2}}
	counts := make([][256]int, 3)
	for r := range 2 {
		count(counts, p.Raw(r))
	}
	for c, want := range [][2]float64{{4, math.Sqrt(5)}, {15, math.Sqrt(75)}, {60, math.Sqrt((1600 + 3600 + 1600 + 140*140) / 4.0)}} {
		if mean, std := moments(&counts[c]); math.Abs(mean-want[0]) > 1e-12 || math.Abs(std-want[1]) > 1e-12 {
			t.Errorf("channel %d has mean %g and deviation %g, want %v", c, mean, std, want)
		}
	}
}
