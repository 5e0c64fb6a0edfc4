package scheme_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// dropRun plays a run of drop. It calls see for each event with the decisions, v (the commits so far) after it, and v
// of each worker's parameters. It ends at the first worker that leaves.
func dropRun(t *rapid.T, keys schemetest.Variant, workers int, see func(ev scheme.Event, ds []scheme.Decision, v int64, read []int64)) {
	env := scheme.Env{Workers: workers, Shards: []int32{schemetest.Shard}, Servers: 1}
	v, read, over := int64(0), make([]int64, workers), false
	d := schemetest.Driver{Env: env, Plain: true, See: func(ev scheme.Event, ds []scheme.Decision) {
		if over = over || ev.Kind == scheme.Left; over {
			return
		}
		before := slices.Clone(read)
		for _, d := range ds {
			switch d.Kind {
			case scheme.Commit:
				v++
			case scheme.Reply:
				read[d.Worker] = v
			}
		}
		see(ev, ds, v, before)
	}}
	d.Run(t, keys.New(env))
}

// TestDropTakesExactlyTheRequired: Sync-opt [A], invariants: exactly N_t gradients enter each update, no fewer and
// no more, each computed at the current version (staleness 0); all others are dropped and change nothing.
func TestDropTakesExactlyTheRequired(t *testing.T) {
	dropped := 0
	for _, fold := range []string{"rank", "arrival"} {
		for _, c := range [][2]int{{2, 1}, {3, 2}, {4, 3}, {5, 2}, {5, 5}} {
			keys := setting(t, "drop", fmt.Sprintf("fold=%s required=%d", fold, c[1]))
			rapid.Check(t, func(rt *rapid.T) {
				var folded []int32
				dropRun(rt, keys, c[0], func(ev scheme.Event, ds []scheme.Decision, v int64, read []int64) {
					for _, d := range ds {
						switch d.Kind {
						case scheme.Drop:
							dropped++
							if ev.Iter >= v {
								rt.Fatalf("%v at v=%d: %v", ev, v, d)
							}
						case scheme.Fold:
							folded = append(folded, d.Worker)
							if staleness := d.Iter - read[d.Worker]; staleness != 0 {
								rt.Fatalf("%v: %v of a gradient that is %d versions old", ev, d, staleness)
							}
						case scheme.Commit:
							if len(folded) != c[1] || d.Iter != v-1 || d.Samples != int64(32*c[1]) {
								rt.Fatalf("%v: %v of %v at v=%d, want %d workers", ev, d, folded, v, c[1])
							}
							if fold == "rank" && !slices.IsSorted(folded) {
								rt.Fatalf("%v: folded %v, want them in rank order", ev, folded)
							}
							folded = nil
						}
					}
				})
			})
		}
	}
	if dropped == 0 {
		t.Error("no push was ever dropped")
	}
}

// TestDropCatchesUp: condition table of FluentPS, row drop stragglers [R]: a push with i < V_train is not applied, but
// acknowledged. Here the reply to the pull behind it does that at once, and names v. No worker may start an iteration
// beyond v. That bounds a fast worker, so at most one push per worker is staged.
func TestDropCatchesUp(t *testing.T) {
	keys := setting(t, "drop", "fold=rank required=2")
	behind := 0
	rapid.Check(t, func(rt *rapid.T) {
		staged := map[int32]bool{}
		dropRun(rt, keys, 4, func(ev scheme.Event, ds []scheme.Decision, v int64, _ []int64) {
			if ev.Kind == scheme.Pushed {
				if staged[ev.Worker] {
					rt.Fatalf("%v: its last push is still staged", ev)
				}
				staged[ev.Worker] = true
			}
			answered := false
			for _, d := range ds {
				switch d.Kind {
				case scheme.Fold, scheme.Drop:
					staged[d.Worker] = false
				case scheme.Reply:
					answered = answered || d.Worker == ev.Worker
					if d.Iter != v {
						rt.Fatalf("%v: %v at v=%d", ev, d, v)
					}
				}
			}
			if ev.Kind == scheme.Wanted && answered != (ev.Iter <= v) {
				rt.Fatalf("%v at v=%d: answered %v", ev, v, answered)
			}
			if ev.Kind == scheme.Wanted && ev.Iter < v {
				behind++
			}
		})
	})
	if behind == 0 {
		t.Error("nobody was ever behind")
	}
}

