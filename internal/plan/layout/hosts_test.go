package layout

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
)

// hostsOf is the memory of each host of a run.
func hostsOf(t testing.TB, c *configs.Config, hosts []string) (all []HostMemory, roles shard.Roles, q Prepared) {
	t.Helper()
	set, err := cached(DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	if roles, err = Roles(c, hosts); err != nil {
		t.Fatal(err)
	}
	if q, err = Prepare(c, roles, hosts, set, Link{}); err != nil {
		t.Fatal(err)
	}
	return q.Ledger.Hosts(), roles, q
}

// The memory of a host is the sum of the memory of its ranks, which cluster.memory_max bounds, with the data and a program
// for each rank, for any placement of the ranks.
func TestHostsTakeWhatTheirRanksDo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(4, 9).Draw(rt, "ranks")
		hosts := make([]string, n)
		for i := range hosts {
			hosts[i] = fmt.Sprintf("h%d", rapid.IntRange(0, 3).Draw(rt, "host"))
		}
		c := load(t, rapid.SampledFrom([][]string{
			{}, {"cluster.placement=colocate"}, {"cluster.placement=mixed"},
			{"cluster.hierarchy=node", "cluster.placement=pack"}, {"baseline=allreduce"}, {"baseline=pslite"},
			{"checkpoint={every: 1m, replica: 1}"}, {"evaluate.where=online"}, {"payload.push=topk"}, {"evaluate.every_epochs=0"},
		}).Draw(rt, "set")...)
		all, roles, q := hostsOf(t, c, hosts)
		each := q.Ledger.Ranks
		if len(each) != n {
			rt.Fatalf("%d ranks", len(each))
		}
		want, files := map[string]int64{}, int64(0)
		for rank, m := range each {
			if m.Total() > c.Cluster.MemoryMax || m.Total() < ProgramBytes+m.Data+m.Rows+m.Server+m.Worker+m.Snapshots {
				rt.Fatalf("rank %d takes %d: %+v", rank, m.Total(), m)
			}
			if (m.Rows > 0) != (roles.Leader(rank) >= 0) {
				rt.Fatalf("rank %d has row numbers of %d bytes", rank, m.Rows)
			}
			want[hosts[rank]] += m.Total()
			files += m.Files
		}
		ranks := 0
		for _, h := range all {
			ranks += h.Ranks
			if h.Total() != want[h.Host] {
				rt.Fatalf("%s takes %d, its ranks %d: %+v", h.Host, h.Total(), want[h.Host], h)
			}
		}
		if (files > 0) != (c.Checkpoint.Replica > 0) {
			rt.Fatalf("%d bytes of replicas", files)
		}
		if p := q.Ledger.Process(); p <= each[0].Total() || p >= sum(slices.Collect(maps.Values(want))...) {
			rt.Fatalf("one process of all ranks takes %d, rank 0 alone %d, all of them %v", p, each[0].Total(), want)
		}
		if ranks != n || len(all) != len(want) {
			rt.Fatalf("%d ranks on %d hosts, want %d on %d", ranks, len(all), n, len(want))
		}
	})
}

// A sum that overflows must not appear to be small.
func TestMemoryThatDoesNotFitIsRefused(t *testing.T) {
	m := Memory{Server: math.MaxInt64 - 5, Evaluation: 10, Layers: math.MaxInt64}
	if m.Total() >= 0 {
		t.Errorf("%d", m.Total())
	}
	if h := (HostMemory{Servers: math.MaxInt64, Workers: math.MaxInt64, Data: 5}); h.Total() >= 0 {
		t.Errorf("%d", h.Total())
	}
}
