package optim

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// odd are numbers that reveal arithmetic which is only nearly right.
var odd = []float32{
	0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -math.SmallestNonzeroFloat32, 1.1754944e-38,
	1.1754942e-38, 3e-39, 16777217,
}

func anyFloat(t *rapid.T, what string) float32 {
	if rapid.IntRange(0, 3).Draw(t, what+" is odd") == 0 {
		return rapid.SampledFrom(odd).Draw(t, what)
	}
	return rapid.Float32().Draw(t, what)
}

// anyVector has n elements at any distance from an aligned address. After them is memory that a pass must not touch; see behind.
func anyVector(t *rapid.T, n int, what string) []float32 {
	at := rapid.IntRange(0, 9).Draw(t, what+" at")
	seed := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float32 { return anyFloat(t, what) }), 1, 23).Draw(t, what)
	v := make([]float32, at+n+16)
	for i := range v {
		v[i] = seed[i%len(seed)] * float32(1+i/len(seed))
	}
	return v[at : at+n]
}

// behind is the memory after a vector.
func behind(v []float32) []float32 { return v[len(v) : len(v)+16] }

// bitsDiffer finds the first element whose bits differ in two vectors. All NaNs count as equal.
func bitsDiffer(a, b []float32) int {
	return slices.IndexFunc(indices(len(a)), func(i int) bool {
		return math.Float32bits(a[i]) != math.Float32bits(b[i]) && !(a[i] != a[i] && b[i] != b[i])
	})
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

func copyOf(v []float32) []float32 {
	return append([]float32(nil), v[:len(v)+16]...)[:len(v)]
}

// TestPassesEqualTheirTwins: the passes with vector instructions give the bits of the plain loops, for every length, alignment and
// number, in place or not, and touch nothing after the end. They return the largest magnitude that they wrote.
func TestPassesEqualTheirTwins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(t, "n")
		var x [4]float32
		for i := range x {
			x[i] = anyFloat(t, fmt.Sprint("scalar ", i))
		}
		stream := false
		a, b, m := anyVector(t, n, "a"), anyVector(t, n, "b"), anyVector(t, n, "m")
		for _, c := range []struct {
			name string
			pass func(dst, a, b, m []float32) (top uint32)
			twin func(dst, a, b, m []float32)
		}{
			{"scale", func(dst, a, _, _ []float32) uint32 { return scalePass(dst, a, x[0]) },
				func(dst, a, _, _ []float32) { scaleGo(dst, a, x[0]) }},
			{"sum", func(dst, a, b, _ []float32) uint32 { return sumPass(dst, a, b, x[0], stream) },
				func(dst, a, b, _ []float32) { sumGo(dst, a, b, x[0]) }},
			{"blend", func(dst, a, b, _ []float32) uint32 { return blendPass(dst, a, b, x[0], x[1]) },
				func(dst, a, b, _ []float32) { blendGo(dst, a, b, x[0], x[1]) }},
			{"sgd", func(dst, a, b, _ []float32) uint32 { return sgdPass(dst, a, b, x[0], x[1], x[2], stream) },
				func(dst, a, b, _ []float32) { sgdGo(dst, a, b, x[0], x[1], x[2]) }},
			{"momentum", func(dst, a, b,
				m []float32) uint32 {
				return momentumPass(dst, a, b, m, x[0], x[1], x[2], x[3], stream)
			}, func(dst, a, b, m []float32) { momentumGo(dst, a, b, m, x[0], x[1], x[2], x[3]) }},
			{"nesterov", func(dst, a, b,
				m []float32) uint32 {
				return nesterovPass(dst, a, b, m, x[0], x[1], x[2], x[3], stream)
			}, func(dst, a, b, m []float32) { nesterovGo(dst, a, b, m, x[0], x[1], x[2], x[3]) }},
		} {
			for _, how := range []struct{ inPlace, stream bool }{{false, false}, {true, false}, {false, true}} {
				inPlace := how.inPlace
				stream = how.stream
				run := func(f func(dst, a, b, m []float32)) (dst, state []float32) {
					src := copyOf(a)
					if dst = src; !inPlace {
						dst = copyOf(m)
					}
					state = copyOf(m)
					f(dst, src, b, state)
					return dst, state
				}
				var top uint32
				got, gotM := run(func(dst, a, b, m []float32) { top = c.pass(dst, a, b, m) })
				if want := topGo(got); top != want || topPass(got) != want {
					t.Fatalf("%s, in place %v: the largest magnitude of %d elements is %x, a look at them gives %x (vectors) and "+
						"%x (twin)", c.name, inPlace, n, top, topPass(got), want)
				}
				want, wantM := run(c.twin)
				if i := bitsDiffer(got, want); i >= 0 {
					t.Fatalf("%s, in place %v: element %d of %d is %v, the twin gives %v", c.name, inPlace, i, n, got[i], want[i])
				}
				if i := bitsDiffer(gotM, wantM); i >= 0 {
					t.Fatalf("%s, in place %v: state %d of %d is %v, the twin gives %v", c.name, inPlace, i, n, gotM[i], wantM[i])
				}
				if bitsDiffer(behind(got), behind(want)) >= 0 || bitsDiffer(behind(gotM), behind(wantM)) >= 0 {
					t.Fatalf("%s of %d elements writes after the end", c.name, n)
				}
			}
		}
	})
}

// TestNormsEqualTheirTwin: the sums of squares are added in one order on all machines.
func TestNormsEqualTheirTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 200).Draw(t, "n")
		push, params := anyVector(t, n, "push"), anyVector(t, n, "params")
		var got, want lanes
		normsPass(push, params, &got)
		normsGo(push, params, &want)
		for i := range got.push {
			for _, c := range [][2]float64{{got.push[i], want.push[i]}, {got.params[i], want.params[i]}} {
				if math.Float64bits(c[0]) != math.Float64bits(c[1]) && !(c[0] != c[0] && c[1] != c[1]) {
					t.Fatalf("lane %d: %v, the twin gives %v", i, c[0], c[1])
				}
			}
			if got.top[i] != want.top[i] {
				t.Fatalf("lane %d: magnitude %x, the twin gives %x", i, got.top[i], want.top[i])
			}
		}
	})
}
