package payload

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func mustNew(t testing.TB, name string, p Params) Codec {
	t.Helper()
	c, err := New(name, p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// The bytes themselves are the contract between builds.
func TestLayout(t *testing.T) {
	src := []float32{1, -2.5, 0.25, 3}
	for _, c := range []struct {
		name string
		p    Params
		want string
	}{
		{"float32", Params{}, "0000803f" + "000020c0" + "0000803e" + "00004040"},
		{"float16", Params{}, "003c" + "00c1" + "0034" + "0042"},
		{"bfloat16", Params{}, "803f" + "20c0" + "803e" + "4040"},
		{"topk", Params{Ratio: 0.5}, "02000000" + "01000000" + "000020c0" + "03000000" + "00004040"},
		{"threshold", Params{Ratio: 1, Threshold: 1}, "02000000" + "01000000" + "000020c0" + "03000000" + "00004040"},
		{"threshold", Params{Ratio: 1, Threshold: 7}, "00000000"},
		{"threshold", Params{Ratio: 0.25, Threshold: 1}, "01000000" + "03000000" + "00004040"},
	} {
		codec := mustNew(t, c.name, c.p)
		dst := bytes.Repeat([]byte{0xAA}, codec.EncodedMax(len(src))+1)
		n := codec.Encode(dst, src, nil)
		if got := hex.EncodeToString(dst[:n]); got != c.want {
			t.Errorf("%s %+v: %s, want %s", c.name, c.p, got, c.want)
		}
		if dst[len(dst)-1] != 0xAA {
			t.Errorf("%s %+v: Encode wrote past EncodedMax", c.name, c.p)
		}
	}
}

// TestLosslessCodecsRoundTrip holds the table to the truth about which codecs are lossy.
func TestLosslessCodecsRoundTrip(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	src := make([]float32, 1000)
	for i := range src {
		src[i] = float32(rng.NormFloat64())
	}
	for _, e := range All {
		c := mustNew(t, e.Name, Params{Ratio: 0.1, Threshold: 1})
		wire, got := make([]byte, c.EncodedMax(len(src))), make([]float32, len(src))
		n := c.Encode(wire, src, nil)
		if err := c.Decode(got, wire[:n]); err != nil {
			t.Fatal(err)
		}
		if sameBits(got, src) == e.Lossy {
			t.Errorf("%s: lossy is %v in the table", e.Name, e.Lossy)
		}
	}
}

// chosen is the definition of both sparse codecs.
func chosen(v []float32, most int, cut bool, threshold float32) map[int]bool {
	order := make([]int, 0, len(v))
	for i, x := range v {
		if !cut || x != x || float32(math.Abs(float64(x))) > threshold {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(int64(magnitude(v[b])) - int64(magnitude(v[a]))) })
	set := map[int]bool{}
	for _, i := range order[:min(most, len(order))] {
		set[i] = true
	}
	return set
}

// TestSparseSendsWhatTheDefinitionSays, with ties, zeros, infinities and NaNs, with a residual and without.
func TestSparseSendsWhatTheDefinitionSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOfN(rapid.OneOf(
			rapid.SampledFrom([]float32{0, 1, -1, 2, float32(math.Inf(1)), float32(math.NaN()), float32(math.Copysign(0, -1)), 1e-45, 1.0000001}),
			rapid.Float32()), 0, 120).Draw(t, "src")
		ratio, threshold := rapid.SampledFrom([]float64{1e-9, 0.01, 0.1, 0.5, 1}).Draw(t, "ratio"),
			rapid.SampledFrom([]float64{0, 0.5, 1, 1e30}).Draw(t, "threshold")
		name := rapid.SampledFrom([]string{"topk", "threshold"}).Draw(t, "codec")
		c, err := New(name, Params{Ratio: ratio, Threshold: threshold})
		if err != nil {
			t.Fatal(err)
		}
		v := slices.Clone(src)
		var residual []float32
		if rapid.Bool().Draw(t, "residual") {
			residual = make([]float32, len(src))
			for i := range residual {
				residual[i] = rapid.SampledFrom([]float32{0, 1, -3, 0.5}).Draw(t, "kept")
				v[i] = residual[i] + src[i]
			}
		}
		most := min(len(src), int(math.Ceil(ratio*float64(len(src)))))
		want := chosen(v, most, name == "threshold", float32(threshold))

		before, wire := slices.Clone(src), make([]byte, c.EncodedMax(len(src)))
		n := c.Encode(wire, src, residual)
		if n != 4+8*len(want) || c.EncodedMax(len(src)) != 4+8*most {
			t.Fatalf("%d bytes of %d, want %d of %d", n, c.EncodedMax(len(src)), 4+8*len(want), 4+8*most)
		}
		if !sameBits(src, before) {
			t.Fatal("the vector was changed")
		}
		got := []float32{9}
		got = slices.Repeat(got, len(src)) // decoding must overwrite
		if err := c.Decode(got, wire[:n]); err != nil {
			t.Fatal(err)
		}
		for i, x := range v {
			sent, kept := x, float32(0)
			if !want[i] {
				sent, kept = 0, x
			}
			if math.Float32bits(got[i]) != math.Float32bits(sent) {
				t.Fatalf("element %d is %v of %v, want %v", i, got[i], v, sent)
			}
			if residual != nil && math.Float32bits(residual[i]) != math.Float32bits(kept) {
				t.Fatalf("residual %d is %v of %v, want %v", i, residual[i], v, kept)
			}
		}
	})
}

