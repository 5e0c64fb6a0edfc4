package servernode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/core"
	"fluentps/internal/core/coretest"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/workernode"
	"fluentps/ps/scheme"
)

// A version that is named in advance is saved once by every shard, and by every worker as it begins the next iteration,
// at whatever moment it was asked for. It contains the pushes of all earlier iterations. If the run ends before that
// iteration, no shard or no worker saves.
func TestEveryShardAndWorkerSavesTheSameVersion(t *testing.T) {
	const updates, workers = 8, 3
	whole, none := 0, 0
	for at := 1; at < 600; at++ {
		c := newCluster(coretest.ThreeShards(t), workers,
			[]rule{{name: "bsp"},
				{name: "ssp", common: scheme.Common{Fold: scheme.FoldRank},
					params: &scheme.SSPParams{Release: scheme.ReleaseSoft}}}, Budget{Updates: updates}, 0)
		c.pick = rand.New(rand.NewPCG(uint64(at), 9)).IntN
		c.overtake, c.slowDisk = at%2 == 0, at%3 == 0
		steps, asked := 0, false
		saved, took := map[int32][]int64{}, map[int32][]int64{}
		c.trace = func(name string, in core.Input, out []core.Effect) {
			if steps++; steps == at {
				asked = true
				c.add(pending{line: "save", node: c.servers[0], name: "s0", in: core.Input{Kind: core.SaveSoon}})
			}
			for _, e := range out {
				if e.Kind == core.Save {
					saved[e.Shard] = append(saved[e.Shard], e.Iter)
					if q := c.servers[c.plan.Shards[e.Shard].Server].Saved(e.Shard); q.Version != e.Iter ||
						q.Samples != 10*workers*e.Iter || q.Rated != workers*e.Iter {
						t.Fatalf("asked at step %d: shard %d saves version %d with %+v", at, e.Shard, e.Iter, q)
					}
				}
			}
			for _, w := range c.workers {
				if fmt.Sprintf("w%d", w.Me()) != name {
					continue
				}
				if iter, due := w.TakeSave(); due {
					took[w.Me()] = append(took[w.Me()], iter)
					if c.sends(w) || w.Iter() != iter {
						t.Fatalf("asked at step %d: worker %d saves for iteration %d in state %v", at, w.Me(), iter, w)
					}
				}
			}
		}
		if err := c.run(100000); err != nil {
			t.Fatalf("asked at step %d: %v", at, err)
		}
		if !asked {
			break
		}
		if len(saved) == 0 {
			none++
			if len(took) > 0 {
				t.Fatalf("asked at step %d: workers save %v, and no shard does", at, took)
			}
			continue
		}
		k := saved[0][0]
		for id := range int32(3) {
			if !slices.Equal(saved[id], []int64{k}) {
				t.Fatalf("asked at step %d: the shards save %v", at, saved)
			}
		}
		for w := range int32(workers) {
			if k < updates && !slices.Equal(took[w], []int64{k}) || k == updates && len(took) > 0 {
				t.Fatalf("asked at step %d: the shards save version %d of %d, and the workers for %v", at, k, updates, took)
			}
		}
		whole++
	}
	if whole < 50 || none < 5 {
		t.Errorf("%d runs saved and %d did not: the test checks nothing", whole, none)
	}
}

