package scheme_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// TestQuorumOfAllIsBSP: with K = N a version waits for each worker's push: the folds, commits and replies of bsp that folds
// on arrival, while all workers are there.
func TestQuorumOfAllIsBSP(t *testing.T) {
	bsp := setting(t, "bsp", "fold=arrival strict=true")
	all := setting(t, "quorum", "fold=arrival required=6")
	rapid.Check(t, func(rt *rapid.T) {
		env := scheme.Env{Workers: rapid.IntRange(1, 6).Draw(rt, "workers"), Shards: []int32{schemetest.Shard}, Servers: 1}
		history, answers := record(rt, env, bsp.New(env), true)
		s := all.New(env)
		for k, ev := range history {
			if ev.Kind == scheme.Left {
				return
			}
			got, want := s.Step(ev, nil), answers[k]
			for _, ds := range [][]scheme.Decision{got, want} {
				for i := range ds {
					if ds[i].Kind == scheme.Commit {
						ds[i].Iter = 0 // bsp names the iteration closed
					}
				}
			}
			if !slices.Equal(got, want) {
				rt.Fatalf("event %d, %v: quorum decides\n%v\nbsp\n%v", k, ev, got, want)
			}
		}
	})
}

// TestQuorumNobodyWaitsPastTheGrace: Decoupled DiLoCo [R]: when K of N have arrived a grace period begins. From then on a
// delayed pull waits for one alarm at most, whose time is within the longest grace; a pull of a late push, and one of the
// slowest worker, waits not at all; each push that has samples, and whose worker is there, is folded once and never dropped.
func TestQuorumNobodyWaitsPastTheGrace(t *testing.T) {
	delayed, lates, alarms := 0, 0, 0
	for _, keys := range []string{"required=0 mad=3 grace_max=1", "required=1 mad=1 grace_max=2", "required=3 mad=3 grace_max=0.5"} {
		v := setting(t, "quorum", "fold=arrival "+keys)
		p := v.Params.(*scheme.QuorumParams)
		rapid.Check(t, func(rt *rapid.T) {
			env := scheme.Env{Workers: rapid.SampledFrom([]int{2, 3, 5, 6}).Draw(rt, "workers"), Shards: []int32{schemetest.Shard}, Servers: 1}
			clocks := make([]int64, env.Workers)
			var version versionsOf
			began, until := time.Duration(-1), time.Duration(-1)
			waiting, late, arrived := map[int32]bool{}, map[int32]bool{}, map[int32]bool{}
			d := schemetest.Driver{Env: env, Plain: true, See: func(ev scheme.Event, ds []scheme.Decision) {
				switch ev.Kind {
				case scheme.Pushed:
					clocks[ev.Worker] = ev.Iter + 1
					if late[ev.Worker] = ev.Seen < version.now; late[ev.Worker] {
						lates++
					} else {
						arrived[ev.Worker] = true
					}
					if ds[0].Kind != scheme.Fold {
						rt.Fatalf("%v: decided %v, want a fold", ev, ds)
					}
				case scheme.Wanted:
					waiting[ev.Worker] = true
				case scheme.Left:
					clocks[ev.Worker] = 1 << 40
				}
				for _, d := range ds {
					switch d.Kind {
					case scheme.Reply:
						delete(waiting, d.Worker)
						if began < 0 {
							began = ev.At
						}
					case scheme.WakeAt:
						alarms++
						if longest := time.Duration(p.GraceMax * float64(ev.At-began)); until >= 0 || d.At > ev.At+longest {
							rt.Fatalf("%v: %v, and the longest grace is %v", ev, d, longest)
						}
						until = d.At
					case scheme.Commit:
						until, began = -1, ev.At
						clear(arrived)
					}
				}
				version.see(ds)
				for w := range waiting {
					delayed++
					switch {
					case until >= 0 && ev.At >= until && (ev.Kind == scheme.Alarm || ev.Kind == scheme.Pushed):
						rt.Fatalf("%v: w%d waits, and the grace was over at %v", ev, w, until)
					case late[w]:
						rt.Fatalf("%v: w%d waits after a late push", ev, w)
					case clocks[w] <= slices.Min(clocks):
						rt.Fatalf("%v: w%d waits, and nobody is behind it: %v", ev, w, clocks)
					case until < 0 && int64(len(arrived)) >= p.Of(env.Workers):
						rt.Fatalf("%v: w%d waits, %d workers have arrived, and no grace has begun", ev, w, len(arrived))
					}
				}
			}}
			d.Run(rt, v.New(env))
		})
	}
	if delayed < 100 || lates < 100 || alarms < 100 {
		t.Errorf("%d waits, %d late pushes and %d alarms; the runs show nothing", delayed, lates, alarms)
	}
}

