package servernode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/workernode"
	"fluentps/internal/policy/send"
	"fluentps/ps/scheme"
)

// savedCut is what a checkpoint keeps of a cluster whose nodes are done, and the part of its history that belongs to
// it.
type savedCut struct {
	starts   []int64
	saved    map[int32]Saved
	content  map[int32]string   // of the current version of each shard
	got      map[int32][]string // versions so far
	computed [][]int64
}

func (c *cluster) cut() savedCut {
	q := savedCut{saved: map[int32]Saved{}, content: map[int32]string{}, got: map[int32][]string{}}
	for w, node := range c.workers {
		q.starts = append(q.starts, node.Next())
		q.computed = append(q.computed, slices.Clone(c.computed[w]))
	}
	for _, s := range c.servers {
		for _, id := range s.Shards() {
			q.saved[id] = s.Saved(id)
			q.content[id] = c.bufs[[2]int32{id, s.Shard(id).Cur}]
			q.got[id] = slices.Clone(c.versions[id])
		}
	}
	return q
}

// alignClocks moves workers that are behind to the clock of the others, if some shard closes iterations without them.
func (q *savedCut) alignClocks(c *cluster, rules []rule) {
	furthest := int64(0)
	for i := range c.plan.Shards {
		if sh := &c.plan.Shards[i]; inturn.Behind(rules[sh.Rule].phases()) {
			furthest = max(furthest, q.saved[sh.ID].Closed, slices.Max(q.starts))
		}
	}
	for w := range q.starts {
		q.starts[w] = max(q.starts[w], furthest)
	}
}

// resumeFrom makes the cluster that resumes from a cut: the same one after a pause, a new one after a kill.
func (c *cluster) resumeFrom(t *rapid.T, rules []rule, q savedCut, killed bool) *cluster {
	n := newOrderedCluster(c.plan, len(c.workers), rules, c.servers[0].budget, 25, c.order.Name, c.options)
	n.pick, n.overtake, n.reads, n.together = c.pick, c.overtake, n.readsOfCopies, c.together
	n.slowDisk, n.blocked, n.due, n.turns = c.slowDisk, c.blocked, c.due, c.turns
	q.alignClocks(c, rules)
	for w := range n.workers {
		n.workers[w] = n.prepared(workernode.New(int32(w), n.plan, n.policy(), q.starts[w]))
		n.computed[w] = slices.Clone(q.computed[w])
		if !killed {
			n.workers[w].Succeed(c.workers[w])
		}
	}
	for m := range n.servers {
		n.servers[m] = n.resumedServer(t, m, rules, q, c.servers[0].budget)
		if !killed {
			n.writeHeld(c.servers[m])
			n.servers[m].Succeed(c.servers[m])
		}
		for _, id := range n.servers[m].Shards() {
			n.bufs[[2]int32{id, n.servers[m].Shard(id).Cur}] = q.content[id]
			n.versions[id] = slices.Clone(q.got[id])
		}
	}
	return n
}

// writeHeld writes the versions of a pause, while the next nodes run. Versions of the pause before that are still being
// written stay held.
func (c *cluster) writeHeld(old *Server) {
	for _, id := range old.Shards() {
		buf := old.shards[id].diskBuf
		if buf < 0 {
			buf = old.Hold(id)
		}
		c.toDisk(c.servers[old.me], fmt.Sprintf("s%d", old.me), id, buf)
	}
}

func (c *cluster) resumedServer(t *rapid.T, m int, rules []rule, q savedCut, budget Budget) *Server {
	schemes := map[int32]inturn.ShardScheme{}
	for _, id := range c.plan.OfServer(int32(m)) {
		ids := inturn.Together(c.plan, id, func(rule int) string { return rules[rule].name })
		if ss, made := schemes[ids[0]]; made {
			schemes[id] = ss
			continue
		}
		env := scheme.Env{Workers: len(c.workers), Shards: ids, Server: m, Follows: LeadShard(c.plan, id) != id,
			Clocks: c.locally().ClocksOf(id, q.starts), Start: q.saved[id].Version}
		saved := q.saved[id]
		ss, err := inturn.NewShardSchemes(rules[c.plan.Shards[id].Rule].phases(), env, saved.ChangesAt(q.starts))
		if err != nil {
			t.Fatal(err)
		}
		schemes[id] = ss
	}
	sc := Config{Locally: c.locally(), Me: int32(m), Plan: c.plan, Workers: len(c.workers), Schemes: schemes,
		Budget: budget, SnapshotEvery: 25, Together: c.together, Saves: true, Awaits: awaitsOf(rules), SkipsAhead: skipsAhead(rules)}
	if c.order.Reply != nil {
		sc.Send = c.order.Reply(c.options)
	}
	s := New(sc)
	s.Resume(q.starts, q.saved)
	return s
}

// errKilled ends a cluster in the middle of everything.
var errKilled = fmt.Errorf("killed")

// The law of checkpoints during training, over random mixes of schemes, however often and whenever the workers are
// paused, and wherever the run is killed afterwards. The run resumes and nobody hangs. In the end every push of every
// worker is in each shard once, except pushes that drop drops. No worker computes an iteration again that is in a
// checkpoint.
func TestPausesAndKillsKeepEachPushOnce(t *testing.T) {
	pauses, kills := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		c, rules := genCluster(t)
		p, k := playParts(t, c, rules)
		pauses, kills = pauses+p, kills+k
		for i := range c.plan.Shards {
			checkEachOnce(t, c.last, c.plan.Shards[i].ID)
		}
	})
	if pauses < 20 || kills < 10 {
		t.Errorf("%d pauses and %d kills: the test checks nothing", pauses, kills)
	}
}

