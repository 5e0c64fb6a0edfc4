package scheme_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// pushCounts are what the papers count: pushes per worker, and the smallest of them.
type pushCounts struct {
	pushes []int64
	v      int64
}

func (b *pushCounts) push(w int32) {
	b.pushes[w]++
	b.v = slices.Min(b.pushes)
}

// plainRun plays a run in which workers only push and pull, and calls see for every event with the counts after it,
// until the first worker leaves.
func plainRun(t *rapid.T, v schemetest.Variant, see func(ev scheme.Event, answered bool, all []scheme.Decision, b *pushCounts)) {
	env := scheme.Env{
		Workers: rapid.SampledFrom([]int{2, 3, 5}).Draw(t, "workers"), Shards: []int32{schemetest.Shard}, Servers: 1,
		Seed: rapid.Uint64().Draw(t, "seed"),
	}
	b := &pushCounts{pushes: make([]int64, env.Workers)}
	over := false
	d := schemetest.Driver{Env: env, Plain: true, See: func(ev scheme.Event, ds []scheme.Decision) {
		if over = over || ev.Kind == scheme.Left; over {
			return
		}
		if ev.Kind == scheme.Pushed {
			b.push(ev.Worker)
		}
		answered := slices.ContainsFunc(ds, func(d scheme.Decision) bool { return d.Kind == scheme.Reply && d.Worker == ev.Worker })
		see(ev, answered, ds, b)
	}}
	d.Run(t, v.New(env))
}

// TestSSPGateForms: the gate of five sources is one gate (clock convention, table of equivalents): FluentPS [C],
// DSSP [P], Bösen [C], the guarantee of the SSP paper, bounded delay of the OSDI'14 parameter server [P].
func TestSSPGateForms(t *testing.T) {
	for _, s := range []int64{0, 1, 3} {
		for _, release := range []string{"soft", "lazy"} {
			v := setting(t, "ssp", fmt.Sprintf("fold=arrival staleness=%d release=%s", s, release))
			rapid.Check(t, func(rt *rapid.T) {
				plainRun(rt, v, func(ev scheme.Event, answered bool, _ []scheme.Decision, b *pushCounts) {
					if ev.Kind != scheme.Wanted {
						return
					}
					c := ev.Iter
					i := c - 1 // just pushed; -1 before the first
					seesAll := true
					for _, done := range b.pushes {
						seesAll = seesAll && done-1 >= c-s-1 // its updates with clock <= c-s-1 are here
					}
					finished := true
					for task := range max(0, c-s) { // tasks before t - tau, with t = c
						finished = finished && slices.Min(b.pushes) > task
					}
					forms := map[string]bool{
						"FluentPS: wait iff V_train + s <= i":           !(b.v+s <= i),
						"DSSP: t_p - t_slowest <= s":                    b.pushes[ev.Worker]-slices.Min(b.pushes) <= s,
						"Bösen: row clock >= max(0, c - s)":             b.v >= max(0, c-s),
						"SSP: sees all updates with clock <= c - s - 1": seesAll,
						"OSDI'14: all tasks before t - tau are done":    finished,
					}
					for form, open := range forms {
						if open != answered {
							rt.Fatalf("%v at v=%d: answered %v, but %s is %v", ev, b.v, answered, form, open)
						}
					}
				})
			})
		}
	}
}

// TestSSPLead: clock convention, consequence 1, and FluentPS invariant P1. The lead is up to s+1 right after a push,
// and at most s for a running worker; an immediate reply has i - V_train < s.
func TestSSPLead(t *testing.T) {
	const s = 2
	for _, release := range releases {
		v := setting(t, "ssp", fmt.Sprintf("fold=arrival staleness=%d release=%s", s, release))
		most, mostRunning := int64(0), int64(0)
		rapid.Check(t, func(rt *rapid.T) {
			asked := map[int32]int64{}
			plainRun(rt, v, func(ev scheme.Event, answered bool, all []scheme.Decision, b *pushCounts) {
				if ev.Kind == scheme.Pushed {
					most = max(most, ev.Iter+1-b.v)
				} else {
					asked[ev.Worker] = ev.Iter
				}
				if answered && ev.Iter-1-b.v >= s {
					rt.Fatalf("%v: immediate reply at i - V_train = %d", ev, ev.Iter-1-b.v)
				}
				for _, d := range replies(all) {
					lead := asked[d.Worker] - b.v
					mostRunning = max(mostRunning, lead)
					late := ev.Kind == scheme.Pushed
					if late && release != "soft" && b.v <= asked[d.Worker]-1 {
						rt.Fatalf("%v: released w%d at V_train %d, not past i=%d", ev, d.Worker, b.v, asked[d.Worker]-1)
					}
				}
			})
		})
		if most != s+1 || mostRunning != s {
			t.Errorf("release %s: largest lead after a push %d (want %d), of a running worker %d (want %d)", release, most, s+1, mostRunning, s)
		}
	}
}

