package scheme_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
)

// versionsOf counts the commits of a run, as the pushes' Seen does.
type versionsOf struct{ now int64 }

func (v *versionsOf) see(ds []scheme.Decision) {
	for _, d := range ds {
		if d.Kind == scheme.Commit {
			v.now++
		}
	}
}

// TestRingmasterAppliesDelaysBelowR: Ringmaster ASGD [P], the condition: a gradient with delay d is applied if and only if
// d < R; its worker gets the current parameters either way.
func TestRingmasterAppliesDelaysBelowR(t *testing.T) {
	for _, r := range []int64{1, 2, 5} {
		dropped, largest := 0, int64(0)
		v := setting(t, "ringmaster", fmt.Sprintf("fold=arrival delay_threshold=%d", r))
		rapid.Check(t, func(rt *rapid.T) {
			var version versionsOf
			plainRun(rt, v, func(ev scheme.Event, answered bool, ds []scheme.Decision, _ *pushCounts) {
				if ev.Kind == scheme.Wanted && !answered {
					rt.Fatalf("%v was delayed", ev)
				}
				if ev.Kind == scheme.Pushed {
					delay := version.now - ev.Seen
					applied := len(ds) == 2 && ds[0].Kind == scheme.Fold && ds[1].Kind == scheme.Commit
					stale := len(ds) == 1 && ds[0].Kind == scheme.Drop && ds[0].Reason == scheme.Stale
					if delay < r && !applied || delay >= r && !stale {
						rt.Fatalf("%v of delay %d with R = %d: decided %v", ev, delay, r, ds)
					}
					if stale {
						dropped++
					} else {
						largest = max(largest, delay)
					}
				}
				version.see(ds)
			})
		})
		if dropped == 0 || largest != r-1 {
			t.Errorf("R = %d: %d pushes were dropped and the largest delay applied is %d; the runs are too even to show "+
				"anything", r, dropped, largest)
		}
	}
}

// TestRingmasterWithoutThresholdIsASP: Ringmaster ASGD [P]: with R beyond every delay it is asynchronous SGD, decision by
// decision.
func TestRingmasterWithoutThresholdIsASP(t *testing.T) {
	law(t, setting(t, "asp", "fold=arrival"), setting(t, "ringmaster", "fold=arrival delay_threshold=1000000000000"), false)
}

// TestRingmasterOfOneIsRennalaOfOne: with R = 1 only gradients of the newest version count, and each makes the next: Rennala
// with B = 1.
func TestRingmasterOfOneIsRennalaOfOne(t *testing.T) {
	one, other := setting(t, "ringmaster", "fold=arrival delay_threshold=1"), setting(t, "rennala", "fold=arrival pushes=1")
	one.Common.Weight, other.Common.Weight = 0.25, 0.25
	law(t, one, other, false)
}

// TestRingmasterDefaultIsTwiceTheWorkers: departure: R comes from the noise of the gradients in the paper, which a server
// does not know. Workers of one speed have delays of N - 1, and none of them is dropped.
func TestRingmasterDefaultIsTwiceTheWorkers(t *testing.T) {
	const n = 3
	s := shardOf(setting(t, "ringmaster", "fold=arrival delay_threshold=0"), n)
	version := int64(0)
	for delay := range int64(2*n + 1) {
		ev := scheme.Event{Kind: scheme.Pushed, Iter: delay, Parts: 1, Samples: 1, Seen: version - delay}
		for version < delay {
			s.Step(scheme.Event{Kind: scheme.Pushed, Worker: 1, Owner: 1, Iter: version, Parts: 1, Samples: 1, Seen: version}, nil)
			version++
			ev.Seen = version - delay
		}
		ds := s.Step(ev, nil)
		if got, want := ds[0].Kind == scheme.Drop, delay >= 2*n; got != want {
			t.Errorf("a delay of %d among %d workers: dropped %v, want %v", delay, n, got, want)
		}
		version += int64(len(ds) / 2)
	}
}
