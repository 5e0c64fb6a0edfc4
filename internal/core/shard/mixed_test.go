package shard

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// straggler-and-contention 7.1: fractions in [0,1] that sum to 1, k = 0 all co-located, k = n all dedicated, and every
// card carries the same in each direction.
func TestMixedSharesLoadEveryCardAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 500).Draw(t, "workers")
		k := rapid.IntRange(0, n).Draw(t, "dedicated")
		shares := MixedShares(k, n)
		total := 0
		for _, s := range shares {
			if s < 0 {
				t.Fatalf("shares %v", shares)
			}
			total += s
		}
		if total != n*n+k*n-2*k || len(shares) != n+k {
			t.Fatalf("%d shares sum up to %d, want %d", len(shares), total, n*n+k*n-2*k)
		}
		y := float64(shares[n+k-1]) / float64(total)
		worker := 1 - y + float64(n-1)*y // the worker sends its gradient to the others, and its part of the parameters to them
		if k > 0 {
			x := float64(shares[0]) / float64(total)
			if dedicated := float64(n) * x; math.Abs(dedicated-worker) > 1e-9 {
				t.Fatalf("a dedicated server carries %v of the model, a worker %v", dedicated, worker)
			}
			if want := 2 * float64(k) * float64(n-1) / float64(n*(n+k)-2*k); math.Abs(float64(k)*x-want) > 1e-9 {
				t.Fatalf("the dedicated ones hold %v, the released code gives them %v", float64(k)*x, want)
			}
		}
		if k == 0 && math.Abs(y*float64(n)-1) > 1e-9 || k == n && y != 0 {
			t.Fatalf("k=%d, n=%d: a co-located server holds %v", k, n, y)
		}
		// The time of an iteration that the paper's summary gives, for M = B = 1.
		if want := 2 * float64(n) * float64(n-1) / float64(n*n+k*n-2*k); math.Abs(worker-want) > 1e-9 {
			t.Fatalf("a card carries %v, the formula says %v", worker, want)
		}
	})
}

func TestMixedRolesAndShards(t *testing.T) {
	hosts := strings.Fields("a a a b b b")
	r, err := Assign(hosts, 2, "mixed")
	if got := fmt.Sprint(r.Servers, r.Workers); err != nil || got != "[0 3 1 2 4 5] [1 2 4 5]" {
		t.Fatalf("servers and workers %s, %v", got, err)
	}
	p, err := Cut([]Param{{Name: "a.w", N: 1000}, {Name: "b.w", Layer: 1, N: 1000}, {Name: "c.w", Layer: 2, N: 3}},
		Options{Slice: "even", MaxBytes: 1 << 20, Servers: 6, Rules: []string{"c.*", "*"}, Shares: MixedShares(2, 4)})
	if err != nil {
		t.Fatal(err)
	}
	load := make([]int, 6)
	for _, s := range p.Shards {
		load[s.Server] += s.Hi - s.Lo
	}
	// Shares are 2(n-1) = 6 of 20 for the dedicated, n-k = 2 of 20 for the others: 600 and 200 of 2000. The first group adds its 3.
	if want := []int{601, 601, 200, 200, 201, 200}; !slices.Equal(load, want) {
		t.Errorf("servers hold %v, want %v", load, want)
	}
	for _, c := range []struct {
		world, servers int
		want           string
	}{
		{2, 1, "the world has 2 ranks, but with cluster.placement: mixed cluster.servers (1) ranks serve alone and at " +
			"least as many others, and at least 2, work and serve too: start at least 3 ranks"},
		{5, 3, "start at least 6 ranks or lower cluster.servers"},
	} {
		if _, err := Assign(make([]string, c.world), c.servers, "mixed"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if _, err := Assign(make([]string, 6), 3, "mixed"); err != nil {
		t.Error(err)
	}
}

// A plan by shares partitions the parameters, leads on server 0, and no server is more than one element a group off its share.
func TestSharesPartitionTheParameters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "workers")
		k := rapid.IntRange(1, n).Draw(t, "dedicated")
		var params []Param
		for l := range rapid.IntRange(1, 5).Draw(t, "layers") {
			params = append(params, Param{Name: fmt.Sprintf("l%d.w", l), Layer: l, N: rapid.IntRange(1, 200).Draw(t, "n")})
		}
		o := Options{Slice: "even", MaxBytes: 64, Servers: n + k, Rules: []string{"l0.*", "*"}, Shares: MixedShares(k, n)}
		p, err := Cut(params, o)
		if err != nil {
			t.Fatal(err)
		}
		at, load := 0, make([]float64, n+k)
		for _, s := range p.Shards {
			if s.Lo != at || s.Hi <= s.Lo {
				t.Fatalf("shard %+v begins behind %d", s, at)
			}
			at = s.Hi
			load[s.Server] += float64(s.Hi - s.Lo)
		}
		if at != p.Arena || p.Shards[0].Server != 0 {
			t.Fatalf("the shards end at %d of %d; the first is on server %d", at, p.Arena, p.Shards[0].Server)
		}
		total := n*n + k*n - 2*k
		for m, s := range o.Shares {
			if want := float64(p.Arena) * float64(s) / float64(total); math.Abs(load[m]-want) > 2*1.5 {
				t.Fatalf("server %d holds %v, its share is %v", m, load[m], want)
			}
		}
	})
}
