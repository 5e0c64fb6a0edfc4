//go:build !purego

package orthogonal

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// eachSet calls f with the vector instructions of this machine: all of them, those of AVX2, and none.
func eachSet(f func(name string)) {
	wide, narrow := hasAVX512, hasAVX2
	defer func() { hasAVX512, hasAVX2 = wide, narrow }()
	if wide {
		f("AVX-512")
	}
	if hasAVX512 = false; narrow {
		f("AVX2")
	}
	hasAVX2 = false
	f("Go")
}

// TestATileEqualsItsTwin: to the bit, also with infinities and tiny numbers, and nothing beside the tile is written.
func TestATileEqualsItsTwin(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for terms := 1; terms < 40; terms++ {
		const stride = tileCols + 5
		left, right, start := gaussian(rng, terms*tileRows), gaussian(rng, terms*tileCols), gaussian(rng, tileRows*stride)
		if terms%5 == 0 {
			left[0], right[3] = float32(math.Inf(1)), math.SmallestNonzeroFloat32
		}
		want := append([]float32(nil), start...)
		tileGo(want, stride, left, right)
		eachSet(func(name string) {
			dst := append([]float32(nil), start...)
			tile(dst, stride, left, right)
			for i := range dst {
				if a, b := math.Float32bits(dst[i]), math.Float32bits(want[i]); a != b && (dst[i] == dst[i] || want[i] == want[i]) {
					t.Fatalf("%s, %d terms: element %d is %v, its twin %v", name, terms, i, dst[i], want[i])
				}
			}
		})
	}
}

func BenchmarkMake(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, form := range [][2]int{{128, 784}, {512, 512}, {2048, 2048}} {
		eachSet(func(name string) {
			if name == "Go" && form[0] > 512 {
				return
			}
			b.Run(fmt.Sprintf("%dx%d/%s", form[0], form[1], name), func(b *testing.B) {
				m, start, x := NewMaker(), gaussian(rng, form[0]*form[1]), make([]float32, form[0]*form[1])
				for b.Loop() {
					copy(x, start)
					m.Make(x, form[0], form[1])
				}
				r, c := float64(min(form[0], form[1])), float64(max(form[0], form[1]))
				b.ReportMetric(5*(3*r*r*c+r*r*r)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFlop/s")
			})
		})
	}
}
