package payload

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// dumbReuse is topk with reused thresholds once more, in the simplest form: it sorts, and looks at each element by itself.
func dumbReuse(m *Memory, ratio float64, src, residual []float32) (sent map[int]float32) {
	v := make([]float32, len(src))
	for i := range src {
		v[i] = src[i] + residual[i]
	}
	k := int(math.Ceil(ratio * float64(len(v))))
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(int64(magnitude(v[b])) - int64(magnitude(v[a]))) })
	chosen := order[:k]
	if m.At > 0 && m.Reused < 31 {
		var above []int
		for i := range v {
			if magnitude(v[i]) >= m.At {
				above = append(above, i)
			}
		}
		if float64(len(above)) <= math.Floor(1.25*float64(k)) {
			chosen = above
			m.Reused++
			if 3*len(above) < 2*k {
				m.At = max(1, magnitude(math.Float32frombits(m.At)/1.25))
			}
		} else {
			*m = Memory{}
		}
	} else {
		*m = Memory{}
	}
	if m.Reused == 0 {
		m.At = magnitude(v[order[k-1]])
	}
	sent = map[int]float32{}
	copy(residual, v)
	for _, i := range chosen {
		sent[i], residual[i] = v[i], 0
	}
	return sent
}

// Over many vectors, the codec sends what its twin sends, remembers the same, and nothing is lost: what was sent and
// the residual are what was given. A message has at most 1.25 k elements.
func TestReusedThresholdsAreTheirTwin(outer *testing.T) {
	rapid.Check(outer, func(t *rapid.T) {
		n := rapid.IntRange(1, 200).Draw(t, "n")
		ratio := rapid.SampledFrom([]float64{0.01, 0.1, 0.5, 1}).Draw(t, "ratio")
		c := mustNew(outer, "topk", Params{Ratio: ratio, Thresholds: "reused"}).(Remembering)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		residual, twin := make([]float32, n), make([]float32, n)
		var m, of Memory
		k := int(math.Ceil(ratio * float64(n)))
		for round := range 80 {
			src := make([]float32, n)
			scale := math.Pow(2, float64(rng.IntN(rapid.SampledFrom([]int{1, 6}).Draw(t, "scales"))))
			for i := range src {
				src[i] = float32(scale * math.Round(4*rng.NormFloat64())) // small integers: sums are exact, and many are equal
			}
			before := slices.Clone(residual)
			wire := make([]byte, c.EncodedMax(n))
			got := make([]float32, n)
			if err := c.Decode(got, wire[:c.EncodeAfter(&m, wire, src, residual)]); err != nil {
				t.Fatal(err)
			}
			want := dumbReuse(&of, ratio, src, twin)
			count := int(binary.LittleEndian.Uint32(wire))
			if m != of || count != len(want) || count > int(1.25*float64(k)) && count > k {
				t.Fatalf("round %d: %d elements and %+v, its twin %d and %+v, k is %d", round, count, m, len(want), of, k)
			}
			for i := range src {
				if got[i] != want[i] || residual[i] != twin[i] || got[i]+residual[i] != src[i]+before[i] {
					t.Fatalf("round %d, element %d: sent %v and kept %v of %v; its twin sent %v and kept %v", round, i, got[i],
						residual[i], src[i]+before[i], want[i], twin[i])
				}
			}
		}
	})
}

// Without a residual the codec chooses among the vectors themselves.
func TestReusedThresholdsWithoutAResidual(t *testing.T) {
	c := mustNew(t, "topk", Params{Ratio: 0.5, Thresholds: "reused"}).(Remembering)
	var m Memory
	for round, x := range []struct {
		src  []float32
		want string
	}{
		{[]float32{1, -4, 2, 3}, "[0 -4 0 3]"},
		{[]float32{5, 1, 1, -3}, "[5 0 0 -3]"}, // from 3 on
		{[]float32{5, 4, 3, 9}, "[5 0 0 9]"},   // four would pass: two are chosen exactly, and the threshold is 5
		{[]float32{4, 6, 1, 1}, "[0 6 0 0]"},   // one passes: fewer than two thirds, so the threshold is 4 from now on
		{[]float32{4, 6, 1, 1}, "[4 6 0 0]"},
	} {
		wire, got := make([]byte, c.EncodedMax(4)), make([]float32, 4)
		if err := c.Decode(got, wire[:c.EncodeAfter(&m, wire, x.src, nil)]); err != nil || fmt.Sprint(got) != x.want {
			t.Errorf("round %d: %v, %v; want %s", round, got, err, x.want)
		}
	}
}

// The MB/s column counts the float32 of the vector. The vectors change from call to call, as gradients do.
func BenchmarkThresholds(b *testing.B) {
	for _, elements := range []int{1 << 15, 1 << 20} {
		var vectors [8][]float32
		rng := rand.New(rand.NewPCG(1, 2))
		for k := range vectors {
			vectors[k] = make([]float32, elements)
			for i := range vectors[k] {
				vectors[k][i] = float32(rng.NormFloat64())
			}
		}
		for _, thresholds := range Thresholds() {
			b.Run(fmt.Sprintf("%s/%d", thresholds, elements), func(b *testing.B) {
				c := mustNew(b, "topk", Params{Ratio: 0.01, Thresholds: thresholds})
				wire, residual := make([]byte, c.EncodedMax(elements)), make([]float32, elements)
				var m Memory
				k, sent := 0, 0
				b.SetBytes(int64(4 * elements))
				for b.Loop() {
					if r, remembers := c.(Remembering); remembers {
						sent += r.EncodeAfter(&m, wire, vectors[k%8], residual)
					} else {
						sent += c.Encode(wire, vectors[k%8], residual)
					}
					k++
				}
				b.ReportMetric(float64(sent-4*k)/8/float64(k)/float64(elements), "sent")
			})
		}
	}
}
