package servernode

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
	"fluentps/ps/scheme"
)

// The law of the budget, under all schemes, changes of scheme, send policies and random orders, with and without
// workers that die and come back. The run ends by itself. The accepted samples exceed the budget by less than one push
// of every worker. The lead shard has as many versions as the budget says and no more. What a scheme still had pending
// is committed. Dropped pushes do not count.
func TestBudgetsHoldUnderRandomOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := genBudget(t)
		c, rules := genCluster(t)
		for _, s := range c.servers {
			s.budget = budget
		}
		lives := rapid.Bool().Draw(t, "lives")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		c.pick = rng.IntN
		c.overtake = rapid.Bool().Draw(t, "overtake")
		if lives {
			c.killsAndRevives(rng)
		}
		if err := c.run(200000); err != nil {
			t.Fatal(err)
		}
		if err := c.keptBudget(budget, lives); err != nil {
			t.Fatalf("%v: %+v of rule %v", err, budget, rules[0])
		}
	})
}

func genBudget(t *rapid.T) Budget {
	if rapid.Bool().Draw(t, "of versions") {
		return Budget{Updates: int64(rapid.IntRange(1, 40).Draw(t, "updates")), PerPush: 10}
	}
	return Budget{Samples: int64(rapid.IntRange(1, 400).Draw(t, "samples")), PerPush: 10}
}

// keptBudget compares the lead shard's final state with the budget. Where workers die, the last may die before the
// budget is used up, and a worker that comes back may have one accepted push more for each life.
func (c *cluster) keptBudget(b Budget, lives bool) error {
	lead := c.servers[0].Shard(0)
	folded := int64(0)
	for _, version := range c.versions[0] {
		folded += int64(len(strings.Fields(version)))
	}
	over := b.PerPush * int64(len(c.workers))
	switch {
	case lead.Samples != 10*folded || c.servers[0].shards[0].samplesTaken != lead.Samples:
		return fmt.Errorf("%d samples are counted, %d committed, of %d pushes folded", c.servers[0].shards[0].samplesTaken, lead.Samples, folded)
	case b.Samples > 0 && lead.Samples >= b.Samples+over:
		return fmt.Errorf("%d samples were accepted", lead.Samples)
	case b.Updates > 0 && lead.Version > b.Updates:
		return fmt.Errorf("there are %d versions", lead.Version)
	case !lives && !c.servers[0].Stopping():
		return fmt.Errorf("nobody was stopped")
	case !lives && b.Updates > 0 && lead.Version != b.Updates:
		return fmt.Errorf("there are %d versions", lead.Version)
	}
	return nil
}

// A version of more pushes than the budget has must not keep the run going: the accepted pushes end it, and are
// committed when the last worker leaves.
func TestAVersionThatTheBudgetCannotFillEndsTheRun(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 8}}, shard.Options{Slice: "even", MaxBytes: 8, Servers: 2, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []int64{7, 4000, 1 << 30} {
		rules := []rule{{name: "softsync", params: &scheme.SoftsyncParams{Q: q, Staleness: -1, Release: scheme.ReleaseSoft}}}
		budget := Budget{Samples: 200, PerPush: 10}
		c := newOrderedCluster(plan, 3, rules, budget, 0, "fifo", send.Options{})
		c.pick = rand.New(rand.NewPCG(uint64(q), 6)).IntN
		if err := c.run(20000); err != nil {
			t.Fatalf("q = %d: %v", q, err)
		}
		if err := c.keptBudget(budget, false); err != nil {
			t.Errorf("q = %d: %v", q, err)
		}
		if got, least := c.servers[0].Shard(0), int64(200); got.Samples < least || got.Version != (got.Samples/10+q-1)/q {
			t.Errorf("q = %d: %d versions of %d samples, must be at least %d", q, got.Version, got.Samples, least)
		}
	}
}

// Pauses at any moment do not change the law of the budget: where workers that are behind compute up to the iteration
// of the pause, they stop on the way when the budget is used up.
func TestBudgetsHoldThroughPauses(t *testing.T) {
	pauses := 0
	rapid.Check(t, func(t *rapid.T) {
		budget := genBudget(t)
		c, rules := genCluster(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		c.pick = rng.IntN
		c.overtake = rapid.Bool().Draw(t, "overtake")
		var phases [][]scheme.Phase
		for _, r := range rules {
			phases = append(phases, r.phases())
		}
		c.together = inturn.MustPauseInStep(phases, int(c.plan.Shards[0].Rule)) // as a run does
		for _, s := range c.servers {
			s.budget, s.together = budget, c.together
		}
		for part := 0; ; part++ {
			steps, at, paused := 0, 1+rng.IntN(300), false
			c.trace = func(string, core.Input, []core.Effect) {
				if steps++; steps == at && part < 6 && !c.servers[0].halt.stopping {
					paused = true
					c.add(pending{line: "pause", node: c.servers[0], name: "s0", in: core.Input{Kind: core.PauseNow}})
				}
			}
			if err := c.run(200000); err != nil {
				t.Fatal(err)
			}
			if !paused || c.servers[0].Spent() {
				break
			}
			pauses++
			c = c.resumeFrom(t, rules, c.cut(), false)
		}
		if err := c.keptBudget(budget, false); err != nil {
			t.Fatalf("%v: %+v of rule %v", err, budget, rules[0])
		}
	})
	if pauses < 20 {
		t.Errorf("%d pauses: the test checks nothing", pauses)
	}
}

// A very large bound times large pushes overflows an integer. Workers that keep copies under such a bound must still be
// told to ask, or nothing ends the run.
func TestCopiesOfAnyBoundEndWithTheBudget(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 8}}, shard.Options{Slice: "even", MaxBytes: 64, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	ssp := &scheme.SSPParams{Staleness: 1 << 40, Release: scheme.ReleaseSoft, Cache: true}
	for _, budget := range []Budget{{Samples: 400, PerPush: 1 << 22}, {Samples: 1<<63 - 1, PerPush: 1 << 62, Updates: 40}} {
		c := newOrderedCluster(plan, 3, []rule{{name: "ssp", params: ssp}}, budget, 0, "fifo", send.Options{})
		c.pick = rand.New(rand.NewPCG(1, 6)).IntN
		if err := c.run(20000); err != nil {
			t.Fatalf("%+v: %v", budget, err)
		}
	}
}
