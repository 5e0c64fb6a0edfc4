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
)

// genRounds makes a cluster whose workers work in rounds, under bsp.
func genRounds(t *rapid.T) *cluster {
	var params []shard.Param
	for l := range rapid.IntRange(1, 4).Draw(t, "layers") {
		params = append(params, shard.Param{Name: fmt.Sprintf("l%d.w", l), Layer: l, N: rapid.IntRange(1, 9).Draw(t, "n")})
	}
	plan, err := shard.Cut(params, shard.Options{Slice: rapid.SampledFrom(shard.Slices()).Draw(t, "slice"), MaxBytes: 16,
		Servers: rapid.IntRange(1, 3).Draw(t, "servers"), Rules: []string{"*"},
		Keys: rapid.SampledFrom(append(shard.KeyForms(), "")).Draw(t, "keys")})
	if err != nil {
		t.Fatal(err)
	}
	workers := rapid.IntRange(1, 5).Draw(t, "workers")
	c := newCluster(plan, workers, []rule{{name: "bsp"}}, Budget{Updates: int64(rapid.IntRange(1, 6).Draw(t, "updates"))}, 0)
	for _, s := range c.servers {
		s.acks = true
	}
	for _, w := range c.workers {
		w.InRounds()
	}
	c.scheduler = core.NewScheduler(workers)
	return c
}

// In whatever order messages arrive: no worker pulls before all have pushed everything, no pull is delayed, every
// version contains one push of each worker, and all workers end after the same iteration.
func TestRoundsUnderRandomOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := genRounds(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2))
		c.pick = rng.IntN
		c.overtake = rapid.Bool().Draw(t, "overtake")
		c.deliverTwice = func() bool { return rng.IntN(8) == 0 }
		landed := map[int64]int{} // by iteration: pushes that are acknowledged, over all shards and workers
		shards, workers := len(c.plan.Shards), len(c.workers)
		c.trace = func(node string, in core.Input, out []core.Effect) {
			for _, e := range out {
				switch {
				case e.Kind == core.Send && e.Msg.Kind == wire.Pull && e.Msg.Iter > 0 && landed[e.Msg.Iter-1] != shards*workers:
					t.Fatalf("%s pulls for iteration %d when %d of %d pushes are acknowledged", node, e.Msg.Iter, landed[e.Msg.Iter-1], shards*workers)
				case e.Kind == core.Send && e.Msg.Kind == wire.Ack && strings.HasPrefix(node, "s") && in.Kind == core.PieceLanded:
					landed[e.Msg.Iter]++
				}
			}
		}
		if err := c.run(200000); err != nil {
			t.Fatal(err)
		}
		if err := c.scheduler.Check(); err != nil {
			t.Fatal(err)
		}
		iters := int(c.iters[0])
		if slices.ContainsFunc(c.iters, func(n int64) bool { return n != c.iters[0] }) || c.releases != iters*workers {
			t.Fatalf("the workers computed %v iterations, and were released %d times", c.iters, c.releases)
		}
		for id := range c.plan.Shards {
			if got := c.versions[int32(id)]; len(got) != iters {
				t.Fatalf("shard %d has %d versions after %d iterations: %v", id, len(got), iters, got)
			}
			for i, version := range c.versions[int32(id)] {
				want := ""
				for w := range workers {
					want += fmt.Sprintf(" w%d.%d", w, i)
				}
				if version != want {
					t.Fatalf("shard %d, version %d holds%s, want%s", id, i+1, version, want)
				}
			}
			if st := c.servers[c.plan.Shards[id].Server].Shard(int32(id)).Stats; st.Delayed != 0 {
				t.Fatalf("shard %d delayed %d pulls", id, st.Delayed)
			}
		}
	})
}
