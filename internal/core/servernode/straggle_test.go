package servernode

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
	"fluentps/ps/scheme"
)

// The script of testdata: three workers under bsp, of which one becomes slow and recovers. The golden shows at which push
// the lead shard's server decides, and where the announced cut lies.
func TestAStragglerShowsAndIsGoneGolden(t *testing.T) {
	awaits := []scheme.Await{{Straggler: scheme.StragglerShows, Factor: 1.5, Rounds: 2},
		{Straggler: scheme.StragglerGone, Factor: 1.5, Rounds: 3}}
	r := rule{name: "bsp", then: []rule{{name: "asp"}}, awaits: awaits}
	n := newLone(t, 3, mustScheme(r, []int32{0}, 0, 3))
	n.s.watch = newWatch(awaits, []bool{false, true}, 3)
	var b strings.Builder
	now := time.Duration(0)
	for i := range int64(14) {
		slow := 10 * time.Millisecond
		if i >= 3 && i < 7 {
			slow = 40 * time.Millisecond
		}
		for w := range int32(3) {
			took := 10 * time.Millisecond
			if w == 2 {
				took = slow
			}
			// those that are fast wait
			m := wire.Header{Kind: wire.Push, Worker: w, Owner: w, Iter: i, Parts: 1, Samples: 1, Blocked: int64(slow - took)}
			if n.s.watch.announced == i {
				m.Flags = wire.Change
			}
			out := n.s.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Pull, Worker: w, Iter: i}, At: now}, nil)
			before := n.s.watch.announced
			out = n.s.Step(core.Input{Kind: core.Arrived, Msg: m, At: now + slow}, out)
			if k := n.s.watch.announced; k != before && k >= 0 {
				fmt.Fprintf(&b, "push w%d.%d: announced behind iteration %d\n", w, i, k)
			}
			for _, e := range out {
				if e.Kind == core.Stage {
					n.slot[w] = e.Slot
				}
			}
			out = n.s.Step(core.Input{Kind: core.PieceLanded, Worker: w, Slot: n.slot[w], At: now + slow}, out)
			for len(out) > 0 {
				e := out[0]
				out = out[1:]
				switch e.Kind {
				case core.Reply:
					if e.Msg.Flags != 0 {
						fmt.Fprintf(&b, "  %s\n", core.Describe(e.Msg))
					}
					out = n.s.Step(core.Input{Kind: core.ReplySent, Buf: e.Src, Worker: e.To, At: now + slow}, out)
				case core.Changed:
					fmt.Fprintf(&b, "  %v, now %v\n", e, n.s.shards[0].scheme)
				}
			}
			if err := n.s.Check(); err != nil {
				t.Fatal(err)
			}
		}
		now += slow
	}
	const file = "testdata/straggler.txt"
	want, err := os.ReadFile(file)
	if err != nil || b.String() != string(want) {
		t.Errorf("%v\n%s\nwant, in %s:\n%s", err, b.String(), file, want)
	}
}

// genAwaiting draws a cluster of rules that wait for stragglers, perhaps beside one that does not.
func genAwaiting(t *rapid.T) (*cluster, []rule) {
	var params []shard.Param
	for l := range rapid.IntRange(1, 4).Draw(t, "layers") {
		params = append(params, shard.Param{Name: fmt.Sprintf("l%d.w", l), Layer: l, N: rapid.IntRange(1, 9).Draw(t, "n")})
	}
	globs := [][]string{{"*"}, {"l0.*", "*"}, {"l1.*", "l0.*", "*"}}[rapid.IntRange(0, 2).Draw(t, "rules")]
	plan, err := shard.Cut(params,
		shard.Options{Slice: rapid.SampledFrom(shard.Slices()).Draw(t, "slice"),
			MaxBytes: int64(4 * rapid.IntRange(1, 6).Draw(t, "piece")), Servers: rapid.IntRange(1, 3).Draw(t, "servers"), Rules: globs})
	if err != nil {
		t.Fatal(err)
	}
	draw := func() rule {
		r := genRule(t)
		for r.copies() || inturn.Behind(r.phases()) { // the configuration refuses that
			r = rule{name: "asp"}
		}
		return r
	}
	schemes := rapid.IntRange(2, 3).Draw(t, "schemes")
	var awaits []scheme.Await
	for k := range schemes {
		awaits = append(awaits,
			scheme.Await{Straggler: []string{scheme.StragglerShows, scheme.StragglerGone}[k%2],
				Factor: rapid.SampledFrom([]float64{1.01, 1.2, 2}).Draw(t, "factor"), Rounds: rapid.Int64Range(1, 2).Draw(t, "rounds")})
	}
	if rapid.Bool().Draw(t, "ends") {
		awaits[schemes-1] = scheme.Await{}
	}
	beside := rapid.IntRange(0, len(globs)).Draw(t, "beside") // this rule does not wait; the number of rules: all do
	var rules []rule
	for i := range globs {
		r := draw()
		if i != beside || len(globs) == 1 {
			for r.awaits = awaits; len(r.then) < schemes-1; {
				r.then = append(r.then, draw())
			}
		}
		rules = append(rules, r)
	}
	workers := rapid.IntRange(3, 6).Draw(t, "workers")
	budget := Budget{Samples: int64(rapid.IntRange(200, 900).Draw(t, "samples")), PerPush: 10}
	c := newOrderedCluster(plan, workers, rules, budget, 25, rapid.SampledFrom(send.All.Names()).Draw(t, "order"), send.Options{})
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "times"), 4))
	c.blocked = func() int64 { return rng.Int64N(int64(100 * time.Millisecond)) }
	return c, rules
}

