package scheme_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// TestRingleaderStepsWithTheMeanOfMeans: Ringleader ASGD [R]: a step is made when every worker has a gradient since the last
// step, with 1/n * sum over workers of the mean of worker i's gradients since then. The test keeps all gradients in lists.
func TestRingleaderStepsWithTheMeanOfMeans(t *testing.T) {
	v := setting(t, "ringleader", "fold=arrival staleness=-1")
	several := 0
	rapid.Check(t, func(rt *rapid.T) {
		gradient := func(w int32, i int64) float64 { return math.Sin(float64(7*w) + float64(i)) }
		lists := map[int32][]float64{}
		sums := map[scheme.Slot]float64{}
		plainRun(rt, v, func(ev scheme.Event, answered bool, ds []scheme.Decision, b *pushCounts) {
			if ev.Kind == scheme.Wanted && !answered {
				rt.Fatalf("%v was delayed", ev)
			}
			if ev.Kind == scheme.Pushed {
				lists[ev.Worker] = append(lists[ev.Worker], gradient(ev.Worker, ev.Iter))
			}
			steps := 0
			for _, d := range ds {
				switch d.Kind {
				case scheme.Fold: // a gradient is the sum over 32 samples
					src := sums[d.Src]
					if d.Src == scheme.SlotPush {
						src = 32 * gradient(d.Worker, d.Iter)
					}
					sums[d.Dst] = d.Scale*sums[d.Dst] + d.Weight*src
				case scheme.Commit:
					steps++
					want := 0.0
					for _, list := range lists {
						mean := 0.0
						for _, g := range list {
							mean += g / float64(len(list))
						}
						want += mean / float64(len(b.pushes))
						several = max(several, len(list))
					}
					if got := d.Scale * d.Weight * sums[scheme.SlotPending]; math.Abs(got-want) > 1e-9 {
						rt.Fatalf("%v: a step with %v, want %v", ev, got, want)
					}
				}
			}
			if full := len(lists) == len(b.pushes); full != (steps == 1) {
				rt.Fatalf("%v: %d of %d workers have pushed, %d steps", ev, len(lists), len(b.pushes), steps)
			}
			if steps > 0 {
				clear(lists)
			}
		})
	})
	if several < 3 {
		t.Errorf("no worker has more than %d gradients in a step; the runs are too even to show anything", several)
	}
}

// TestRingleaderDelaysAreBounded: Ringleader ASGD [R]: no gradient in a step is older than 2n - 2 versions, none is dropped
// that has samples and whose worker is there, and each counts once. Departure: with one step of each full table a delay is
// at most 1. This holds while workers leave and come back.
func TestRingleaderDelaysAreBounded(t *testing.T) {
	v := setting(t, "ringleader", "fold=arrival staleness=-1")
	largest := int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		env := schemetest.DrawEnv(rt)
		version := env.Start
		table := map[[2]int64]int64{} // seen, by worker and iteration
		left := map[int32]bool{}
		d := schemetest.Driver{Env: env, See: func(ev scheme.Event, ds []scheme.Decision) {
			switch ev.Kind {
			case scheme.Left, scheme.Joined:
				left[ev.Worker] = ev.Kind == scheme.Left
			}
			for _, d := range ds {
				switch {
				case d.Kind == scheme.Drop && ev.Samples > 0 && !left[ev.Worker] && (env.Clocks == nil || env.Clocks[ev.Worker] >= 0):
					rt.Fatalf("%v: %v", ev, d)
				case d.Kind == scheme.Fold && d.Src == scheme.SlotPush:
					table[[2]int64{int64(d.Worker), d.Iter}] = ev.Seen
				case d.Kind == scheme.Commit:
					for _, seen := range table {
						largest = max(largest, version-seen)
						if version-seen > min(1, 2*int64(env.Workers)-2) {
							rt.Fatalf("%v: a gradient of version %d in the step from %d, with %d workers", ev, seen, version, env.Workers)
						}
					}
					clear(table)
					version++
				}
			}
		}}
		d.Run(rt, v.New(env))
	})
	if largest != 1 {
		t.Errorf("the largest delay is %d; the runs are too even to show anything", largest)
	}
}