// TestSSPSlowestRuns: clock convention, consequences 2 and 3. A worker at c = v is never delayed, and v
// advances by one at a time while all workers are counted.
func TestSSPSlowestRuns(t *testing.T) {
	for _, release := range releases {
		v := setting(t, "ssp", "fold=arrival staleness=1 release="+release)
		rapid.Check(t, func(rt *rapid.T) {
			before := int64(0)
			plainRun(rt, v, func(ev scheme.Event, answered bool, _ []scheme.Decision, b *pushCounts) {
				if ev.Kind == scheme.Wanted && ev.Iter == b.v && !answered {
					rt.Fatalf("%v: the slowest worker is delayed", ev)
				}
				if b.v > before+1 {
					rt.Fatalf("%v: v went from %d to %d", ev, before, b.v)
				}
				before = b.v
			})
		})
	}
}

// shardOf makes an instance for shard 0, the shard of timeline.
func shardOf(v schemetest.Variant, workers int) scheme.Scheme {
	return v.New(scheme.Env{Workers: workers, Shards: []int32{0}, Servers: 1, Seed: 1})
}

func countDelayed(t *testing.T, release string, workers int, s int64, ratio, noise float64, iterations int64) (delayed int, wall float64) {
	v := setting(t, "ssp", fmt.Sprintf("fold=arrival staleness=%d release=%s", s, release))
	l := timeline{scheme: shardOf(v, workers), period: straggler(ratio, noise)}
	wall = l.run(workers, iterations)
	return l.delayed, wall
}

// TestSSPDelayedPulls: delayed-pull arithmetic of FluentPS's soft barrier and lazy execution ([X], our own
// derivation): one delayed pull per fast worker and straggler iteration with soft, one per s*r/(r-1) straggler
// iterations with lazy; the same wall time.
func TestSSPDelayedPulls(t *testing.T) {
	const iterations = 2000
	for _, c := range []struct {
		workers int
		s       int64
		ratio   float64
	}{{8, 3, 1.5}, {8, 1, 1.5}, {4, 3, 2}, {8, 5, 1.25}, {16, 2, 3}} {
		soft, softWall := countDelayed(t, "soft", c.workers, c.s, c.ratio, 0, iterations)
		lazy, lazyWall := countDelayed(t, "lazy", c.workers, c.s, c.ratio, 0, iterations)
		fast := float64(c.workers - 1)
		want := float64(c.s) * c.ratio / (c.ratio - 1)
		name := fmt.Sprintf("N=%d s=%d r=%v", c.workers, c.s, c.ratio)
		t.Logf("%s: soft %d, lazy %d, ratio %.2f, formula %.2f", name, soft, lazy, float64(soft)/float64(lazy), want)
		if got := float64(soft) / fast / iterations; math.Abs(got-1) > 0.02 {
			t.Errorf("%s: soft delays %.3f pulls per fast worker and straggler iteration, want 1", name, got)
		}
		// The formula allows fractions of an iteration; whole iterations differ by up to 20% where s is 1.
		if got := float64(soft) / float64(lazy); math.Abs(got/want-1) > 0.2 {
			t.Errorf("%s: soft delays %.2f times as often as lazy, the formula gives %.2f", name, got, want)
		}
		if math.Abs(softWall/lazyWall-1) > 0.005 {
			t.Errorf("%s: wall time %.1f with soft, %.1f with lazy", name, softWall, lazyWall)
		}
	}
}

// TestSSPDelayedPullsPublished: the simulated figures published with that arithmetic: s=3, r=1.5, 400 iterations, 10%
// noise: N=8 2724 against 287, N=64 24412 against 2601.
func TestSSPDelayedPullsPublished(t *testing.T) {
	for _, c := range []struct{ workers, soft, lazy int }{{8, 2724, 287}, {64, 24412, 2601}} {
		soft, _ := countDelayed(t, "soft", c.workers, 3, 1.5, 0.1, 400)
		lazy, _ := countDelayed(t, "lazy", c.workers, 3, 1.5, 0.1, 400)
		t.Logf("N=%d: soft %d (there %d), lazy %d (there %d)", c.workers, soft, c.soft, lazy, c.lazy)
		if math.Abs(float64(soft)/float64(c.soft)-1) > 0.05 || math.Abs(float64(lazy)/float64(c.lazy)-1) > 0.1 {
			t.Errorf("N=%d: soft %d, lazy %d; want about %d and %d", c.workers, soft, lazy, c.soft, c.lazy)
		}
	}
}