// changesOf records the clocks at which each shard changes its scheme.
func changesOf(c *cluster) map[int32][]int64 {
	at := map[int32][]int64{}
	c.trace = func(_ string, _ core.Input, _ []core.Effect) {
		for _, s := range c.servers {
			for _, id := range s.owned {
				if cut := &s.shards[id].cut; len(at[id]) < int(cut.changes) {
					at[id] = append(at[id], cut.began)
				}
			}
		}
	}
	return at
}

// unrolled is a rule that waits, with the clocks at which it has changed.
func unrolled(r rule, at []int64) (phases []scheme.Phase) {
	all := r.phases()
	for k := range len(at) + 1 {
		ph := all[scheme.Turn(int64(k), len(all))]
		if ph.Await = (scheme.Await{}); k < len(at) {
			ph.Until = at[k]
		}
		phases = append(phases, ph)
	}
	return phases
}

// All shards of all rules that wait change at the same clocks, whatever the order of messages, and keep the promises of
// each scheme in its iterations. Nobody waits for ever.
func TestAnnouncedChangesUnderRandomOrders(t *testing.T) {
	changes := 0
	rapid.Check(t, func(t *rapid.T) {
		c, rules := genAwaiting(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 3))
		c.pick = rng.IntN
		c.overtake = rapid.Bool().Draw(t, "overtake")
		c.deliverTwice = func() bool { return rng.IntN(8) == 0 }
		at := changesOf(c)
		if err := c.run(400000); err != nil {
			t.Fatal(err)
		}
		var most []int64
		for _, clocks := range at {
			if len(clocks) > len(most) {
				most = clocks
			}
		}
		changes += len(most)
		for i := range c.plan.Shards {
			sh := &c.plan.Shards[i]
			r := rules[sh.Rule]
			if r.awaits == nil {
				checkShard(t, c, sh, rules)
				continue
			}
			if n := len(at[sh.ID]); !slices.Equal(at[sh.ID], most[:n]) || n < len(most)-1 { // workers that stop may leave one shard a change ahead
				t.Fatalf("shard %d changed at %v, another at %v", sh.ID, at[sh.ID], most)
			}
			plain := slices.Clone(rules)
			plain[sh.Rule] = ruleOf(unrolled(r, at[sh.ID]))
			checkShard(t, c, sh, plain)
		}
		c.nothingComing(t)
	})
	if changes < 40 {
		t.Errorf("%d changes: the test checks nothing", changes)
	}
}

// ruleOf is a rule with these phases.
func ruleOf(phases []scheme.Phase) (r rule) {
	for k, ph := range phases {
		one := rule{name: ph.Scheme, common: ph.Common, params: ph.Params}
		if k == 0 {
			r = one
		} else {
			r.then = append(r.then, one)
		}
		if ph.Until > 0 {
			r.until = append(r.until, ph.Until)
		}
	}
	return r
}

// Workers are paused, and runs are killed and resume, at any moment of a change. Every push counts once, and all shards
// resume under the same schemes.
func TestPausesKeepAnnouncedChanges(t *testing.T) {
	pauses, kills, later := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c, rules := genAwaiting(t)
		p, k := playParts(t, c, rules)
		pauses, kills = pauses+p, kills+k
		for i := range c.plan.Shards {
			checkEachOnce(t, c.last, c.plan.Shards[i].ID)
		}
		q := c.last.cut()
		lead := q.saved[0]
		for i := range c.plan.Shards {
			saved := q.saved[int32(i)]
			if n := saved.ChangesAt(q.starts); rules[c.plan.Shards[i].Rule].awaits != nil && n != lead.ChangesAt(q.starts) {
				t.Fatalf("shard %d resumes after %d changes, the lead shard after %d: %+v, %+v at %v", i, n,
					lead.ChangesAt(q.starts), saved, lead, q.starts)
			}
		}
		later += int(lead.Changes)
	})
	if pauses < 20 || kills < 10 || later < 10 {
		t.Errorf("%d pauses, %d kills, %d changes: the test checks nothing", pauses, kills, later)
	}
}