// A pause keeps the bounds of shards beside a lead shard whose own bound is looser, or that has none: the lead shard has let
// workers go on that wait at another shard for slower ones.
func TestPausesKeepTheBoundsBesideALooserLeadShard(t *testing.T) {
	pauses := 0
	rapid.Check(t, func(t *rapid.T) {
		plan, err := shard.Cut([]shard.Param{{Name: "l0.w", N: 4}, {Name: "l1.w", Layer: 1, N: 4}}, shard.Options{
			Slice: "layer", MaxBytes: 8, Servers: rapid.IntRange(1, 2).Draw(t, "servers"), Rules: []string{"l1.*", "*"},
		})
		if err != nil {
			t.Fatal(err)
		}
		rules := make([]rule, 2)
		lead := plan.Shards[0].Rule
		rules[lead] = rapid.SampledFrom([]rule{
			{name: "asp"}, {name: "r2sp", params: &scheme.R2SPParams{Profile: 1, Delta: 0.25, DeltaRounds: 2, Smoothing: 0.2}},
			{name: "ssp", params: &scheme.SSPParams{Staleness: 3, Release: scheme.ReleaseSoft}},
		}).Draw(t, "lead")
		rules[1-lead] = rule{name: "ssp",
			params: &scheme.SSPParams{Staleness: rapid.Int64Range(0, 2).Draw(t, "s"), Release: scheme.ReleaseSoft, Cache: true}}
		workers := rapid.IntRange(2, 5).Draw(t, "workers")
		c := newOrderedCluster(plan, workers, rules, Budget{Samples: 200, PerPush: 10}, 25, "fifo", send.Options{})
		p, _ := playParts(t, c, rules)
		pauses += p
	})
	if pauses < 20 {
		t.Errorf("%d pauses: the test checks nothing", pauses)
	}
}

// playParts runs a cluster to its end. Workers are paused, and everything is killed, at drawn moments.
func playParts(t *rapid.T, c *cluster, rules []rule) (pauses, kills int) {
	rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 6))
	c.pick = rng.IntN
	c.overtake = rapid.Bool().Draw(t, "overtake")
	c.reads = c.readsOfCopies
	c.slowDisk = rapid.Bool().Draw(t, "slow")
	var phases [][]scheme.Phase
	for _, r := range rules {
		phases = append(phases, r.phases())
	}
	c.together = inturn.MustPauseInStep(phases, int(c.plan.Shards[0].Rule)) || rapid.Bool().Draw(t, "together")
	c.servers[0].together = c.together
	first := c
	last := c.resumeFrom(t, rules, c.cut(), true).cut() // a new run
	for part := 0; ; part++ {
		pauseAt, killAt, steps := rng.IntN(1+400*part), -1, 0
		if part < 4 {
			pauseAt = 1 + rng.IntN(250)
		}
		if rng.IntN(3) == 0 && part < 6 {
			killAt = 1 + rng.IntN(400)
		}
		paused := false
		c.trace = func(string, core.Input, []core.Effect) {
			if steps++; steps == pauseAt && part < 6 && !c.servers[0].halt.stopping {
				paused = true
				c.add(pending{line: "pause", node: c.servers[0], name: "s0", in: core.Input{Kind: core.PauseNow}})
			}
			if steps == killAt {
				c.problem = errKilled
			}
		}
		err := c.run(200000)
		if err == errKilled {
			kills++
			c = c.resumeFrom(t, rules, last, true)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !paused || c.servers[0].Spent() {
			break
		}
		pauses++
		last = c.cut()
		c = c.resumeFrom(t, rules, last, false)
	}
	first.last = c
	return pauses, kills
}

func checkEachOnce(t *rapid.T, c *cluster, id int32) {
	pushes, folded := map[string]bool{}, 0
	for w, computed := range c.computed {
		for k, i := range computed {
			if k > 0 && i <= computed[k-1] {
				t.Fatalf("worker %d computed %v", w, computed)
			}
			pushes[fmt.Sprintf("w%d.%d", w, i)] = true
		}
	}
	all := len(pushes)
	for _, push := range strings.Fields(strings.ReplaceAll(c.cut().content[id], "|", " ")) {
		if !pushes[push] {
			t.Fatalf("shard %d has %s twice, or nobody pushed it: %v", id, push, c.versions[id])
		}
		delete(pushes, push)
		folded++
	}
	st := c.servers[c.plan.Shards[id].Server].Shard(id)
	if st.Accepted != int64(folded) || st.Samples != 10*int64(folded) || all-folded > 0 && !c.mayDrop(id) {
		t.Fatalf("shard %d has %d of %d pushes and counts %d with %d samples; it lacks %v", id, folded, all, st.Accepted, st.Samples, pushes)
	}
}

// dropsStale says whether a scheme of the rule drops stale pushes.
func dropsStale(r rule) bool {
	return slices.ContainsFunc(r.phases(), func(ph scheme.Phase) bool {
		e, _ := scheme.All.Lookup(ph.Scheme)
		return e.DropsStale
	})
}

// mayDrop says whether a scheme of the shard, or a change between schemes, may drop pushes.
func (c *cluster) mayDrop(id int32) bool { return c.drops[c.plan.Shards[id].Rule] }