// TestQuorumGraceIsTheMedianAndTheMAD: the length is ours: median + mad * MAD of the lags behind the first push of each
// version, the lower median of an even number, and at most grace_max times what the round took.
func TestQuorumGraceIsTheMedianAndTheMAD(t *testing.T) {
	for _, c := range []struct {
		mad, most string
		want      time.Duration // length of the grace of the second round, in ms
	}{
		// Lags of the first round, in ms: 0, 1, 3, 4, 30. With 0 and 2 of the second: 0 0 1 2 3 4 30, median 2. The distances are
		// 2 2 1 0 1 2 28, MAD 2.
		{"3", "10", 8}, {"0", "10", 2}, {"1", "10", 4}, {"3", "0.5", 6}, {"3", "0", 0},
	} {
		s := shardOf(setting(t, "quorum", "fold=arrival required=2 mad="+c.mad+" grace_max="+c.most), 5)
		tell := func(kind scheme.EventKind, w int32, i, seen int64, at time.Duration) []scheme.Decision {
			return s.Step(scheme.Event{Kind: kind, Worker: w, Owner: w, Parts: 1, Iter: i, Seen: seen, Samples: 8, At: at * time.Millisecond}, nil)
		}
		for w := range int32(5) {
			tell(scheme.Wanted, w, 0, 0, 0)
		}
		tell(scheme.Pushed, 0, 0, 0, 100)
		tell(scheme.Pushed, 1, 0, 0, 101)
		tell(scheme.Pushed, 2, 0, 0, 103)
		tell(scheme.Pushed, 3, 0, 0, 104)
		tell(scheme.Pushed, 4, 0, 0, 130) // the first grace is as long as the round took, unless it is 0
		for w := range int32(2) {
			tell(scheme.Wanted, w, 1, 0, 130)
		}
		tell(scheme.Pushed, 0, 1, 1, 140)
		ds := tell(scheme.Pushed, 1, 1, 1, 142)
		got := time.Duration(-1)
		for _, d := range ds {
			switch d.Kind {
			case scheme.WakeAt:
				got = d.At/time.Millisecond - 142
			case scheme.Commit:
				got = 0
			}
		}
		if got != c.want {
			t.Errorf("mad %s, grace_max %s: a grace of %d ms, want %d; decided %v, state %v", c.mad, c.most, got, c.want, ds, s)
		}
	}
}

