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
	"fluentps/internal/core/shard"
	"fluentps/internal/core/workernode"
	"fluentps/ps/scheme"
)

// revive brings a killed worker back, once every server knows that it has left.
func (c *cluster) revive(me int32) bool {
	for _, p := range c.pending {
		if p.in.Msg.Kind == wire.Left && p.in.Msg.Worker == me {
			return false
		}
	}
	c.lives[me]++
	w := c.prepared(workernode.NewJoining(me, c.plan, c.policy(), c.lives[me], c.workers[me].Clock()))
	c.workers[me] = w
	name := fmt.Sprintf("w%d", me)
	c.add(pending{line: name, node: w, name: name, in: core.Input{Kind: core.Begin}})
	return true
}

// killsAndRevives makes workers vanish at some steps and come back at later ones, and counts those that came back.
func (c *cluster) killsAndRevives(rng *rand.Rand) (back *int) {
	back = new(int)
	type life struct {
		me           int32
		dies, joins  int
		gone, joined bool
	}
	var lives []*life
	for range 1 + rng.IntN(4) {
		dies := rng.IntN(160)
		lives = append(lives, &life{me: int32(rng.IntN(len(c.workers))), dies: dies, joins: dies + rng.IntN(120)})
	}
	step := 0
	c.trace = func(string, core.Input, []core.Effect) {
		step++
		for _, l := range lives {
			w := c.workers[l.me]
			if !l.gone && step >= l.dies && w.State() != core.Finished && !slices.Contains(c.dead, w) {
				l.gone = true
				c.kill(w, fmt.Sprintf("w%d", l.me))
			}
			if l.gone && !l.joined && step >= l.joins {
				l.joined = true // once all effects of this step were obeyed
				c.add(pending{line: "revive", node: deadNode{}, name: "nobody", then: func() {
					if !slices.Contains(c.dead, c.workers[l.me]) {
						return // another of its lives has begun
					}
					if l.joined = c.revive(l.me); l.joined {
						*back++
					}
				}})
			}
		}
	}
	return back
}

// The laws when workers die and come back, under all mixes of schemes and changes: nobody hangs, a worker's pushes
// before its death count once, those after it too, and leads keep their bound.
func TestLawsWhenWorkersComeBack(t *testing.T) {
	total := 0
	rapid.Check(t, func(t *rapid.T) {
		c, rules := genCluster(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 5))
		c.pick = rng.IntN
		c.overtake = rapid.Bool().Draw(t, "overtake")
		c.reads = c.readsOneVersion
		back := c.killsAndRevives(rng)
		if err := c.run(200000); err != nil {
			t.Fatal(err)
		}
		total += *back
		for i := range c.plan.Shards {
			checkLives(t, c, int32(i), rules[c.plan.Shards[i].Rule].phases())
		}
		checkContributors(t, c, rules, true)
	})
	t.Logf("%d workers came back", total)
	if total < 10 {
		t.Errorf("only %d workers came back", total)
	}
}

// readsOneVersion checks that all pieces of a shard that a worker reads are of one version.
func (c *cluster) readsOneVersion(w *workernode.Worker, iter int64) error {
	for i := range c.plan.Shards {
		pieces := c.plan.Shards[i].Pieces
		want := c.arena[[2]int32{w.Me(), pieces[0].ID}]
		for _, p := range pieces[1:] {
			if got := c.arena[[2]int32{w.Me(), p.ID}]; got != want {
				return fmt.Errorf("w%d computes %d on%s in piece %d and on%s in piece %d of shard %d", w.Me(), iter, want, pieces[0].ID, got, p.ID, i)
			}
		}
	}
	return nil
}