// TestSSPLazyDelaysLess: FluentPS invariant P3, with constant speeds.
func TestSSPLazyDelaysLess(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		workers := rapid.IntRange(2, 8).Draw(rt, "workers")
		s := rapid.Int64Range(1, 5).Draw(rt, "s")
		periods := rapid.SliceOfN(rapid.IntRange(2, 12), workers, workers).Draw(rt, "periods")
		counts := map[string]int{}
		for _, release := range []string{"soft", "lazy"} {
			v := setting(t, "ssp", fmt.Sprintf("fold=arrival staleness=%d release=%s", s, release))
			l := timeline{scheme: shardOf(v, workers), period: func(w int) float64 { return float64(periods[w]) + 1e-3*float64(w) }}
			l.run(workers, 100)
			counts[release] = l.delayed
		}
		if counts["lazy"] > counts["soft"] {
			rt.Fatalf("lazy delays %d pulls, soft %d", counts["lazy"], counts["soft"])
		}
	})
}

// TestSSPLazyReplyIsFresh: FluentPS soft barrier and lazy execution. Soft answers the pull delayed after iteration i =
// s when the other worker has finished one more iteration, and delays the worker again after one. Lazy answers when the
// other has finished i too, so the reply is as fresh as in BSP and s+1 iterations can follow.
func TestSSPLazyReplyIsFresh(t *testing.T) {
	for _, c := range []struct {
		release         string
		finished, slack int64 // the other's last iteration at the reply; iterations until the next delay
	}{{"soft", 0, 1}, {"lazy", 3, 4}, {"block", 3, 4}} {
		s := shardOf(setting(t, "ssp", "fold=arrival staleness=3 release="+c.release), 2)
		next, delayed := int64(0), false // of worker 0
		do := func(kind scheme.EventKind, w int32, iter int64) {
			delayed = delayed || w == 0 && kind == scheme.Wanted
			for _, d := range s.Step(scheme.Event{Kind: kind, Worker: w, Owner: w, Parts: 1, Iter: iter, Samples: 1}, nil) {
				if d.Kind == scheme.Reply && d.Worker == 0 {
					delayed = false
				}
			}
		}
		runUntilDelayed := func() (iterations int64) {
			for ; !delayed; iterations++ {
				do(scheme.Pushed, 0, next)
				next++
				do(scheme.Wanted, 0, next)
			}
			return iterations
		}
		if got := runUntilDelayed(); got != 4 {
			t.Errorf("%s: first delayed after %d iterations, want s+1 = 4", c.release, got)
		}
		finished := int64(-1)
		for delayed {
			finished++
			do(scheme.Pushed, 1, finished)
		}
		if finished != c.finished {
			t.Errorf("%s: answered when the other had finished iteration %d, want %d", c.release, finished, c.finished)
		}
		if got := runUntilDelayed(); got != c.slack {
			t.Errorf("%s: delayed again after %d iterations, want %d", c.release, got, c.slack)
		}
	}
}

// TestSSPSumOfUpdates: FluentPS invariant P2: the parameters end as w0 + (1/N) sum of updates, each push applied
// exactly once; the update of a push is the mean gradient over its samples.
func TestSSPSumOfUpdates(t *testing.T) {
	for _, name := range []string{"ssp", "asp"} {
		e, _ := scheme.All.Lookup(name)
		for _, v := range schemetest.Variants(e) {
			if v.Common.Fold != scheme.FoldArrival {
				continue
			}
			rapid.Check(t, func(rt *rapid.T) {
				env := scheme.Env{Workers: 3, Shards: []int32{schemetest.Shard}, Servers: 1}
				params, pending, want := 0.0, 0.0, 0.0
				gradient := func(w int32, i int64) float64 { return float64(w+1)*100 + float64(i) }
				d := schemetest.Driver{Env: env, Plain: true, See: func(ev scheme.Event, ds []scheme.Decision) {
					if ev.Kind == scheme.Pushed {
						want += gradient(ev.Worker, ev.Iter) / 32 / 3
					}
					for _, d := range ds {
						switch d.Kind {
						case scheme.Fold:
							pending = d.Scale*pending + d.Weight*gradient(d.Worker, d.Iter)
						case scheme.Commit:
							params += d.Scale * d.Weight * pending
						}
					}
				}}
				d.Run(rt, v.New(env))
				if math.Abs(params-want) > 1e-9*want {
					rt.Fatalf("%s %v: the parameters end at %v, the sum of updates is %v", name, v, params, want)
				}
			})
		}
	}
}

