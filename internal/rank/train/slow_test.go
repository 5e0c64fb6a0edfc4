package train

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/policy/straggler"
)

// slowed is the slowness of a worker by constant specs.
func slowed(t interface{ Fatal(args ...any) }, specs ...straggler.Spec) slowness {
	var s slowness
	for place, spec := range specs {
		spec.Kind = "constant"
		if err := s.to.Add(spec, straggler.Env{Place: place}); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// Each pause of a steady worker is the one asked for, except the first: it does not yet know the time after forward.
func TestSlownessOfASteadyWorker(t *testing.T) {
	const us = time.Microsecond
	s := slowed(t, straggler.Spec{Factor: 5}, straggler.Spec{Sleep: 10 * us, From: 2, Until: 4})
	for i, want := range []time.Duration{4 * 60 * us, 4*200*us + 4*140*us, 810 * us, 810 * us, 800 * us, 800 * us} {
		if got := s.due(int64(i), 60*us); got != want {
			t.Errorf("iteration %d: %v, want %v", i, got, want)
		}
		s.finished(int64(i), 60*us, 200*us, want)
	}
	if s.owed != 0 {
		t.Errorf("%v are owed", s.owed)
	}
}

// A sleep that took too long shortens the next pause, and an iteration that computed longer than those before lengthens it.
func TestSlownessCarriesOver(t *testing.T) {
	const ms = time.Millisecond
	s := slowed(t, straggler.Spec{Factor: 3})
	for i, c := range []struct{ forward, own, slept, due time.Duration }{
		{1 * ms, 3 * ms, 2 * ms, 2 * ms},
		{1 * ms, 3 * ms, 11 * ms, 10 * ms}, // 4 owed by the first iteration; slept 1 too long
		{1 * ms, 9 * ms, 5 * ms, 5 * ms},   // held up after forward
		{1 * ms, 3 * ms, 18 * ms, 18 * ms}, // 12 owed by the last iteration; the estimate uses the shortest rest, not the last
		{1 * ms, 3 * ms, 6 * ms, 6 * ms},
	} {
		if got := s.due(int64(i), c.forward); got != c.due {
			t.Errorf("iteration %d: due %v, want %v", i, got, c.due)
		}
		s.finished(int64(i), c.forward, c.own, c.slept)
	}
	if s.owed != 0 {
		t.Errorf("%v are open", s.owed)
	}
	if none := (&slowness{}); none.due(0, ms) != 0 {
		t.Error("a worker without faults is slowed")
	}
}

// A sleep that took far too long halves the next pauses, so that the worker stays slow, but not for ever.
func TestSlownessOfAStoppedProcess(t *testing.T) {
	const ms = time.Millisecond
	for slept, halves := range map[time.Duration]int{4 * ms: 0, 6 * ms: 1, 104 * ms: 50, time.Hour: 2 * oversleptMax} {
		s := slowed(t, straggler.Spec{Sleep: 4 * ms})
		s.finished(0, ms, 3*ms, slept)
		for i := range int64(halves) {
			due := s.due(i+1, ms)
			if s.finished(i+1, ms, 3*ms, due); due != 2*ms {
				t.Fatalf("%v slept: %v due in iteration %d, want half of a pause", slept, due, i+1)
			}
		}
		if due := s.due(int64(halves)+1, ms); due != 4*ms {
			t.Errorf("%v slept: %v due after %d iterations, want a pause", slept, due, halves)
		}
	}
}

// However iterations vary and sleeps overshoot, the time slept differs from the time asked for by at most one iteration's
// worth and two overshoots: over a run the factor is the one that was asked for.
func TestSlownessAddsUpToTheFactor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		factor := 1 + rapid.Float64Range(0.5, 9).Draw(t, "factor-1")
		s := slowed(t, straggler.Spec{Factor: factor})
		const most, late = 1_000_000, 100_000
		times := rapid.Custom(func(t *rapid.T) time.Duration { return time.Duration(rapid.Int64Range(most/4, most/2).Draw(t, "ns")) })
		var asked, slept time.Duration
		for i := range rapid.Int64Range(1, 200).Draw(t, "iterations") {
			forward, behind := times.Draw(t, "forward"), times.Draw(t, "behind")
			pause := s.due(i, forward) + time.Duration(rapid.Int64Range(0, late).Draw(t, "late"))
			s.finished(i, forward, forward+behind, pause)
			asked += time.Duration((factor - 1) * float64(forward+behind))
			slept += pause
			bound := time.Duration((factor-1)*most) + 2*late
			if d := slept - asked; d > bound || d < -bound || d != -s.owed {
				t.Fatalf("after iteration %d: slept %v, asked for %v; at most %v apart, and %v are open", i, slept, asked, bound, s.owed)
			}
		}
	})
}

// The clock decides when a sleep is over, not the timer.
func TestSleepUntilTheClockSaysSo(t *testing.T) {
	begin := time.Now()
	now := func() time.Duration { return time.Since(begin) }
	for _, d := range []time.Duration{-time.Second, 0, 50 * time.Microsecond, napMax, napMax + 3*time.Millisecond} {
		end := now() + d
		if sleepUntil(now, end); now() < end {
			t.Errorf("a sleep of %v ended early", d)
		}
	}
}
