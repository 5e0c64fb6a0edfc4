package servernode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

// contributors are the workers whose pushes a shard took, by iteration, under the schemes that agree on them.
func contributors(c *cluster, id int32, phases []scheme.Phase) map[int64]string {
	sets := map[int64][]string{}
	for _, version := range c.versions[id] {
		for _, push := range strings.Fields(version) {
			w, iter, _ := strings.Cut(push, ".")
			var i int64
			if _, err := fmt.Sscan(iter, &i); err != nil {
				panic(err)
			}
			if p, ok := phases[phaseOf(phases, i)].Params.(*scheme.DropParams); ok && p.Contributors == "step" {
				sets[i] = append(sets[i], w)
			}
		}
	}
	words := map[int64]string{}
	for i, set := range sets {
		slices.Sort(set)
		words[i] = strings.Join(set, " ")
	}
	return words
}

// checkContributors checks that with contributors: step all shards of a rule take the same pushes of every iteration.
// Where workers died, a shard may lack the pushes of workers that died before their push arrived, and no others.
func checkContributors(t *rapid.T, c *cluster, rules []rule, deaths bool) {
	died := map[string]bool{}
	for _, w := range c.dead {
		died[fmt.Sprintf("w%d", w.Me())] = true
	}
	for i := range c.plan.Shards {
		id := int32(i)
		lead := LeadShard(c.plan, id)
		if lead == id {
			continue
		}
		phases := rules[c.plan.Shards[id].Rule].phases()
		want, got := contributors(c, lead, phases), contributors(c, id, phases)
		if !deaths && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("shard %d took the pushes of %v, and shard %d, which leads, of %v", id, got, lead, want)
		}
		for iter, set := range got {
			for _, w := range strings.Fields(set) {
				if !slices.Contains(strings.Fields(want[iter]), w) {
					t.Fatalf("iteration %d: shard %d took a push of %s, and shard %d, which leads, took %q", iter, id, w, lead, want[iter])
				}
			}
		}
		for iter, set := range want {
			for _, w := range strings.Fields(set) {
				if !died[w] && !slices.Contains(strings.Fields(got[iter]), w) {
					t.Fatalf("iteration %d: shard %d took %q, without %s, which has not died and is in the set of shard %d, %q",
						iter, id, got[iter], w, lead, set)
				}
			}
		}
	}
}

// stepCluster is a run under drop with contributors: step, beside another rule, over several servers.
func stepCluster(t *rapid.T, workers, required int) (*cluster, []rule) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", Layer: 0, N: 7}, {Name: "b", Layer: 1, N: 9}, {Name: "c", Layer: 2, N: 3}},
		shard.Options{Slice: rapid.SampledFrom([]string{"even", "layer"}).Draw(t, "slice"), MaxBytes: 8,
			Servers: rapid.IntRange(1, 3).Draw(t, "servers"), Rules: []string{"b", "*"}})
	if err != nil {
		t.Fatal(err)
	}
	fold := rapid.SampledFrom([]scheme.FoldOrder{scheme.FoldRank, scheme.FoldArrival}).Draw(t, "fold")
	step := rule{name: "drop", common: scheme.Common{Fold: fold}, params: &scheme.DropParams{Required: int64(required), Contributors: "step"}}
	rules := []rule{step, {name: "asp"}}
	if rapid.Bool().Draw(t, "second") { // the shards that agree are not the first
		rules = []rule{{name: "asp"}, step}
	}
	return newCluster(plan, workers, rules, Budget{Samples: int64(10 * workers * 12)}, 0), rules
}

// The contributors of every iteration are the same at all shards, and N_t of them, whatever the order of messages.
func TestContributorsAreTheSameAtAllShards(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(2, 5).Draw(t, "workers")
		required := rapid.IntRange(1, workers).Draw(t, "required")
		c, rules := stepCluster(t, workers, required)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
		c.pick, c.overtake = rng.IntN, rapid.Bool().Draw(t, "overtake")
		if err := c.run(200000); err != nil {
			t.Fatal(err)
		}
		checkContributors(t, c, rules, false)
		for i := range c.plan.Shards {
			phases := rules[c.plan.Shards[i].Rule].phases()
			for iter, set := range contributors(c, int32(i), phases) {
				if n := len(strings.Fields(set)); n > required {
					t.Fatalf("iteration %d has %d contributors, %d are required", iter, n, required)
				}
			}
		}
	})
}

