package servernode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/core"
	"fluentps/internal/core/coretest"
	"fluentps/internal/core/workernode"
	"fluentps/ps/scheme"
)

// periods is a dumb user of exchange clocks: each shard is exchanged in every so many iterations, starting at one.
type periods struct{ every, from []int64 }

func (p *periods) due(shard int32, iter int64) bool {
	return iter >= p.from[shard] && (iter-p.from[shard])%p.every[shard] == 0
}

// exchanges is the number of exchanges of a shard before an iteration.
func (p *periods) exchanges(shard int32, before int64) (n int64) {
	for iter := range before {
		if p.due(shard, iter) {
			n++
		}
	}
	return n
}

// Whatever the periods of the shards: a shard's pushes are numbered without a gap, each is answered once, a version
// contains what the shard's rule says of its own exchanges, and the run ends.
func TestShardsHaveExchangeClocks(t *testing.T) {
	rested, plan := 0, coretest.Layered(t, 4)
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 4).Draw(t, "workers")
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		rules := make([]rule, 2)
		for i := range rules {
			rules[i] = rule{name: rapid.SampledFrom([]string{"bsp", "asp", "ssp"}).Draw(t, "scheme")}
			if rules[i].name == "ssp" {
				rules[i].params = &scheme.SSPParams{Staleness: 1, Release: scheme.ReleaseSoft}
			}
		}
		p := &periods{every: make([]int64, len(plan.Shards)), from: make([]int64, len(plan.Shards))}
		for s := range p.every {
			p.every[s] = rapid.Int64Range(1, 4).Draw(t, "every")
			p.from[s] = rapid.Int64Range(0, p.every[s]-1).Draw(t, "from")
		}
		c := newCluster(plan, workers, rules, Budget{Samples: int64(30 * workers), PerPush: 10}, 0)
		c.pick, c.overtake, c.due = r.IntN, rapid.Bool().Draw(t, "overtake"), p.due
		early := rapid.Bool().Draw(t, "early")
		for w := range c.workers {
			node := c.prepared(workernode.New(int32(w), plan, c.policy(), 0))
			if early {
				node.StartEarly(func(int) bool { return false })
			}
			c.workers[w] = node
		}
		if err := c.run(100_000); err != nil {
			t.Fatal(err)
		}
		rested += checkExchanges(t, c, p)
	})
	if rested == 0 {
		t.Error("no shard rested")
	}
}

// checkExchanges checks that, and returns how often a shard rested.
func checkExchanges(t *rapid.T, c *cluster, p *periods) (rested int) {
	for s := range int32(len(c.plan.Shards)) {
		pushed := strings.Fields(strings.ReplaceAll(strings.Join(c.versions[s], ""), "|", ""))
		slices.Sort(pushed)
		var want []string
		for w, iters := range c.computed {
			if !slices.Equal(iters, sequence(len(iters))) {
				t.Fatalf("worker %d computed %v", w, iters)
			}
			n := p.exchanges(s, int64(len(iters)))
			rested += len(iters) - int(n)
			for turn := range n {
				want = append(want, fmt.Sprintf("w%d.%d", w, turn))
			}
			for turn := range n + 1 {
				if got := c.replied[fmt.Sprintf("shard%d w%d iter%d", s, w, turn)]; got != 1 {
					t.Fatalf("shard %d answered worker %d %d times for exchange %d of %d", s, w, got, turn, n)
				}
			}
		}
		slices.Sort(want)
		bsp := c.schemeOf(c.plan.Shards[s].Rule) == "bsp" // under bsp some pushes wait for workers that have left
		if missing := len(want) - len(pushed); missing < 0 || missing > 0 && !bsp || !subset(pushed, want) {
			t.Fatalf("versions of shard %d have %v, want %v", s, pushed, want)
		}
	}
	return rested
}

func sequence(n int) []int64 {
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i)
	}
	return all
}

// subset says whether each of some is in all, once.
func subset(some, all []string) bool {
	for i, s := range some {
		if !slices.Contains(all, s) || i > 0 && some[i-1] == s {
			return false
		}
	}
	return true
}

// Where all shards are due in all iterations, nothing differs from a run without exchange clocks.
func TestAlwaysDueIsAsWithout(t *testing.T) {
	plan := coretest.Layered(t, 3)
	rapid.Check(t, func(t *rapid.T) {
		seed, workers := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 4).Draw(t, "workers")
		name := rapid.SampledFrom([]string{"bsp", "asp", "ssp", "drop"}).Draw(t, "scheme")
		run := func(due func(int32, int64) bool) string {
			var b strings.Builder
			rules := []rule{{name: name}, {name: "bsp"}}
			c := newCluster(plan, workers, rules, Budget{Updates: int64(3 * workers)}, 0)
			c.pick, c.due = rand.New(rand.NewPCG(seed, 4)).IntN, due
			for w := range c.workers {
				c.workers[w] = c.prepared(workernode.New(int32(w), c.plan, c.policy(), 0))
			}
			c.trace = func(node string, in core.Input, out []core.Effect) { fmt.Fprintln(&b, node, in, out) }
			if err := c.run(100_000); err != nil {
				t.Fatal(err)
			}
			return b.String()
		}
		if with, without := run(func(int32, int64) bool { return true }), run(nil); with != without {
			t.Fatalf("with exchange clocks\n%s\nwithout\n%s", with, without)
		}
	})
}