// A resumed cluster continues where the other stopped: with the next iterations, in the same versions, with the saved
// clocks. If the budget is used up, no worker may start.
func TestAResumedClusterContinues(t *testing.T) {
	rules := []rule{{name: "bsp"}, {name: "asp"}}
	first := newCluster(coretest.ThreeShards(t), 3, rules, Budget{Updates: 4}, 0)
	if err := first.run(100000); err != nil {
		t.Fatal(err)
	}
	for _, updates := range []int64{4, 9} {
		c := newCluster(coretest.ThreeShards(t), 3, rules, Budget{Updates: updates}, 0)
		starts := make([]int64, 3)
		for w := range starts {
			starts[w] = first.workers[w].Next()
			c.workers[w] = c.prepared(workernode.New(int32(w), c.plan, c.policy(), starts[w]))
		}
		for m, s := range c.servers {
			saved, schemes := map[int32]Saved{}, map[int32]inturn.ShardScheme{}
			for _, id := range s.Shards() {
				saved[id] = first.servers[m].Saved(id)
				ss, err := inturn.NewShardSchemes(rules[c.plan.Shards[id].Rule].phases(),
					scheme.Env{Workers: 3, Shards: []int32{id}, Clocks: starts, Start: saved[id].Version, Seed: 7}, 0)
				if err != nil {
					t.Fatal(err)
				}
				schemes[id] = ss
			}
			c.servers[m] = New(Config{Me: int32(m), Plan: c.plan, Workers: 3, Schemes: schemes, Budget: Budget{Updates: updates}})
			c.servers[m].Resume(starts, saved)
		}
		if err := c.run(100000); err != nil {
			t.Fatal(err)
		}
		for w, computed := range c.computed {
			var want []int64
			for i := starts[w]; i < updates; i++ {
				want = append(want, i)
			}
			if !slices.Equal(computed, want) {
				t.Errorf("until %d: worker %d computed %v, want %v", updates, w, computed, want)
			}
		}
		for id := range int32(3) {
			s, before := c.servers[c.plan.Shards[id].Server].Shard(id), first.servers[c.plan.Shards[id].Server].Shard(id)
			per := int64(1)
			if rules[c.plan.Shards[id].Rule].name == "asp" {
				per = 3
			}
			if s.Version != before.Version+per*(updates-4) || s.Samples != before.Samples+30*(updates-4) || s.Stats.Skipped != 0 {
				t.Errorf("until %d: shard %d is at %+v, was at %+v", updates, id, s, before)
			}
		}
	}
}

// The memory of a scheme survives a resume: here it is the significance of each worker's last push.
func TestASavedMemoryGoesOn(t *testing.T) {
	significant := rule{name: "pssp",
		params: &scheme.PSSPParams{Mode: scheme.PSSPDynamic, Probability: 0.5, Alpha: 1, Significance: true,
			Centre: scheme.PSSPCentreS, CutOff: true, Coin: scheme.PSSPCoinServer, Release: scheme.ReleaseSoft}}
	c := newCluster(coretest.ThreeShards(t), 3, []rule{significant, {name: "bsp"}}, Budget{Updates: 40}, 0)
	c.pick = rand.New(rand.NewPCG(3, 4)).IntN
	if err := c.run(100000); err != nil {
		t.Fatal(err)
	}
	learnt := false
	for _, s := range c.servers {
		for _, id := range s.Shards() {
			q := s.Saved(id)
			if (len(q.Memory) > 0) != (c.plan.Shards[id].Rule == 0) {
				t.Errorf("shard %d of rule %d saves a memory of %d bytes", id, c.plan.Shards[id].Rule, len(q.Memory))
			}
			if len(q.Memory) == 0 {
				continue
			}
			fresh := mustScheme(significant, []int32{id}, 0, 3).Scheme.(scheme.Learning).Memory()
			learnt = learnt || !slices.Equal(q.Memory, fresh)
			env := scheme.Env{Workers: 3, Shards: []int32{id}, Clocks: []int64{1, 2, 3}, Start: 6, Memory: q.Memory}
			ss, err := inturn.NewShardSchemes(significant.phases(), env, 0)
			if err != nil || !slices.Equal(ss.Scheme.(scheme.Learning).Memory(), q.Memory) {
				t.Errorf("shard %d resumes with another memory: %v", id, err)
			}
			if _, err := inturn.NewShardSchemes(rule{name: "dssp"}.phases(), env, 0); err == nil ||
				!strings.Contains(err.Error(), "is of another scheme") {
				t.Errorf("the memory of pssp for dssp: %v", err)
			}
		}
	}
	if !learnt {
		t.Error("no shard has a memory")
	}
}

// Workers that resume at unequal clocks, because the run was asynchronous before, must all see the mark: the worker
// that starts furthest gets no reply into an earlier iteration.
func TestASaveComesAfterEveryFirstIteration(t *testing.T) {
	c := newCluster(coretest.ThreeShards(t), 3,
		[]rule{{name: "bsp"},
			{name: "ssp", common: scheme.Common{Fold: scheme.FoldRank},
				params: &scheme.SSPParams{Release: scheme.ReleaseSoft}}}, Budget{Updates: 30}, 0)
	s := c.servers[0]
	s.Resume([]int64{5, 20, 6}, map[int32]Saved{})
	s.Step(core.Input{Kind: core.SaveSoon}, nil)
	if s.saveIter != 21 {
		t.Errorf("iteration %d is marked, and a worker begins with 20", s.saveIter)
	}
}