// With all workers required it is bsp, whichever shard decides.
func TestDropOfAllWithContributorsOfAStepIsBSP(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		checkReadsLikeBSP(t, rule{name: "drop", params: &scheme.DropParams{Contributors: "step"}})
	})
}

// A closing of any number of workers travels in messages of 64, none of them empty, and is assembled in any order of
// arrival; closings are delivered in the order of their numbers.
func TestClosingsOfManyWorkers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		plan, err := shard.Cut([]shard.Param{{Name: "a", N: 2}}, shard.Options{Slice: "even", MaxBytes: 4, Servers: 2, Rules: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		const workers = 1000
		r := rule{name: "drop", params: &scheme.DropParams{Contributors: "step"}}
		lead := New(Config{Me: 0, Plan: plan, Workers: workers,
			Schemes: map[int32]inturn.ShardScheme{0: mustScheme(r, []int32{0}, 0, workers)}})
		ss := mustScheme(r, []int32{1}, 1, workers, true)
		s := &spy{Scheme: ss.Scheme}
		ss.Scheme = s
		follower := New(Config{Me: 1, Plan: plan, Workers: workers, Schemes: map[int32]inturn.ShardScheme{1: ss}})
		var msgs []wire.Header
		var want string
		for iter := range int64(3) {
			who := rapid.SliceOfNDistinct(rapid.Int32Range(0, workers-1), 0, 40, rapid.ID).Draw(t, "who")
			slices.Sort(who)
			want += fmt.Sprintln(iter, who)
			words := map[int32]bool{}
			for _, w := range who {
				words[w/64] = true
			}
			out := lead.announce(lead.shards[0], announcement{iter: iter, contributors: who}, nil)
			if len(out) != max(1, len(words)) {
				t.Fatalf("%d messages for %v", len(out), who)
			}
			for _, e := range out {
				msgs = append(msgs, e.Msg)
			}
		}
		for _, i := range rapid.Permutation(seq(len(msgs))).Draw(t, "order") {
			follower.Step(core.Input{Kind: core.Arrived, Msg: msgs[i]}, nil)
		}
		got := ""
		for i := 0; i < len(s.events); {
			ev := s.events[i]
			who := []int32{}
			for range max(1, ev.Parts) {
				if s.events[i].Worker != scheme.NoWorker {
					who = append(who, s.events[i].Worker)
				}
				i++
			}
			got += fmt.Sprintln(ev.Iter, who)
		}
		if got != want {
			t.Fatalf("delivered\n%s, want\n%s", got, want)
		}
	})
}

func seq(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// duo is two servers with a shard each that agree; the test tells them by hand what their workers do.
type duo struct{ lead, follow *lone }

func newDuo(t *testing.T, workers int, r rule) duo {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 2}}, shard.Options{Slice: "even", MaxBytes: 4, Servers: 2, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	return duo{newLoneOf(t, plan, 0, workers, mustScheme(r, []int32{0}, 0, workers)),
		newLoneOf(t, plan, 1, workers, mustScheme(r, []int32{1}, 1, workers, true))}
}

// tell delivers the messages of the leading server to the other.
func (d duo) tell() {
	d.lead.t.Helper()
	for _, m := range d.lead.told {
		d.follow.step(core.Input{Kind: core.Arrived, Msg: m})
	}
	d.lead.told = nil
}

func step(required int64) rule {
	return rule{name: "drop", params: &scheme.DropParams{Required: required, Contributors: "step"}}
}