func checkLives(t *rapid.T, c *cluster, id int32, phases []scheme.Phase) {
	folded := map[string]bool{}
	last := 0
	for _, version := range c.versions[id] {
		for _, push := range strings.Fields(version) {
			var w int32
			var i int64
			if _, err := fmt.Sscanf(push, "w%d.%d", &w, &i); err != nil || folded[push] || !slices.Contains(c.computed[w], i) {
				t.Fatalf("shard %d folded %s twice, or nobody pushed it: %v of %v", id, push, c.versions[id], c.computed)
			}
			folded[push] = true
			k := phaseOf(phases, i)
			if k < last {
				t.Fatalf("shard %d %v: %s is folded after a push of scheme %d: %v", id, phases, push, last, c.versions[id])
			}
			last = k
		}
	}
	st := c.servers[c.plan.Shards[id].Server].Shard(id)
	if n := int64(len(folded)); st.Accepted != n || st.Stats.Pushes != n+st.Stats.Dropped || st.Version != int64(len(c.versions[id])) {
		t.Fatalf("shard %d counts %+v, %d pushes were folded into %d versions", id, st, n, len(c.versions[id]))
	}
	for iter, lead := range c.lead[id] {
		ph := phases[phaseOf(phases, iter)]
		e, _ := scheme.All.Lookup(ph.Scheme)
		if bound, ok := e.LeadMax(ph.Params); ok && lead > bound {
			t.Fatalf("shard %d %s let a worker lead by %d into iteration %d, the bound is %d", id, ph.Scheme, lead, iter, bound)
		}
	}
}

// A worker that comes back continues at v, where the others are.
func TestAWorkerThatComesBackStartsAtV(t *testing.T) {
	n := newLone(t, 3, mustScheme(rule{name: "bsp"}, []int32{0}, 0, 3))
	n.leave(2)
	for i := range int64(4) {
		n.push(0, i)
		n.push(1, i)
	}
	n.join(2)
	n.expect("w2@4")
	n.push(0, 4)
	n.push(1, 4)
	n.pull(0, 5)
	n.pull(1, 5)
	n.expect("") // the others wait for it again
	n.push(2, 4)
	n.pull(2, 5)
	n.expect("w0@5 w1@5 w2@5")
	if got := n.s.Shard(0); got.Version != 5 || got.Stats.Skipped != 4 || got.Stats.Pushes != 11 {
		t.Errorf("%+v, want 5 versions of 11 pushes, and iterations 0 to 3 of worker 2 skipped", got)
	}
}

// A worker that comes back continues after its last push, which counts, and it waits at the gate like the others.
func TestAWorkerThatComesBackDoesNothingTwice(t *testing.T) {
	n := newLone(t, 2, mustScheme(rule{name: "ssp", params: &scheme.SSPParams{Staleness: 1, Release: scheme.ReleaseSoft}}, []int32{0}, 0, 2))
	n.pull(1, 0)
	n.push(0, 0)
	n.pull(0, 1)
	n.push(0, 1)
	n.expect("w1@0 w0@1")
	n.leave(0)
	n.join(0)
	n.expect("") // its clock is 2, v is 0, and the lead may be 1
	n.push(1, 0)
	n.expect("w0@2")
	n.step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Push, Worker: 0, Iter: 1, Parts: 1, Samples: 1}})
	if got := n.s.Shard(0); got.Stats.Duplicates != 1 || got.Version != 3 {
		t.Errorf("%+v, want the push of its last life ignored", got)
	}
}

// A reply that waited until the one before had left vanishes with its worker: it answers no pull of the next life.
func TestAReplyThatWaitedVanishesWithItsWorker(t *testing.T) {
	n := newLone(t, 2, mustScheme(rule{name: "ssp", params: &scheme.SSPParams{Release: scheme.ReleaseSoft}}, []int32{0}, 0, 2))
	n.slow = []core.Input{}
	n.pull(0, 0)
	n.push(1, 0)
	n.push(0, 0)
	n.pull(0, 1)
	n.expect("w0@0") // the reply for 1 was decided, and waits
	n.leave(0)
	n.push(1, 1)
	n.leave(1)
	n.join(1)
	n.join(0)
	n.expect("w1@2")
	n.step(n.slow[0])
	n.expect("w0@2")
}

// Where all workers have left, a push past a change takes nobody past it.
func TestAWorkerThatComesBackGoesNoFurtherThanTheChange(t *testing.T) {
	n := newLone(t, 2, mustScheme(rule{name: "bsp", until: []int64{5}, then: []rule{{name: "bsp"}}}, []int32{0}, 0, 2))
	n.push(0, 10)
	n.leave(0)
	n.leave(1)
	n.join(1)
	n.expect("w1@5")
}

