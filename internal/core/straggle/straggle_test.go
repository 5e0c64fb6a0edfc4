package straggle

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
)

// seen is one thing that a Detector is told.
type seen struct {
	w           int32
	iter        int64
	at, blocked time.Duration
	left        bool
	restart     bool
}

// dumbVerdict says from the whole history what has happened with its last event. It searches instead of counting.
func dumbVerdict(a scheme.Await, workers int, all []seen) bool {
	type judged struct {
		w    int32
		slow bool
	}
	var since []judged // since the last restart, by workers that are present
	own := map[int32]time.Duration{}
	last := map[int32]seen{}
	gone := map[int32]bool{}
	for _, ev := range all {
		switch {
		case ev.restart:
			since = nil
			continue
		case ev.left:
			delete(own, ev.w)
			delete(last, ev.w)
			gone[ev.w] = true
			since = slices.DeleteFunc(since, func(j judged) bool { return j.w == ev.w })
			continue
		}
		if was, pushed := last[ev.w]; pushed && was.iter+1 == ev.iter {
			own[ev.w] = max(0, ev.at-was.at-ev.blocked)
			var sorted []time.Duration
			for _, d := range own {
				sorted = append(sorted, d)
			}
			slices.Sort(sorted)
			if len(sorted) >= 3 {
				middle := sorted[len(sorted)/2]
				if len(sorted)%2 == 0 {
					middle = sorted[len(sorted)/2-1]
				}
				since = append(since, judged{ev.w, middle > 0 && own[ev.w].Seconds() > a.Factor*middle.Seconds()})
			}
		}
		last[ev.w] = ev
	}
	row := func(w int32, slow bool) (n int64) { // the last iterations of the worker that were all slow, or all not
		for _, j := range slices.Backward(since) {
			if j.w == w && j.slow != slow {
				return n
			}
			if j.w == w {
				n++
			}
		}
		return n
	}
	if ev := all[len(all)-1]; ev.left || ev.restart || len(own) < 3 {
		return false
	} else if a.Straggler == scheme.StragglerShows {
		return row(ev.w, true) >= a.Rounds
	}
	for w := range int32(workers) {
		if !gone[w] && row(w, false) < a.Rounds {
			return false
		}
	}
	return true
}

// The Detector decides what a plain search of the whole history decides, on random workers that come and go.
func TestTheDetectorIsItsDumbTwin(t *testing.T) {
	verdicts := 0
	rapid.Check(t, func(t *rapid.T) {
		workers := rapid.IntRange(3, 6).Draw(t, "workers")
		a := scheme.Await{Straggler: rapid.SampledFrom([]string{scheme.StragglerShows, scheme.StragglerGone}).Draw(t, "what"),
			Factor: rapid.SampledFrom([]float64{1.25, 1.5, 3}).Draw(t, "factor"), Rounds: rapid.Int64Range(1, 3).Draw(t, "rounds")}
		var d Detector
		d.Start(a, workers)
		iters, at := make([]int64, workers), make([]time.Duration, workers)
		present, gone := workers, make([]bool, workers)
		var all []seen
		for range rapid.IntRange(30, 200).Draw(t, "events") {
			w := int32(rapid.IntRange(0, workers-1).Draw(t, "w"))
			if gone[w] {
				continue
			}
			ev := seen{w: w}
			switch rapid.IntRange(0, 60).Draw(t, "event") {
			case 60:
				ev.left, gone[w] = true, true
				present--
				d.Left(w)
			case 59:
				ev.restart = true
				d.Start(a, workers)
			default:
				took := time.Duration(rapid.SampledFrom([]int{5, 0, 4, 6, 10, 30}).Draw(t, "took")) * time.Millisecond
				ev.blocked = time.Duration(rapid.IntRange(0, 3).Draw(t, "blocked")) * time.Millisecond
				at[w] += took + ev.blocked
				ev.iter, ev.at = iters[w], at[w]
				iters[w]++
				d.Pushed(w, ev.iter, ev.at, ev.blocked)
			}
			all = append(all, ev)
			if ev.left || ev.restart {
				continue
			}
			_, got := d.Verdict(w, present)
			if want := dumbVerdict(a, workers, all); got != want {
				t.Fatalf("%v after %+v: %v, want %v", a, all, got, want)
			}
			if got {
				verdicts++
			}
		}
	})
	if verdicts < 50 {
		t.Errorf("%d verdicts: the test checks nothing", verdicts)
	}
}
