package scheme_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// TestRennalaCommitsItsVersionOnly: Rennala SGD [R]: at version k only gradients computed at version k count; B of them make
// one step with their mean; workers go on at the current version.
func TestRennalaCommitsItsVersionOnly(t *testing.T) {
	for _, b := range []int{1, 2, 3, 7} {
		v := setting(t, "rennala", fmt.Sprintf("fold=arrival pushes=%d", b))
		dropped, twice := 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			var version versionsOf
			var in []int32 // workers of the pushes of the next version
			plainRun(rt, v, func(ev scheme.Event, answered bool, ds []scheme.Decision, _ *pushCounts) {
				if ev.Kind == scheme.Wanted && !answered {
					rt.Fatalf("%v was delayed", ev)
				}
				for _, d := range ds {
					switch d.Kind {
					case scheme.Fold:
						if ev.Seen != version.now {
							rt.Fatalf("%v was computed on version %d, and is in the step from %d", ev, ev.Seen, version.now)
						}
						if slices.Contains(in, ev.Worker) {
							twice++
						}
						in = append(in, ev.Worker)
					case scheme.Drop:
						dropped++
						if ev.Seen >= version.now || d.Reason != scheme.Stale {
							rt.Fatalf("%v at version %d: %v", ev, version.now, d)
						}
					case scheme.Commit:
						if len(in) != b || d.Weight != 1/float64(32*b) || d.Scale != 1 {
							rt.Fatalf("%d pushes make a version, want %d: %v", len(in), b, d)
						}
						in = nil
					}
				}
				version.see(ds)
			})
		})
		if dropped == 0 || b > 2 && twice == 0 {
			t.Errorf("B = %d: %d pushes were dropped, and %d versions have two of one worker: the runs show nothing", b, dropped, twice)
		}
	}
}

// TestRennalaIsSoftsyncWithoutStalePushes: Rennala SGD [R]: it is softsync with q = B if the stale pushes are taken out of
// the history.
func TestRennalaIsSoftsyncWithoutStalePushes(t *testing.T) {
	for _, b := range []int{1, 2, 4} {
		one, other := setting(t, "rennala", fmt.Sprintf("fold=arrival pushes=%d", b)),
			setting(t, "softsync", fmt.Sprintf("fold=arrival q=%d staleness=-1", b))
		rapid.Check(t, func(rt *rapid.T) {
			env := schemetest.DrawEnv(rt)
			history, answers := record(rt, env, one.New(env), false)
			s := other.New(env)
			for k, ev := range history {
				want := slices.Clone(answers[k])
				if len(want) > 0 && want[0].Reason == scheme.Stale {
					ev.Samples, want[0].Reason = 0, scheme.Empty // softsync drops it as if it had no samples
				}
				if got := s.Step(ev, nil); !slices.Equal(got, want) {
					rt.Fatalf("event %d, %v: softsync decides\n%v\nrennala\n%v", k, ev, got, want)
				}
			}
		})
	}
}

// inLockSteps lets all workers push, and then all pull, for some iterations. It returns the parameters after each iteration.
// A push is the sum over samples samples of a gradient that depends on the parameters, the worker and the iteration.
func inLockSteps(t *testing.T, v schemetest.Variant, workers int, samples int64) (params []float64) {
	t.Helper()
	s := shardOf(v, workers)
	sums := map[scheme.Slot]float64{scheme.SlotParams: 1}
	version := int64(0)
	var decided []scheme.Decision
	for i := range int64(6) {
		at, seen, answered := sums[scheme.SlotParams], version, 0
		for w := range int32(workers) {
			push := float64(samples) * (at*0.5 + float64(w)*0.25 - float64(i)*0.125)
			decided = s.Step(scheme.Event{Kind: scheme.Pushed, Worker: w, Owner: w, Parts: 1, Iter: i, Samples: samples, Seen: seen}, decided[:0])
			for _, d := range decided {
				switch d.Kind {
				case scheme.Fold:
					src := push
					if d.Src != scheme.SlotPush {
						src = sums[d.Src]
					}
					sums[d.Dst] = d.Scale*sums[d.Dst] + d.Weight*src
				case scheme.Commit:
					sums[scheme.SlotParams] -= 0.5 * d.Scale * (d.Weight * sums[scheme.SlotPending])
					version++
				}
			}
		}
		for w := range int32(workers) {
			answered += len(replies(s.Step(scheme.Event{Kind: scheme.Wanted, Worker: w, Iter: i + 1}, nil)))
		}
		if answered != workers || version != i+1 {
			t.Fatalf("%s: after iteration %d there are %d versions, and %d of %d pulls are answered", v.Entry.Name, i, version, answered, workers)
		}
		params = append(params, sums[scheme.SlotParams])
	}
	return params
}

// TestInLockStepAllAreBSP: workers of one speed, of which each pushes before any pulls, make with rennala of B = N, with
// ringleader and with quorum the steps of bsp, to the bit where the numbers are exact.
func TestInLockStepAllAreBSP(t *testing.T) {
	for _, workers := range []int{1, 2, 4, 8} {
		want := inLockSteps(t, setting(t, "bsp", "fold=arrival strict=true"), workers, 32)
		for _, v := range []schemetest.Variant{setting(t, "rennala", "fold=arrival pushes=0"),
			setting(t, "ringleader", "fold=arrival staleness=-1"), setting(t, "quorum", fmt.Sprintf("fold=arrival required=%d", workers))} {
			if got := inLockSteps(t, v, workers, 32); !slices.Equal(got, want) {
				t.Errorf("%s of %d workers: parameters %v, under bsp %v", v.Entry.Name, workers, got, want)
			}
		}
	}
}