// If nobody noticed the end of a life, it ends with the next one: half a push is forgotten, an open pull vanishes.
func TestAJoinEndsTheLifeBefore(t *testing.T) {
	n := newLone(t, 2, mustScheme(rule{name: "bsp"}, []int32{0}, 0, 2))
	n.push(0, 0)
	n.pull(0, 1)
	n.step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Push, Worker: 1, Owner: 1, Iter: 0, Parts: 1, Samples: 1}})
	n.join(1)
	n.expect("w0@1 w1@1") // without worker 1 iteration 0 is over
	if n.unstaged != 1 || n.s.Shard(0).Version != 1 {
		t.Errorf("%d unstaged, %+v", n.unstaged, n.s.Shard(0))
	}
}

// A server that was done when all workers had left is not done when one comes back, and is done again when that one has
// left.
func TestAServerIsDoneAgainWhenTheLastHasLeftAgain(t *testing.T) {
	n := newLone(t, 1, mustScheme(rule{name: "asp"}, []int32{0}, 0, 1))
	n.push(0, 0)
	n.leave(0)
	if n.done != 1 {
		t.Fatalf("done %d times", n.done)
	}
	n.join(0)
	n.expect("w0@1")
	n.push(0, 1)
	n.leave(0)
	if n.done != 2 || n.s.Shard(0).Version != 2 {
		t.Errorf("done %d times, %+v", n.done, n.s.Shard(0))
	}
}

// A worker that comes back behind a change of scheme is admitted at the change, not before. If it comes back before the
// change, the change waits for it.
func TestAWorkerThatComesBackAroundAChange(t *testing.T) {
	r := rule{name: "bsp", until: []int64{2}, then: []rule{{name: "asp"}}}
	n := newLone(t, 2, mustScheme(r, []int32{0}, 0, 2))
	n.push(0, 0)
	n.leave(1)
	n.join(1)
	n.expect("w1@1")
	n.push(0, 1)
	n.pull(0, 2)
	n.expect("")
	n.leave(1)
	n.expect("w0@2")
	n.join(1)
	n.push(0, 2)
	n.pull(0, 3)
	n.expect("w1@2 w0@3") // asp lets it go on
}

// Two workers come back at one clock; the last pushes of each had reached one of two shards. If each shard went by the
// pushes that it has, each worker would wait, at another shard, for a push that the other makes only after it is
// admitted.
func TestWorkersThatComeBackDoNotWaitForEachOther(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 2}}, shard.Options{Slice: "even", MaxBytes: 4, Servers: 2, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	for id := range int32(2) {
		n := newLoneOf(t, plan, id, 2, mustScheme(rule{name: "bsp"}, []int32{id}, int(id), 2))
		n.push(id, 0) // worker 0 at shard 0, worker 1 at shard 1
		n.leave(0)
		n.leave(1)
		for w := range int32(2) {
			n.step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Joined, Worker: w, Iter: 1, Clock: 1}})
		}
		n.expect("w0@1 w1@1")
	}
}

// A message about a life that is out of date changes nothing, and one about a life that was missed counts.
func TestNewsOfLivesMayOvertakeEachOther(t *testing.T) {
	n := newLone(t, 2, mustScheme(rule{name: "asp"}, []int32{0}, 0, 2))
	news := func(kind wire.Kind, life int64) {
		n.step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: kind, Worker: 0, Clock: life}})
	}
	news(wire.Left, 0)
	news(wire.Joined, 1)
	n.expect("w0@0")
	news(wire.Joined, 1)
	news(wire.Left, 0)
	if n.s.members.left[0] || n.s.members.present != 2 || n.s.members.endedLives != 1 {
		t.Errorf("left %v, %d here, %d lives ended: news of life 0 ended life 1", n.s.members.left[0], n.s.members.present,
			n.s.members.endedLives)
	}
	news(wire.Left, 3) // the server never heard of lives 2 and 3
	news(wire.Joined, 3)
	n.expect("")
	if !n.s.members.left[0] || n.s.members.present != 1 || n.s.members.endedLives != 4 {
		t.Errorf("left %v, %d here, %d lives ended, want 4", n.s.members.left[0], n.s.members.present, n.s.members.endedLives)
	}
}