// TestSSPNoPullRemains: FluentPS invariant P6: when all have finished T iterations no delayed pull is buffered.
func TestSSPNoPullRemains(t *testing.T) {
	for _, release := range releases {
		for _, s := range []int64{0, 1, 4} {
			const workers, iterations = 4, 50
			v := setting(t, "ssp", fmt.Sprintf("fold=arrival staleness=%d release=%s", s, release))
			l := timeline{scheme: shardOf(v, workers), period: straggler(1.7, 0.2)}
			l.run(workers, iterations)
			if len(l.open) > 0 {
				t.Errorf("%v: pulls of %v remain; state: %v", v, l.open, l.scheme)
			}
			if want := "ssp v=50 clocks=50,50,50,50"; l.scheme.String() != want {
				t.Errorf("%v: ends at %v, want %s", v, l.scheme, want)
			}
		}
	}
}

// TestBosenBuckets: Bösen, invariants and pitfalls [C, X]. The released server answers only the bucket equal to its
// new clock; when the clock goes up by two at once, as when a worker leaves, the bucket it stepped over is
// stranded. Ours answers every bucket it has passed.
func TestBosenBuckets(t *testing.T) {
	for _, release := range releases {
		s := shardOf(setting(t, "ssp", "fold=arrival staleness=1 release="+release), 3)
		for _, w := range []int32{0, 1} {
			for c := range int64(2) {
				s.Step(scheme.Event{Kind: scheme.Pushed, Worker: w, Owner: w, Parts: 1, Iter: c, Samples: 1}, nil)
				s.Step(scheme.Event{Kind: scheme.Wanted, Worker: w, Iter: c + 1}, nil)
			}
		}
		if want := "ssp v=0 clocks=2,2,0 parked=w0@c2,w1@c2"; s.String() != want {
			t.Fatalf("%s: %v, want %s", release, s, want)
		}
		ds := s.Step(scheme.Event{Kind: scheme.Left, Worker: 2}, nil) // both need v >= 1; v becomes 2
		if got := fmt.Sprint(ds); got != "[reply s0 w0 i2 reply s0 w1 i2]" {
			t.Errorf("%s: v from 0 to 2 decides %s; state: %v", release, got, s)
		}
	}
}

// TestSSPDepartures checks our differences from the released FluentPS code, edge cases [C, X].
func TestSSPDepartures(t *testing.T) {
	step := func(s scheme.Scheme, kind scheme.EventKind, w int32, iter int64) string {
		return fmt.Sprint(s.Step(scheme.Event{Kind: kind, Worker: w, Owner: w, Parts: 1, Iter: iter, Samples: 1}, nil))
	}
	v := setting(t, "ssp", "fold=arrival staleness=1 release=soft")

	t.Run("a worker with fewer iterations hangs nobody", func(t *testing.T) {
		s := shardOf(v, 2)
		for i := range int64(2) {
			step(s, scheme.Pushed, 0, i)
		}
		step(s, scheme.Wanted, 0, 2)
		if got := step(s, scheme.Left, 1, 0); got != "[reply s0 w0 i2]" {
			t.Errorf("leave decides %s", got)
		}
	})
	t.Run("a worker rejoins at v", func(t *testing.T) {
		s := shardOf(v, 2)
		step(s, scheme.Left, 1, 0)
		for i := range int64(5) {
			step(s, scheme.Pushed, 0, i)
		}
		step(s, scheme.Joined, 1, 0)
		if want := "ssp v=5 clocks=5,5"; s.String() != want {
			t.Errorf("%v, want %s", s, want)
		}
		if got := step(s, scheme.Wanted, 1, 0); got != "[reply s0 w1 i5]" {
			t.Errorf("its first pull decides %s", got)
		}
	})
	t.Run("a push cannot count twice", func(t *testing.T) {
		// The server node removes duplicates; one that gets through is the node's bug.
		s := shardOf(v, 2)
		step(s, scheme.Pushed, 0, 0)
		mustPanic(t, "iteration already closed", func() { step(s, scheme.Pushed, 0, 0) })
		if want := "ssp v=0 clocks=1,0"; s.String() != want {
			t.Errorf("%v, want %s", s, want)
		}
	})
}

func mustPanic(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if got := fmt.Sprint(recover()); !strings.Contains(got, what) {
			t.Errorf("panic %q, want one with %q", got, what)
		}
	}()
	f()
}
