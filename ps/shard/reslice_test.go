package shard

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// values is what servers keep: one slice per shard.
func values(p *Plan, arena []int) [][]int {
	kept := make([][]int, len(p.Shards))
	for i, s := range p.Shards {
		kept[i] = slices.Clone(arena[s.Lo:s.Hi])
	}
	return kept
}

// Elastic parameter slicing (sync-core 1.7 [R]): slices partition the vector; sizes within a group differ by at most
// one; re-slicing preserves every value and moves only what changes its owner; the epoch grows.
func TestReslicingPreservesEveryValue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var params []Param
		for k := range rapid.IntRange(1, 6).Draw(t, "layers") {
			for _, kind := range []string{"weight", "bias", "mean"} {
				params = append(params, Param{Name: fmt.Sprintf("fc%d.%s", k, kind), Layer: k, N: rapid.IntRange(1, 50).Draw(t, "n"), Stat: kind == "mean"})
			}
		}
		o := Options{Slice: rapid.SampledFrom(Slices()).Draw(t, "slice"), MaxBytes: 64, Servers: rapid.IntRange(1, 7).Draw(t, "servers"), Rules: []string{"fc1.*", "*.bias", "*"}}
		from, err := Cut(params, o)
		if err != nil {
			t.Fatal(err)
		}
		servers := rapid.IntRange(1, 7).Draw(t, "servers after")
		to, err := from.Recut(servers)
		if err != nil {
			t.Fatal(err)
		}
		o.Servers = servers
		fresh, err := Cut(params, o)
		if err != nil {
			t.Fatal(err)
		}
		if to.Epoch != from.Epoch+1 || fmt.Sprint(to.Shards, to.Pieces) != fmt.Sprint(fresh.Shards, fresh.Pieces) {
			t.Fatalf("recut: epoch %d after %d, shards %v, want those of a fresh cut %v", to.Epoch, from.Epoch, to.Shards, fresh.Shards)
		}
		overlaps, err := Overlaps(from, to)
		if err != nil {
			t.Fatal(err)
		}
		arena := make([]int, from.Arena)
		for e := range arena {
			arena[e] = 1000 + e
		}
		before, after := values(from, arena), values(to, make([]int, to.Arena))
		owner := make([]int32, from.Arena)
		for _, s := range from.Shards {
			for e := s.Lo; e < s.Hi; e++ {
				owner[e] = s.Server
			}
		}
		at := 0
		for _, v := range overlaps {
			x, y := from.Shards[v.From], to.Shards[v.To]
			if v.Lo != at || v.Hi <= v.Lo || x.Rule != y.Rule || x.Stat != y.Stat {
				t.Fatalf("overlap %+v after %d: between shards %+v and %+v", v, at, x, y)
			}
			for e := v.Lo; e < v.Hi; e++ {
				if v.Moves != (owner[e] != y.Server) {
					t.Fatalf("element %d goes from server %d to %d, overlap %+v", e, owner[e], y.Server, v)
				}
			}
			copy(after[v.To][v.Lo-y.Lo:v.Hi-y.Lo], before[v.From][v.Lo-x.Lo:v.Hi-x.Lo])
			at = v.Hi
		}
		if want := values(to, arena); at != from.Arena || fmt.Sprint(after) != fmt.Sprint(want) {
			t.Fatalf("after re-slicing %v, want %v", after, want)
		}
	})
}

// From 2 to 3 servers a third of the elements moves to the new one and a sixth from the first to the second.
func TestReslicingMovesOnlyWhatChangesItsOwner(t *testing.T) {
	from, err := Cut([]Param{{Name: "w", N: 12}}, Options{Slice: "even", MaxBytes: 64, Servers: 2, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	to, err := from.Recut(3)
	if err != nil {
		t.Fatal(err)
	}
	overlaps, err := Overlaps(from, to)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(overlaps), "[{0 4 0 0 false} {4 6 0 1 true} {6 8 1 1 false} {8 12 1 2 true}]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestOverlapsRefusesOtherParameters(t *testing.T) {
	cut := func(n int, rules ...string) *Plan {
		p, err := Cut([]Param{{Name: "a", N: n}, {Name: "b", N: 4}}, Options{Slice: "even", MaxBytes: 64, Servers: 2, Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, other := range []*Plan{cut(5, "*"), cut(4, "b", "*")} {
		if _, err := Overlaps(cut(4, "*"), other); err == nil || !strings.Contains(err.Error(), "keep the model and the sync rules") {
			t.Errorf("error %v", err)
		}
	}
}
