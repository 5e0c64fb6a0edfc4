package servernode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/core/coretest"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/workernode"
	"fluentps/ps/scheme"
)

// inTurn makes a cluster exchange its shards one fragment after the other.
func (c *cluster) inTurn(t *rapid.T) *shard.Fragments {
	f, err := shard.NewFragments(c.plan, int64(rapid.IntRange(1, len(c.plan.Shards)).Draw(t, "fragments")))
	if err != nil {
		t.Fatal(err)
	}
	c.due, c.turns = f.Due, f.Clock
	for w := range c.workers {
		c.workers[w] = c.prepared(workernode.New(int32(w), c.plan, c.policy(), 0))
	}
	for _, s := range c.servers {
		s.locally = c.locally()
		s.makeTally()
	}
	return f
}

// genTurns draws a cluster whose shards are exchanged in turn, under schemes that go with that.
func genTurns(t *rapid.T) (*cluster, []rule, *shard.Fragments) {
	var params []shard.Param
	for l := range rapid.IntRange(2, 5).Draw(t, "layers") {
		params = append(params, shard.Param{Name: fmt.Sprintf("l%d.w", l), Layer: l, N: rapid.IntRange(1, 9).Draw(t, "n")})
	}
	plan, err := shard.Cut(params,
		shard.Options{Slice: "layer", MaxBytes: int64(4 * rapid.IntRange(1, 6).Draw(t, "piece")),
			Servers: rapid.IntRange(1, 3).Draw(t, "servers"), Rules: []string{"l0.*", "*"}})
	if err != nil {
		t.Fatal(err)
	}
	draw := func(name string) rule {
		return rapid.SampledFrom([]rule{{name: "bsp"}, {name: "bsp"}, {name: "asp"}, {name: "consgd"},
			{name: "ssp", params: &scheme.SSPParams{Staleness: rapid.Int64Range(0, 2).Draw(t, "s"), Release: scheme.ReleaseSoft}},
			{name: "bsp", until: []int64{rapid.Int64Range(1, 3).Draw(t, "until")},
				then: []rule{{name: "ssp", params: &scheme.SSPParams{Staleness: 1, Release: scheme.ReleaseSoft}}}}}).Draw(t, name)
	}
	rules := []rule{draw("first"), draw("second")}
	budget := Budget{Samples: int64(rapid.IntRange(1, 200).Draw(t, "samples")), PerPush: 10}
	if rapid.Bool().Draw(t, "versions") {
		budget = Budget{Updates: rapid.Int64Range(1, 12).Draw(t, "updates")}
	}
	c := newCluster(plan, rapid.IntRange(1, 5).Draw(t, "workers"), rules, budget, 25)
	return c, rules, c.inTurn(t)
}

// checkTurns checks that each shard has every push of its own exchanges once, whichever iteration each worker has come to. It returns how
// often a shard rested.
func checkTurns(t *rapid.T, c *cluster, f *shard.Fragments) (rested int) {
	for s := range int32(len(c.plan.Shards)) {
		var got, want []string
		for _, v := range c.versions[s] {
			got = append(got, strings.Fields(strings.ReplaceAll(v, "|", " "))...)
		}
		for w, iters := range c.computed {
			if !slices.Equal(iters, sequence(len(iters))) {
				t.Fatalf("worker %d computed %v", w, iters)
			}
			n := f.Clock(s, int64(len(iters)))
			rested += len(iters) - int(n)
			for turn := range n {
				want = append(want, fmt.Sprintf("w%d.%d", w, turn))
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		st := c.servers[c.plan.Shards[s].Server].Shard(s)
		spent := s == 0 && c.servers[0].budget.Updates > 0 // the lead shard drops what comes after the last version
		if missing := len(want) - len(got); !subset(got, want) || missing != 0 && !(spent || c.mayDrop(s) && st.Stats.Dropped > 0) {
			t.Fatalf("shard %d of fragment %d has %v, want %v; %+v", s, f.Of(s), got, want, st)
		}
	}
	return rested
}

// However often the workers are paused, and wherever the run is killed, shards that are exchanged in turn have each push of their own
// exchanges once. The workers and the servers resume at the clocks of each shard.
func TestShardsInTurnResume(t *testing.T) {
	pauses, kills, rested := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c, rules, f := genTurns(t)
		p, k := playParts(t, c, rules)
		pauses, kills = pauses+p, kills+k
		rested += checkTurns(t, c.last, f)
	})
	if pauses < 20 || kills < 10 || rested < 100 {
		t.Errorf("%d pauses and %d kills, and shards rested %d times: the test checks nothing", pauses, kills, rested)
	}
}

// Under bsp a run that was paused at random places makes the versions of a run that was not.
func TestPausesOfShardsInTurnChangeNothing(t *testing.T) {
	pauses, plan := 0, coretest.Layered(t, 4)
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(1, 4).Draw(t, "workers")
		rules := []rule{{name: "bsp"}, {name: "bsp"}}
		budget := Budget{Samples: int64(rapid.IntRange(1, 12).Draw(t, "rounds") * 10 * workers), PerPush: 10}
		straight, paused := newCluster(plan, workers, rules, budget, 0), newCluster(plan, workers, rules, budget, 25)
		straight.inTurn(t)
		fragments := straight.due
		straight.pick = rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 8)).IntN
		if err := straight.run(200000); err != nil {
			t.Fatal(err)
		}
		paused.due, paused.turns = fragments, straight.turns
		for w := range paused.workers {
			paused.workers[w] = paused.prepared(workernode.New(int32(w), plan, paused.policy(), 0))
		}
		for _, s := range paused.servers {
			s.locally = paused.locally()
			s.makeTally()
		}
		p, _ := playParts(t, paused, rules)
		pauses += p
		for s := range int32(len(plan.Shards)) {
			if a, b := straight.versions[s], paused.last.versions[s]; !slices.EqualFunc(a, b, sameVersion) {
				t.Fatalf("shard %d made the versions %v, and with %d pauses %v", s, a, p, b)
			}
		}
	})
	if pauses < 20 {
		t.Errorf("%d pauses: the test checks nothing", pauses)
	}
}

// sameVersion compares versions whatever the order in which they hold pushes.
func sameVersion(a, b string) bool {
	x, y := strings.Fields(strings.ReplaceAll(a, "|", " ")), strings.Fields(strings.ReplaceAll(b, "|", " "))
	slices.Sort(x)
	slices.Sort(y)
	return slices.Equal(x, y)
}

// Workers that die and come back to shards in turn: nobody hangs, and no push counts twice.
func TestWorkersComeBackToShardsInTurn(t *testing.T) {
	total := 0
	rapid.Check(t, func(t *rapid.T) {
		c, _, _ := genTurns(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		c.pick = rng.IntN
		back := c.killsAndRevives(rng)
		if err := c.run(200000); err != nil {
			t.Fatal(err)
		}
		total += *back
		for s := range int32(len(c.plan.Shards)) {
			pushed := strings.Fields(strings.ReplaceAll(strings.Join(c.versions[s], " "), "|", " "))
			slices.Sort(pushed)
			if twice := slices.Compact(slices.Clone(pushed)); len(twice) != len(pushed) {
				t.Fatalf("shard %d has %v", s, pushed)
			}
		}
	})
	if total < 20 {
		t.Errorf("%d workers came back: the test checks nothing", total)
	}
}
