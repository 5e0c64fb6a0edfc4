package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
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
	c.scheduler = NewScheduler(workers)
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
		c.trace = func(node string, in Input, out []Effect) {
			for _, e := range out {
				switch {
				case e.Kind == Send && e.Msg.Kind == wire.Pull && e.Msg.Iter > 0 && landed[e.Msg.Iter-1] != shards*workers:
					t.Fatalf("%s pulls for iteration %d when %d of %d pushes are acknowledged", node, e.Msg.Iter, landed[e.Msg.Iter-1], shards*workers)
				case e.Kind == Send && e.Msg.Kind == wire.Ack && strings.HasPrefix(node, "s") && in.Kind == PieceLanded:
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

// A worker that waits at the barrier says so, and a message at a wrong time is our own bug.
func TestAtTheBarrier(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a.w", N: 2}},
		shard.Options{Slice: "range", MaxBytes: 16, Servers: 1, Rules: []string{"*"}, Keys: shard.KeysTensor})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := send.All.Lookup("fifo")
	w := NewWorker(0, plan, e.New(send.Options{}), 0)
	w.InRounds()
	step := func(in Input) string {
		var kinds []string
		for _, e := range w.Step(in, nil) {
			kinds = append(kinds, e.Kind.String())
		}
		return strings.Join(kinds, " ")
	}
	step(Input{Kind: Begin})
	step(Input{Kind: Arrived, Msg: wire.Header{Kind: wire.Reply}})
	step(Input{Kind: PieceLanded})
	step(Input{Kind: Forwarded, Msg: wire.Header{Samples: 1}})
	if got := step(Input{Kind: PieceReady}); got != "Send SendPiece" {
		t.Errorf("the last piece of a shard gave %q: no pull may follow it", got)
	}
	step(Input{Kind: TaskDone})
	step(Input{Kind: PieceSent})
	if w.AtBarrier() {
		t.Error("at the barrier before the push was acknowledged")
	}
	if got := step(Input{Kind: Arrived, Msg: wire.Header{Kind: wire.Ack}}); got != "SendBarrier" || !w.AtBarrier() {
		t.Errorf("the acknowledgement gave %q", got)
	}
	if got := step(Input{Kind: Arrived, Msg: wire.Header{Kind: wire.Release}}); got != "Expect Send" || w.AtBarrier() {
		t.Errorf("the release gave %q", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second release was accepted")
		}
	}()
	step(Input{Kind: Arrived, Msg: wire.Header{Kind: wire.Release}})
}