// TestDropWithSlowWorkers: Sync-opt [A], invariants: up to b = N - N_t workers may be slow forever without blocking
// anybody, and the number of updates in a given time does not depend on b then. With one more slow worker, all wait.
func TestDropWithSlowWorkers(t *testing.T) {
	updates := func(workers, required, slow int) int {
		s := shardOf(setting(t, "drop", fmt.Sprintf("fold=rank required=%d", required)), workers)
		count := &counted{Scheme: s}
		l := timeline{scheme: count, until: 100, period: func(w int) float64 {
			if w < slow {
				return 1000
			}
			return 1
		}}
		l.run(workers, 1<<30)
		return count.commits
	}
	for _, c := range []struct{ workers, required, slow, want int }{
		{3, 3, 0, 100}, {4, 3, 1, 100}, {6, 3, 3, 100}, {8, 3, 5, 100}, {4, 3, 2, 0}, {4, 4, 1, 0},
	} {
		if got := updates(c.workers, c.required, c.slow); got != c.want {
			t.Errorf("%d workers, %d required, %d slow: %d updates in the time of 100 iterations, want %d", c.workers,
				c.required, c.slow, got, c.want)
		}
	}
}

// counted counts commits.
type counted struct {
	scheme.Scheme
	commits int
}

func (c *counted) Step(ev scheme.Event, out []scheme.Decision) []scheme.Decision {
	n := len(out)
	out = c.Scheme.Step(ev, out)
	for _, d := range out[n:] {
		if d.Kind == scheme.Commit {
			c.commits++
		}
	}
	return out
}

// TestDropContributorsOfTwoShards: Sync-opt [A], "subtle": with one accumulator per variable the set of contributors
// may differ between variables. Likewise it may differ between our shards.
func TestDropContributorsOfTwoShards(t *testing.T) {
	contributors := func(order ...int32) (set []int32) {
		s := shardOf(setting(t, "drop", "fold=rank required=2"), 3)
		for _, w := range order {
			for _, d := range s.Step(scheme.Event{Kind: scheme.Pushed, Worker: w, Owner: w, Parts: 1, Samples: 1}, nil) {
				if d.Kind == scheme.Fold {
					set = append(set, d.Worker)
				}
			}
		}
		return set
	}
	a, b := contributors(2, 0, 1), contributors(1, 2, 0)
	if !slices.Equal(a, []int32{0, 2}) || !slices.Equal(b, []int32{1, 2}) {
		t.Errorf("contributors %v and %v, want [0 2] and [1 2]", a, b)
	}
}

// TestDropWithTooFewWorkers: departure from Sync-opt [A], where N' < N workers do several batches per update. Here N_t
// falls to the number of workers in the run, so that no worker does two batches and nobody hangs.
func TestDropWithTooFewWorkers(t *testing.T) {
	s := shardOf(setting(t, "drop", "fold=rank required=3"), 4)
	step := func(kind scheme.EventKind, w int32, i int64) string {
		return fmt.Sprint(s.Step(scheme.Event{Kind: kind, Worker: w, Owner: w, Iter: i, Parts: 1, Samples: 1}, nil))
	}
	step(scheme.Pushed, 0, 0)
	step(scheme.Wanted, 0, 1)
	step(scheme.Pushed, 1, 0)
	step(scheme.Left, 3, 0)
	if want := "drop v=0 clocks=1,1,0,left staged=2 parked=w0@c1"; s.String() != want {
		t.Fatalf("%v, want %s", s, want)
	}
	got := step(scheme.Left, 2, 0)
	want := "[fold s0 w0 i0: pending = 1*push fold s0 w1 i0: pending = 1*pending + 1*push commit s0 i0: update " +
		"0.5*pending at lr*1, samples=2 reply s0 w0 i1]"
	if got != want {
		t.Errorf("the surplus worker leaves: decided %s, want %s", got, want)
	}
}