// TestNothingIsLost: over many vectors, the decoded values plus the residual are the sum of all vectors, exactly where
// additions are exact; and with too many elements above the threshold, none waits for ever.
func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 60).Draw(t, "n")
		name := rapid.SampledFrom([]string{"topk", "threshold"}).Draw(t, "codec")
		ratio := rapid.SampledFrom([]float64{0.02, 0.3, 1}).Draw(t, "ratio")
		c, err := New(name, Params{Ratio: ratio, Threshold: 3})
		if err != nil {
			t.Fatal(err)
		}
		residual, received, sum := make([]float32, n), make([]float32, n), make([]float32, n)
		one, wire := make([]float32, n), make([]byte, c.EncodedMax(n))
		take := func(src []float32) {
			k := c.Encode(wire, src, residual)
			if err := c.Decode(one, wire[:k]); err != nil {
				t.Fatal(err)
			}
			for i := range received {
				received[i] += one[i]
				sum[i] += src[i]
			}
		}
		integer := rapid.Map(rapid.IntRange(-8, 8), func(i int) float32 { return float32(i) })
		for range rapid.IntRange(1, 20).Draw(t, "vectors") {
			take(rapid.SliceOfN(integer, n, n).Draw(t, "vector"))
			for i := range sum {
				if received[i]+residual[i] != sum[i] {
					t.Fatalf("element %d: %v received and %v in the residual, of %v", i, received[i], residual[i], sum[i])
				}
			}
		}
		for range n { // every message sends at least one element
			take(make([]float32, n))
		}
		for i, kept := range residual {
			if name == "topk" && kept != 0 || kept > 3 || kept < -3 {
				t.Fatalf("%v of element %d was never sent", kept, i)
			}
		}
	})
}

