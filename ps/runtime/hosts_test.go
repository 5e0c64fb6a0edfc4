package runtime

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"fluentps/configs"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
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
	if q, err = Prepare(c, roles, set); err != nil {
		t.Fatal(err)
	}
	if all, err = Hosts(c, q.Plan, roles, hosts, set); err != nil {
		t.Fatal(err)
	}
	return all, roles, q
}

// What the hosts take together is what the ranks may take, which cluster.memory_max bounds, with the data and a program for
// each; however the ranks lie.
func TestHostsTakeWhatTheirRanksDo(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(4, 9).Draw(rt, "ranks")
		hosts := make([]string, n)
		for i := range hosts {
			hosts[i] = fmt.Sprintf("h%d", rapid.IntRange(0, 3).Draw(rt, "host"))
		}
		c := load(t, rapid.SampledFrom([][]string{
			{}, {"cluster.placement=colocate"}, {"cluster.placement=mixed"}, {"cluster.hierarchy=node", "cluster.placement=pack"}, {"baseline=allreduce"}, {"baseline=pslite"},
			{"checkpoint={every: 1m, replica: 1}"}, {"evaluate.where=online"}, {"payload.push=topk"}, {"evaluate.every_epochs=0"},
		}).Draw(rt, "set")...)
		all, roles, q := hostsOf(t, c, hosts)
		set, err := cached(DataSpec(c))
		if err != nil {
			t.Fatal(err)
		}
		each, err := memoryOfRanks(c, q.Plan, roles, ScratchOf(c, set.Samples(), len(roles.Computing())))
		if err != nil || len(each) != n {
			rt.Fatalf("%d ranks, %v", len(each), err)
		}
		want := map[string]int64{}
		for rank, m := range each {
			if m.Total() > c.Cluster.MemoryMax {
				rt.Fatalf("rank %d takes %d", rank, m.Total())
			}
			want[hosts[rank]] += m.Total()
		}
		ranks, replicas := 0, int64(0)
		for _, h := range all {
			ranks += h.Ranks
			if buffers := h.Servers + h.Workers + h.Evaluation + h.Control; buffers != want[h.Host] {
				rt.Fatalf("%s takes %d for buffers, its ranks %d", h.Host, buffers, want[h.Host])
			}
			if h.Data < int64(h.Ranks)*set.Bytes() || h.Programs < int64(h.Ranks)*programBytes || h.Total() != want[h.Host]+h.Snapshots+h.Replicas+h.Data+h.Programs {
				rt.Fatalf("%+v", h)
			}
			replicas += h.Replicas
		}
		if (replicas > 0) != (c.Checkpoint.Replica > 0) {
			rt.Fatalf("%d bytes of replicas", replicas)
		}
		if ranks != n || len(all) != len(want) {
			rt.Fatalf("%d ranks on %d hosts, want %d on %d", ranks, len(all), n, len(want))
		}
	})
}

// A sum that does not fit an integer is no small one.
func TestMemoryThatDoesNotFitIsRefused(t *testing.T) {
	m := Memory{Server: math.MaxInt64 - 5, Evaluation: 10, Layers: math.MaxInt64}
	if m.Total() >= 0 {
		t.Errorf("%d", m.Total())
	}
	if h := (HostMemory{Servers: math.MaxInt64, Workers: math.MaxInt64, Data: 5}); h.Total() >= 0 {
		t.Errorf("%d", h.Total())
	}
}

// A run makes so many updates of a shard as plan says, give or take what is on its way when the budget is used up; under bsp
// exactly so many.
func TestARunIsAsLongAsPlanSays(t *testing.T) {
	const workers = 4
	for _, rule := range []string{
		"scheme: bsp", "scheme: ssp, staleness: 2", "scheme: ssp, staleness: 2, fold: rank", "scheme: asp", "scheme: softsync, q: 3", "scheme: drop, required: 3", "scheme: r2sp",
	} {
		for _, stop := range []string{"samples: 1600", "epochs: 2", "updates: 41"} {
			c := load(t, "sync=[{match: '*', "+rule+"}]", "train.stop={"+stop+"}")
			var mu sync.Mutex
			commits := 0
			var known configs.Facts
			res, errs := world(t, c, workers+2, func(o *Options) {
				o.Known = func(f configs.Facts) { known = f }
				o.Decided = func(_ scheme.Event, ds []scheme.Decision) {
					mu.Lock()
					defer mu.Unlock()
					for _, d := range ds {
						if d.Kind == scheme.Commit && d.Shard == 0 {
							commits++
						}
					}
				}
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			if want := (configs.Facts{Workers: workers, Computes: workers, Servers: 2, Rows: 480, Lead: 1}); known != want {
				t.Fatalf("rank 0 was told %+v, want %+v", known, want)
			}
			n := c.Length(known)
			ph := c.Sync[0].Phases()[0]
			slack := 2.0 * workers // pushes on their way
			switch {
			case rule == "scheme: bsp":
				slack = 0
			case strings.Contains(rule, "drop"):
				slack = n.Iterations / 3 // all four are on time where nobody is late
			}
			if want := ph.Versions(n); math.Abs(float64(commits)-want) > slack {
				t.Errorf("%s, %s: %d versions, want %v", rule, stop, commits, want)
			}
			if i := float64(res[0].Summary.Iterations); math.Abs(i-n.Iterations) > slack && !strings.Contains(rule, "drop") {
				t.Errorf("%s, %s: %v iterations, want %v", rule, stop, i, n.Iterations)
			}
		}
	}
}
