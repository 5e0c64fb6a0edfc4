package shard

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestByNodeMakesOneWorkerOfAHost(t *testing.T) {
	hosts := []string{"a", "a", "a", "b", "b", "b"}
	r, err := Assign(hosts, 2, "spread")
	if err != nil {
		t.Fatal(err)
	}
	g := r.ByNode(hosts)
	if got, want := fmt.Sprint(g), "{[0 3] [1 4] [[1 2] [4 5]]}"; got != want {
		t.Errorf("servers, workers, teams %s, want %s", got, want)
	}
	var names []string
	for rank := range hosts {
		names = append(names, g.Name(rank))
	}
	if got, want := fmt.Sprint(names), "[s0 w0 w0.1 s1 w1 w1.1]"; got != want {
		t.Errorf("names %s, want %s", got, want)
	}
}

func TestByNodeWhereMembersServe(t *testing.T) {
	hosts := []string{"a", "b", "a", "b"}
	r, err := Assign(hosts, 3, "colocate")
	if err != nil {
		t.Fatal(err)
	}
	g := r.ByNode(hosts)
	var names []string
	for rank := range hosts {
		names = append(names, g.Name(rank))
	}
	if got, want := fmt.Sprint(names), "[s0+w0 s1+w1 s2+w0.1 w1.1]"; got != want {
		t.Errorf("names %s, want %s", got, want)
	}
}

// Teams are a partition of the ranks that worked before, each on one host, led by its first rank; hosts are as many.
func TestByNodeIsAPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		hosts := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 2, 12).Draw(t, "hosts")
		placement := rapid.SampledFrom([]string{"spread", "pack", "colocate"}).Draw(t, "placement")
		flat, err := Assign(hosts, rapid.IntRange(1, len(hosts)-1).Draw(t, "servers"), placement)
		if err != nil {
			t.Fatal(err)
		}
		r := flat.ByNode(hosts)
		if !slices.Equal(r.Computing(), flat.Workers) || !slices.Equal(flat.Computing(), flat.Workers) {
			t.Fatalf("%v compute in %v and %v in %v, want %v", r.Computing(), r, flat.Computing(), flat, flat.Workers)
		}
		if !slices.IsSorted(r.Workers) {
			t.Fatalf("workers %v are not ascending", r.Workers)
		}
		seen := map[string]bool{}
		for w, team := range r.Teams {
			host := hosts[team[0]]
			if seen[host] || team[0] != r.Workers[w] || !slices.IsSorted(team) {
				t.Fatalf("team %d is %v, led by rank %d; its host %s has another one: %v", w, team, r.Workers[w], host, seen[host])
			}
			seen[host] = true
			for _, rank := range team {
				if hosts[rank] != host || r.Leader(rank) != w {
					t.Fatalf("rank %d of team %d (%v) is on host %s and led by %d", rank, w, team, hosts[rank], r.Leader(rank))
				}
			}
		}
	})
}
