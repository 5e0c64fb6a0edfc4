package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
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
	rested, plan := 0, layered(t, 4)
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
			node := c.prepared(NewWorker(int32(w), plan, c.policy(), 0))
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
	plan := layered(t, 3)
	rapid.Check(t, func(t *rapid.T) {
		seed, workers := rapid.Uint64().Draw(t, "seed"), rapid.IntRange(1, 4).Draw(t, "workers")
		name := rapid.SampledFrom([]string{"bsp", "asp", "ssp", "drop"}).Draw(t, "scheme")
		run := func(due func(int32, int64) bool) string {
			var b strings.Builder
			rules := []rule{{name: name}, {name: "bsp"}}
			c := newCluster(plan, workers, rules, Budget{Updates: int64(3 * workers)}, 0)
			c.pick, c.due = rand.New(rand.NewPCG(seed, 4)).IntN, due
			for w := range c.workers {
				c.workers[w] = c.prepared(NewWorker(int32(w), c.plan, c.policy(), 0))
			}
			c.trace = func(node string, in Input, out []Effect) { fmt.Fprintln(&b, node, in, out) }
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

// Each shard continues where its own server says. A shard that is sent past exchanges pushes the next one that it was
// let into; the others, and the worker, count on without a gap. When the worker leaves, each server is told what all of
// its shards have pushed.
func TestAShardIsSentPastItsOwnExchanges(t *testing.T) {
	plan := layered(t, 2)
	w := NewWorker(0, plan, fifo(), 0)
	w.SetDue(func(int32, int64) bool { return true }, []int64{0, 2})
	out := w.Step(Input{Kind: Begin}, nil)
	answer := func(into [2]int64, flags uint8) {
		for s := range plan.Shards {
			for _, p := range plan.Shards[s].Pieces {
				out = w.Step(Input{Kind: PieceLanded, Piece: p.ID}, out)
			}
			m := wire.Header{Kind: wire.Reply, Shard: int32(s), Iter: into[s]}
			if s == 0 {
				m.Flags = flags
			}
			out = w.Step(Input{Kind: Arrived, Msg: m}, out)
		}
	}
	iterate := func() {
		out = w.Step(Input{Kind: Forwarded, Msg: wire.Header{Samples: 1}}, out)
		for _, p := range plan.Pieces {
			out = w.Step(Input{Kind: PieceReady, Piece: p.ID}, out)
		}
		out = w.Step(Input{Kind: TaskDone}, out)
		for _, p := range plan.Pieces {
			out = w.Step(Input{Kind: PieceSent, Piece: p.ID}, out)
		}
	}
	answer([2]int64{0, 2}, 0)
	iterate()
	answer([2]int64{5, 3}, 0)
	iterate()
	answer([2]int64{6, 4}, wire.Stop)
	var got []string
	for _, e := range out {
		if e.Kind == Compute || e.Kind == Send && (e.Msg.Kind == wire.Push || e.Msg.Kind == wire.Pull) {
			got = append(got, strings.Split(e.String(), " seen")[0])
		} else if e.Kind == Send {
			got = append(got, fmt.Sprintf("Left to=%d iter=%d", e.To, e.Msg.Iter))
		}
	}
	home := func(s int) int32 { return plan.Shards[s].Server }
	want := []string{
		fmt.Sprintf("Send to=%d Pull w0 shard0 iter=0", home(0)), fmt.Sprintf("Send to=%d Pull w0 shard1 iter=2", home(1)), "Compute iter=0",
		fmt.Sprintf("Send to=%d Push w0 shard0 iter=0", home(0)), fmt.Sprintf("Send to=%d Pull w0 shard0 iter=1", home(0)),
		fmt.Sprintf("Send to=%d Push w0 shard1 iter=2", home(1)), fmt.Sprintf("Send to=%d Pull w0 shard1 iter=3", home(1)), "Compute iter=1",
		fmt.Sprintf("Send to=%d Push w0 shard0 iter=5", home(0)), fmt.Sprintf("Send to=%d Pull w0 shard0 iter=6", home(0)),
		fmt.Sprintf("Send to=%d Push w0 shard1 iter=3", home(1)), fmt.Sprintf("Send to=%d Pull w0 shard1 iter=4", home(1)),
	}
	left := map[int32]int64{home(0): 6}
	if home(1) == home(0) {
		left[home(0)] = 4
	} else {
		left[home(1)] = 4
	}
	for m := range int32(plan.Servers) {
		want = append(want, fmt.Sprintf("Left to=%d iter=%d", m, left[m]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the worker does\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Exchange clocks and work policies refuse settings that they do not go with.
func TestAxesRefuseIncompatibleSettings(t *testing.T) {
	due, work := func(int32, int64) bool { return true }, &giver{}
	for what, do := range map[string]func(w *Worker){
		"clocks and rounds":       func(w *Worker) { w.InRounds(); w.SetDue(due, nil) },
		"clocks and work":         func(w *Worker) { w.SetWork(work, 2); w.SetDue(due, nil) },
		"clocks and copies":       func(w *Worker) { w.KeepCopies(func(int) Copy { return Copy{Kind: scheme.Cached} }); w.SetDue(due, nil) },
		"work and rounds":         func(w *Worker) { w.InRounds(); w.SetWork(work, 2) },
		"work and an early start": func(w *Worker) { w.StartEarly(func(int) bool { return false }); w.SetWork(work, 2) },
		"work and copies":         func(w *Worker) { w.KeepCopies(func(int) Copy { return Copy{Kind: scheme.Cached} }); w.SetWork(work, 2) },
		"work and shared memory":  func(w *Worker) { w.ShareMemory(func(int32) bool { return true }); w.SetWork(work, 2) },
		"clocks, nothing else":    nil,
	} {
		func() {
			defer func() {
				if got := recover() != nil; got != (do != nil) {
					t.Errorf("%s: refused: %v", what, got)
				}
			}()
			w := NewWorker(0, threeShards(t), fifo(), 0)
			if do == nil {
				w.SetDue(due, []int64{3, 4, 5})
				return
			}
			do(w)
		}()
	}
}

// A worker that comes back finds the iteration from the exchanges that the shards let it into: where the shards are exchanged in turn,
// all of them are then due as for the others, and the numbers of the exchanges follow.
func TestAWorkerComesBackInTheTurnOfTheOthers(t *testing.T) {
	plan := threeShards(t)
	n := int64(len(plan.Shards))
	due := func(s int32, iter int64) bool { return iter%n == int64(s) }
	clock := func(s int32, iter int64) int64 { return (iter + n - 1 - int64(s)) / n }
	for start := range int64(7) {
		for others := start; others < start+11; others++ {
			turns := make([]int64, n)
			for s := range turns {
				turns[s] = clock(int32(s), start)
			}
			w := NewJoining(0, plan, fifo(), 1, start)
			w.SetDue(due, turns)
			out := w.Step(Input{Kind: Begin}, nil)
			for s := range plan.Shards {
				for _, p := range plan.Shards[s].Pieces {
					out = w.Step(Input{Kind: PieceLanded, Piece: p.ID}, out)
				}
				out = w.Step(Input{Kind: Arrived, Msg: wire.Header{Kind: wire.Reply, Shard: int32(s), Iter: clock(int32(s), others)}}, out)
			}
			if w.State() != Computing || w.Iter() != others {
				t.Fatalf("from iteration %d, beside workers at %d: %v", start, others, w)
			}
			for s := range int32(n) {
				if due(s, others) && w.exchangeIter(s) != clock(s, others) || w.isResting(s) == due(s, others) {
					t.Fatalf("from iteration %d, beside workers at %d: shard %d is at exchange %d, resting: %v", start, others, s,
						w.exchangeIter(s), w.isResting(s))
				}
			}
		}
	}
}
