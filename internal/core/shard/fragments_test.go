package shard

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawPlan cuts random parameters over random servers.
func drawPlan(t *rapid.T) *Plan {
	var params []Param
	for i, n := range rapid.SliceOfN(rapid.IntRange(1, 300), 1, 12).Draw(t, "params") {
		params = append(params,
			Param{Name: fmt.Sprintf("fc%d.weight", i), Layer: i / 2, N: n, Stat: rapid.IntRange(0, 5).Draw(t, "statistic") == 0})
	}
	p, err := Cut(params,
		Options{Slice: rapid.SampledFrom(Slices()).Draw(t, "slice"), MaxBytes: 4 * rapid.Int64Range(1, 500).Draw(t, "max"),
			Parts:   rapid.IntRange(1, 3).Draw(t, "parts"),
			Servers: rapid.IntRange(1, 5).Draw(t, "servers"), Rules: []string{"fc1*", "*"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Each shard is in one fragment. Fragments are ranges of shards, in order, none is empty, and the lead shard is in
// the first. The clock of a shard counts the iterations in which it is due, one in each n.
func TestFragmentsPartitionTheShards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPlan(t)
		n := rapid.Int64Range(1, int64(len(p.Shards))).Draw(t, "fragments")
		f, err := NewFragments(p, n)
		if err != nil {
			t.Fatal(err)
		}
		last := int64(0)
		for id := range p.Shards {
			of := f.Of(int32(id))
			if id == 0 && of != 0 || of < last || of > last+1 {
				t.Fatalf("%d shards in %d fragments: shard %d is in fragment %d, the one before it in %d", len(p.Shards), n, id, of, last)
			}
			last = of
			clock := int64(0)
			for iter := range 3*n + 2 {
				if got := f.Clock(int32(id), iter); got != clock {
					t.Fatalf("shard %d of fragment %d of %d: clock %d at iteration %d, but it was due %d times", id, of, n, got, iter, clock)
				}
				due := f.Due(int32(id), iter)
				if due != (of == iter%f.N()) {
					t.Fatalf("shard %d of fragment %d of %d: due %t in iteration %d", id, of, n, due, iter)
				}
				if due {
					clock++
				}
			}
		}
		if last != n-1 || f.N() != n {
			t.Fatalf("%d shards are in %d fragments, want %d", len(p.Shards), last+1, n)
		}
	})
}

// With shards that are small beside a fragment, no fragment is further from its part of the bytes than the largest shard.
func TestFragmentsAreAboutEqual(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &Plan{}
		at, largest := 0, int64(0)
		for _, n := range rapid.SliceOfN(rapid.IntRange(1, 40), 60, 90).Draw(t, "shards") {
			p.Shards = append(p.Shards, Shard{ID: int32(len(p.Shards)), Lo: at, Hi: at + n})
			at += n
			largest = max(largest, int64(n)*ElemBytes)
		}
		n := rapid.Int64Range(1, 4).Draw(t, "fragments")
		f, err := NewFragments(p, n)
		if err != nil {
			t.Fatal(err)
		}
		bytes := make([]int64, n)
		for id := range p.Shards {
			bytes[f.Of(int32(id))] += p.Shards[id].Bytes()
		}
		for i, b := range bytes {
			if want := int64(at) * ElemBytes / n; b > want+largest || b < want-largest-1 {
				t.Fatalf("fragment %d of %v has %d bytes, want %d to within a shard of %d", i, bytes, b, want, largest)
			}
		}
	})
}

func TestMoreFragmentsThanShardsAreRefused(t *testing.T) {
	p, err := Cut([]Param{{Name: "a", N: 8}, {Name: "b", Layer: 1, N: 8}},
		Options{Slice: "even", MaxBytes: 1 << 10, Servers: 2, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewFragments(p, 3); err == nil ||
		!strings.Contains(err.Error(), "local.fragments is 3, but there are only 2 shards") || !strings.Contains(err.Error(), "shards.slice") {
		t.Errorf("three fragments of two shards: %v", err)
	}
	if f, err := NewFragments(p, 2); err != nil || f.Of(0) != 0 || f.Of(1) != 1 {
		t.Errorf("two fragments of two shards: %v, %v", f, err)
	}
}
