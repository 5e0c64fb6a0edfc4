package scheme_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// TestSoftsyncIsTheMeanOfAnyQ: DL4J part 1 [P], soft-sync: W -= (1/q) * sum of lambda * update_j over any q updates,
// here with lambda = 1, without weights by staleness. Batches are equal, so the mean over samples is the mean over
// pushes.
func TestSoftsyncIsTheMeanOfAnyQ(t *testing.T) {
	for _, q := range []int{1, 2, 3, 5} {
		v := setting(t, "softsync", fmt.Sprintf("fold=arrival q=%d staleness=-1", q))
		rapid.Check(t, func(rt *rapid.T) {
			gradient := func(w int32, i int64) float64 { return math.Sin(float64(7*w) + float64(i)) }
			var pushes []float64 // in order of arrival
			var pending, params float64
			versions := 0
			plainRun(rt, v, func(ev scheme.Event, answered bool, ds []scheme.Decision, _ *pushCounts) {
				if ev.Kind == scheme.Pushed {
					pushes = append(pushes, gradient(ev.Worker, ev.Iter))
				}
				if ev.Kind == scheme.Wanted && !answered {
					rt.Fatalf("%v was delayed", ev)
				}
				for _, d := range ds {
					switch d.Kind {
					case scheme.Fold: // a gradient is the sum over 32 samples
						pending = d.Scale*pending + d.Weight*32*gradient(d.Worker, d.Iter)
					case scheme.Commit:
						versions++
						params -= d.Scale * d.Weight * pending
					}
				}
			})
			want := 0.0
			for k := range versions * q {
				want -= pushes[k] / float64(q)
			}
			if versions != len(pushes)/q || math.Abs(params-want) > 1e-9*float64(len(pushes)+1) {
				rt.Fatalf("q=%d: %d versions of %d pushes, parameters %v, want %v", q, versions, len(pushes), params, want)
			}
		})
	}
}

// TestSoftsyncWeighsByStaleness: DL4J part 1 [P], soft-sync with weights: W -= (1/q) * sum of lambda_j * update_j,
// lambda_j = lambda0 / tau_j, tau_j >= 1 the staleness. Equal batches. A commit moves a statistic by a share of the way
// to a mean, and never past that mean: the weights of a commit are normalised.
func TestSoftsyncWeighsByStaleness(t *testing.T) {
	for _, lambda0 := range []float64{0.5, 1} {
		for _, q := range []int{1, 2, 3} {
			v := setting(t, "softsync", fmt.Sprintf("fold=arrival q=%d staleness=-1 lambda0=%v", q, lambda0))
			s := shardOf(v, 3)
			gradient := func(w int32, i int64) float64 { return math.Sin(float64(7*w) + float64(i)) }
			version, at := int64(0), [3]int64{} // at: the version that each worker pulled last
			var pending, want, params, sum float64
			stale := int64(0)
			for k := range int64(60) {
				w := int32([]int{0, 1, 0, 2, 0, 1}[k%6])
				i := k / 6 * []int64{3, 2, 1}[w]
				i += []int64{0, 0, 1, 0, 2, 1}[k%6]
				tau := max(1, version-at[w])
				stale = max(stale, tau)
				sum += lambda0 / float64(tau) * gradient(w, i) / float64(q)
				for _, d := range s.Step(scheme.Event{Kind: scheme.Pushed, Worker: w, Owner: w, Parts: 1, Iter: i, Seen: at[w], Samples: 32}, nil) {
					switch d.Kind {
					case scheme.Fold:
						pending = d.Scale*pending + d.Weight*32*gradient(d.Worker, d.Iter)
					case scheme.Commit:
						version++
						params -= d.Scale * d.Weight * pending
						want, sum = want-sum, 0
						if d.Scale > 1 {
							t.Errorf("q=%d: a commit takes the share %v", q, d.Scale)
						}
					}
				}
				s.Step(scheme.Event{Kind: scheme.Wanted, Worker: w, Iter: i + 1}, nil)
				at[w] = version
			}
			if math.Abs(params-want) > 1e-9 || version != int64(60/q) || q == 1 && stale < 3 {
				t.Errorf("q=%d lambda0=%v: parameters %v after %d versions, want %v; the largest staleness was %d", q, lambda0,
					params, version, want, stale)
			}
		}
	}
}

// TestSoftsyncOfAllIsNotBSP: DL4J part 1 [P]: q = n is close to, not identical to, synchronous training: a version may
// have two pushes of one worker and none of another.
func TestSoftsyncOfAllIsNotBSP(t *testing.T) {
	s := shardOf(setting(t, "softsync", "fold=arrival q=2 staleness=-1"), 2)
	push := func(i int64) string {
		return fmt.Sprint(s.Step(scheme.Event{Kind: scheme.Pushed, Iter: i, Parts: 1, Samples: 4}, nil))
	}
	first := push(0)
	s.Step(scheme.Event{Kind: scheme.Wanted, Iter: 1}, nil)
	if got, want := first+push(1), "[fold s0 w0 i0: pending = 1*push]"+
		"[fold s0 w0 i1: pending = 1*pending + 1*push commit s0 w0 i1: update 0.125*pending at lr*1, samples=8]"; got != want {
		t.Errorf("two pushes of one worker: %s, want %s", got, want)
	}
}

// TestSoftsyncOfOneIsASP: DL4J part 1 [P]: q = 1 is naive async; with the weight of asp it decides like asp. With a
// bound it is ssp.
func TestSoftsyncOfOneIsASP(t *testing.T) {
	share := func(v schemetest.Variant) schemetest.Variant {
		v.Common.Weight = 0.25
		return v
	}
	law(t, share(setting(t, "asp", "fold=arrival")), share(setting(t, "softsync", "fold=arrival q=1 staleness=-1")), false)
	for _, release := range releases {
		for _, s := range []int{0, 2} {
			keys := fmt.Sprintf("fold=arrival staleness=%d release=%s", s, release)
			law(t, share(setting(t, "ssp", keys)), share(setting(t, "softsync", keys+" q=1")), false)
			law(t, setting(t, "ssp", keys), setting(t, "softsync", keys+" q=3"), true)
		}
	}
}