func TestSparseRefusesDamage(t *testing.T) {
	c := mustNew(t, "topk", Params{Ratio: 0.5})
	good := make([]byte, c.EncodedMax(6))
	if n := c.Encode(good, []float32{1, 2, 3, 4, 5, 6}, nil); n != len(good) {
		t.Fatalf("%d bytes, want %d", n, len(good))
	}
	edit := func(at int, v byte) []byte {
		b := slices.Clone(good)
		b[at] = v
		return b
	}
	for _, d := range []struct {
		what string
		src  []byte
		want string
	}{
		{"no count", good[:3], "received 3 bytes"},
		{"too many", edit(0, 4), "received 4 of 6 elements, but ratio 0.5 allows 3"},
		{"far too many", edit(3, 0xff), "allows 3"},
		{"more pairs than bytes", good[:len(good)-1], "received 23 bytes for 3 pairs"},
		{"fewer pairs than bytes", edit(0, 2), "received 24 bytes for 2 pairs"},
		{"index out of range", edit(4+16, 6), "received index 6 as pair 2; want 5 to 5"},
		{"index twice", edit(4+8, 3), "received index 3 as pair 1; want 4 to 5"},
		{"index far out of range", edit(4+7+8-4, 0x80), "want 4 to 5"},
	} {
		if err := c.Decode(make([]float32, 6), d.src); err == nil || !strings.Contains(err.Error(), d.want) {
			t.Errorf("%s: error %v, want it to contain %q", d.what, err, d.want)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name string
		p    Params
		want string
	}{
		{"gzip", Params{}, `payload "gzip" is not known; use one of float32, float16, bfloat16, topk, threshold`},
		{"topk", Params{}, "ratio 0 "},
		{"topk", Params{Ratio: 1.5}, "ratio 1.5 "},
		{"threshold", Params{Ratio: nan}, "ratio NaN "},
		{"threshold", Params{Ratio: 1, Threshold: -1}, "threshold -1 "},
		{"threshold", Params{Ratio: 1, Threshold: nan}, "threshold NaN "},
		{"threshold", Params{Ratio: 1, Threshold: 1e39}, "threshold 1e+39 "},
	} {
		if _, err := New(c.name, c.p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New(%q, %+v): error %v, want it to contain %q", c.name, c.p, err, c.want)
		}
	}
}

func TestEncodeAndDecodeAllocateNothing(t *testing.T) {
	src, residual := make([]float32, 5000), make([]float32, 5000)
	for i := range src {
		src[i] = float32(i%100) - 50
	}
	for _, e := range All {
		c := mustNew(t, e.Name, Params{Ratio: 0.01, Threshold: 10})
		wire, dst := make([]byte, c.EncodedMax(len(src))), make([]float32, len(src))
		kept := residual
		if !e.Residual {
			kept = nil
		}
		if got := testing.AllocsPerRun(5, func() {
			if err := c.Decode(dst, wire[:c.Encode(wire, src, kept)]); err != nil {
				t.Fatal(err)
			}
		}); got != 0 {
			t.Errorf("%s: %v allocations, want 0", e.Name, got)
		}
	}
}

// FuzzDecode decodes any bytes. Decode refuses them, or returns a vector that survives a round trip.
func FuzzDecode(f *testing.F) {
	c := mustNew(f, "topk", Params{Ratio: 0.5})
	wire := make([]byte, c.EncodedMax(5))
	f.Add(uint8(5), uint8(3), wire[:c.Encode(wire, []float32{1, 2, 3, 4, 5}, nil)])
	f.Add(uint8(2), uint8(1), []byte{0, 60, 0, 193})
	f.Fuzz(func(t *testing.T, n, which uint8, in []byte) {
		c := mustNew(t, All[int(which)%len(All)].Name, Params{Ratio: 0.5})
		dst := make([]float32, n)
		if c.Decode(dst, in) != nil {
			return
		}
		wire, again := make([]byte, c.EncodedMax(len(dst))), make([]float32, n)
		if err := c.Decode(again, wire[:c.Encode(wire, dst, nil)]); err != nil {
			t.Fatal(err)
		}
		for i := range dst {
			if again[i] != dst[i] && dst[i] == dst[i] {
				t.Fatalf("element %d: %v, then %v", i, dst[i], again[i])
			}
		}
	})
}

// The MB/s column counts the float32 of the vector, 4 bytes an element.
func BenchmarkCodec(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, bytes := range []int{64 << 10, 1 << 20, 16 << 20} {
		src := make([]float32, bytes/4)
		for i := range src {
			src[i] = float32(rng.NormFloat64())
		}
		for _, e := range All {
			c := mustNew(b, e.Name, Params{Ratio: 0.01, Threshold: 4})
			wire, dst := make([]byte, c.EncodedMax(len(src))), make([]float32, len(src))
			var residual []float32
			if e.Residual {
				residual = make([]float32, len(src))
			}
			n := c.Encode(wire, src, residual)
			b.Run(fmt.Sprintf("encode/%s/%dKiB", e.Name, bytes>>10), func(b *testing.B) {
				b.SetBytes(int64(bytes))
				for b.Loop() {
					n = c.Encode(wire, src, residual)
				}
			})
			b.Run(fmt.Sprintf("decode/%s/%dKiB", e.Name, bytes>>10), func(b *testing.B) {
				b.SetBytes(int64(bytes))
				for b.Loop() {
					if err := c.Decode(dst, wire[:n]); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