// TestQuorumMergesLatePushes: Decoupled DiLoCo [A]: "the others merge later". A push that missed its round is in the next
// commit, weighed by its samples; its worker goes on at once.
func TestQuorumMergesLatePushes(t *testing.T) {
	s := shardOf(setting(t, "quorum", "fold=arrival required=2 grace_max=0"), 3)
	push := func(w int32, i, seen, samples int64) string {
		return fmt.Sprint(s.Step(scheme.Event{Kind: scheme.Pushed, Worker: w, Owner: w, Parts: 1, Iter: i, Seen: seen,
			Samples: samples, At: 5}, nil))
	}
	want := func(w int32, i int64) string {
		return fmt.Sprint(s.Step(scheme.Event{Kind: scheme.Wanted, Worker: w, Iter: i, At: 5}, nil))
	}
	for _, c := range [][2]string{
		{push(0, 0, 0, 8), "[fold s0 w0 i0: pending = 1*push]"},
		{push(1, 0, 0, 8), "[fold s0 w1 i0: pending = 1*pending + 1*push commit s0 i0: update 0.0625*pending at lr*1, samples=16]"},
		{want(0, 1) + want(1, 1), "[reply s0 w0 i1][reply s0 w1 i1]"},
		{push(2, 0, 0, 16), "[fold s0 w2 i0: pending = 1*push]"},
		{want(2, 1), "[reply s0 w2 i1]"},
		{push(0, 1, 1, 8), "[fold s0 w0 i1: pending = 1*pending + 1*push]"},
		{push(1, 1, 1, 8), "[fold s0 w1 i1: pending = 1*pending + 1*push commit s0 i1: update 0.03125*pending at lr*1, samples=32]"},
	} {
		if c[0] != c[1] {
			t.Errorf("decided %s, want %s", c[0], c[1])
		}
	}
}

// TestQuorumBeginsWithKWorkers: Decoupled DiLoCo [A]: K of N workers, so no number of pushes of one replaces another
// one. A grace period, or a version without one, begins when K different workers have arrived. Ours: it begins also
// when all others in the run have said that they wait elsewhere. None of these is asked that has the smallest clock.
func TestQuorumBeginsWithKWorkers(t *testing.T) {
	begun, fewer := 0, 0
	for _, keys := range []string{"required=0", "required=4 grace_max=0", "required=3 grace_max=0.5"} {
		v := setting(t, "quorum", "fold=arrival "+keys)
		rapid.Check(t, func(rt *rapid.T) {
			env := schemetest.DrawEnv(rt)
			env.Workers, env.Start = max(env.Workers, 3), 0
			env.Clocks = rapid.SliceOfN(rapid.Int64Range(-1, 12), env.Workers, env.Workers).Draw(rt, "clocks")
			env.Clocks[0] = 0 // the others are ahead
			version := versionsOf{now: env.Start}
			arrived, elsewhere, left, grace := map[int32]bool{}, map[int32]bool{}, map[int32]bool{}, false
			for w, c := range env.Clocks {
				left[int32(w)] = c < 0
			}
			d := schemetest.Driver{Env: env, See: func(ev scheme.Event, ds []scheme.Decision) {
				switch ev.Kind {
				case scheme.Pushed:
					delete(elsewhere, ev.Worker)
					if !left[ev.Worker] && ev.Seen == version.now {
						arrived[ev.Worker] = true
					}
				case scheme.WaitsElsewhere, scheme.WaitedElsewhere:
					elsewhere[ev.Worker] = ev.Kind == scheme.WaitsElsewhere && ev.Seen == version.now
				case scheme.Left, scheme.Joined:
					left[ev.Worker] = ev.Kind == scheme.Left
					delete(elsewhere, ev.Worker)
				}
				here, silent := 0, 0
				for w := range int32(env.Workers) {
					if left[w] {
						continue
					}
					if here++; !arrived[w] && !elsewhere[w] {
						silent++
					}
				}
				for _, d := range ds {
					if begins := d.Kind == scheme.WakeAt || d.Kind == scheme.Commit && !grace && here > 0; begins {
						begun++
						if k := min(int(v.Params.(*scheme.QuorumParams).Of(env.Workers)), here); len(arrived) < k {
							if fewer++; silent > 0 {
								rt.Fatalf("%v: %v, %v have arrived, and %d others have not said that they wait elsewhere", ev, d, arrived, silent)
							}
						}
					}
					if grace = grace || d.Kind == scheme.WakeAt; d.Kind == scheme.Commit {
						grace = false
						clear(arrived)
						clear(elsewhere)
					}
				}
				version.see(ds)
			}}
			d.Run(rt, v.New(env))
		})
	}
	if begun < 100 || fewer < 10 {
		t.Errorf("%d graces began, %d of them of fewer than K workers; the runs show nothing", begun, fewer)
	}
}
