package shard

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAssign(t *testing.T) {
	two := []string{"h1", "h1", "h1", "h2", "h2", "h2"}
	for _, c := range []struct {
		placement string
		servers   int
		want      string
	}{
		{"spread", 2, "[0 3] [1 2 4 5]"},
		{"spread", 3, "[0 3 1] [2 4 5]"},
		{"pack", 2, "[0 1] [2 3 4 5]"},
		{"colocate", 2, "[0 3] [0 1 2 3 4 5]"},
		{"colocate", 6, "[0 3 1 4 2 5] [0 1 2 3 4 5]"},
	} {
		r, err := Assign(two, c.servers, c.placement)
		if got := fmt.Sprint(r.Servers, r.Workers); err != nil || got != c.want {
			t.Errorf("%s %d: got %s, %v; want %s", c.placement, c.servers, got, err, c.want)
		}
	}
}

func TestAssignShowsTheArithmetic(t *testing.T) {
	for _, c := range []struct {
		world, servers int
		placement      string
		want           string
	}{
		{2, 2, "spread", "the world has 2 ranks, but cluster.servers is 2 and at least 1 worker is needed: 2 + 1 = 3 ranks"},
		{1, 1, "pack", "the world has 1 rank, but cluster.servers is 1 and at least 1 worker is needed: 1 + 1 = 2 ranks"},
		{2, 3, "colocate", "the world has 2 ranks, but cluster.servers is 3"},
		{2, 1, "scatter", `cluster.placement is "scatter"; it is one of [spread pack colocate mixed]`},
	} {
		_, err := Assign(make([]string, c.world), c.servers, c.placement)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestEveryRankHasARoleAndRank0LeadsTheServers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c"}), 2, 12).Draw(t, "hosts")
		placement := rapid.SampledFrom(Placements()).Draw(t, "placement")
		servers := rapid.IntRange(1, len(hosts)-1).Draw(t, "servers")
		both := placement == "colocate" // ranks may have both roles
		if placement == "mixed" {
			if servers = min(servers, len(hosts)/2, len(hosts)-2); servers < 1 {
				t.Skip("too few ranks")
			}
		}
		r, err := Assign(hosts, servers, placement)
		if err != nil {
			t.Fatal(err)
		}
		if placement == "mixed" {
			if !slices.Equal(r.Servers[servers:], r.Workers) {
				t.Fatalf("servers %v, workers %v", r.Servers, r.Workers)
			}
			r.Servers = r.Servers[:servers] // the laws of spread hold for these only
		}
		if r.Servers[0] != 0 || len(r.Servers) != servers {
			t.Fatalf("servers are ranks %v", r.Servers)
		}
		for rank := range hosts {
			s, w := r.Server(rank) >= 0, r.Worker(rank) >= 0
			if !s && !w || s && w && !both || both && !w {
				t.Fatalf("rank %d: server %v worker %v in %+v", rank, s, w, r)
			}
		}
		if placement == "pack" {
			return
		}
		on := map[string]int{}
		for _, rank := range r.Servers {
			on[hosts[rank]]++
		}
		for _, host := range hosts { // no host has two servers more than another that has a rank left to serve
			have := 0
			for _, h := range hosts {
				if h == host {
					have++
				}
			}
			for other, n := range on {
				if on[host] < have && n > on[host]+1 {
					t.Fatalf("host %s has %d servers, %s only %d: %v on %v", other, n, host, on[host], r.Servers, hosts)
				}
			}
		}
	})
}

func TestNames(t *testing.T) {
	r, _ := Assign(make([]string, 3), 1, "colocate")
	if r.Name(0) != "s0+w0" || r.Name(2) != "w2" {
		t.Errorf("got %s and %s", r.Name(0), r.Name(2))
	}
	r, _ = Assign(make([]string, 3), 1, "spread")
	if r.Name(0) != "s0" || r.Name(2) != "w1" {
		t.Errorf("got %s and %s", r.Name(0), r.Name(2))
	}
}

func TestShareDealsAll(t *testing.T) {
	if got := fmt.Sprint(Share(10, 4)); got != "[3 3 2 2]" {
		t.Errorf("Share(10, 4) = %s", got)
	}
}