// Where all workers die, pushes that only the following shard has received will never be chosen. That shard drops them
// when it knows that nobody is left at the leading shard either, and its server is not done before.
func TestPushesThatAreNeverChosenAreDropped(t *testing.T) {
	d := newDuo(t, 2, step(0))
	for w := range int32(2) {
		d.lead.push(w, 0)
		d.follow.push(w, 0)
	}
	d.tell()
	d.follow.push(0, 1) // and worker 0 dies before its push reaches the leading shard
	for w := range int32(2) {
		d.follow.leave(w)
	}
	if got := d.follow.s.Shard(1).Stats; d.follow.done != 0 || got.Dropped != 0 {
		t.Fatalf("done %d times, %+v, and the leading shard may still choose", d.follow.done, got)
	}
	for w := range int32(2) {
		d.lead.leave(w)
	}
	d.tell()
	if got := d.follow.s.Shard(1).Stats; d.follow.done != 1 || got.Dropped != 1 || got.Pushes != 3 {
		t.Errorf("done %d times, %+v, want the third push dropped", d.follow.done, got)
	}
	d.follow.join(0)
	if d.follow.s.Done() {
		t.Error("the server is done although worker 0 is back")
	}
	d.follow.expect("w0@2")
	d.follow.leave(0)
	if d.follow.done != 1 {
		t.Error("the server is done before the leading shard has said that its last worker left again")
	}
	d.lead.join(0)
	d.lead.leave(0)
	d.tell()
	if d.follow.done != 2 {
		t.Errorf("done %d times, want twice", d.follow.done)
	}
}

// A worker whose push was folded before the shards began to agree is not a contributor. Closings of the second scheme
// may arrive before the following shard has reached that scheme.
func TestShardsAgreeFromAChangeOn(t *testing.T) {
	r := rule{name: "bsp", until: []int64{1, 3}, then: []rule{step(1), {name: "asp"}}}
	d := newDuo(t, 2, r)
	for w := range int32(2) {
		d.lead.push(w, 0)
		d.lead.pull(w, 1)
	}
	d.follow.push(0, 0)
	d.lead.push(1, 1) // the only push that iteration 1 takes
	d.tell()
	if got := fmt.Sprint(d.follow.versions); got != "[]" {
		t.Errorf("versions %s before the change", got)
	}
	d.follow.push(1, 0)
	d.follow.push(0, 1)
	d.follow.push(1, 1)
	if got := fmt.Sprint(d.follow.versions); got != "[ w0.0 w1.0 |  w1.1 |]" {
		t.Errorf("versions %s, want the push of worker 1 alone in the second", got)
	}
	if got := d.follow.s.Shard(1).Stats; got.Dropped != 1 {
		t.Errorf("%+v, want worker 0's push of iteration 1 dropped", got)
	}
	// The second change comes when iteration 2 is closed, not when everybody has pushed it.
	d.follow.push(0, 2)
	d.follow.push(1, 2)
	d.follow.pull(0, 3)
	d.follow.expect("")
	d.lead.push(0, 2)
	d.tell()
	d.follow.expect("w0@3")
	if got := fmt.Sprint(d.follow.versions); got != "[ w0.0 w1.0 |  w1.1 |  w0.2 |]" {
		t.Errorf("versions %s", got)
	}
}

// When all workers in the run were sent past a change, nobody will push the open iterations before it. The leading
// shard closes those without contributors, and both shards change.
func TestShardsThatAgreeChangeWhenEverybodyHasPassed(t *testing.T) {
	r := step(0)
	r.until, r.then = []int64{2}, []rule{{name: "bsp"}}
	d := newDuo(t, 2, r)
	for _, n := range []*lone{d.lead, d.follow} {
		n.push(1, 0)
		n.push(0, 2) // after iterations 0 and 1 of another shard
		n.pull(0, 3)
	}
	d.tell()
	for _, n := range []*lone{d.lead, d.follow} {
		n.leave(1)
	}
	d.lead.expect("w0@3")
	d.tell()
	d.follow.expect("w0@3")
	for _, n := range []*lone{d.lead, d.follow} {
		if got := fmt.Sprint(n.versions); got != "[ w1.0 |  w0.2 |]" {
			t.Errorf("shard %d has versions %s", n.id, got)
		}
		n.join(1)
		n.expect("w1@3")
	}
}
