package scheme_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
)

// The formula of the original was not found [A: it has a weak threshold w and an alpha that follows the measured
// performance]. These tests check our stand-in [X] and its invariants, not the paper's.

// boundNow reads s_t from the line of state.
func boundNow(t interface{ Fatalf(string, ...any) }, s scheme.Scheme) (bound int64) {
	_, text, _ := strings.Cut(s.String(), " s=")
	if _, err := fmt.Sscan(text, &bound); err != nil {
		t.Fatalf("no bound in %v: %v", s, err)
	}
	return bound
}

// TestDSPSBoundFollowsSpeeds: DSPS stand-in: alpha = clamp(max/min - 1, 0, 1) of the iteration times, s_t = s_min +
// round(alpha * (s_max - s_min)): equal speeds give s_min, twice as slow or worse s_max.
func TestDSPSBoundFollowsSpeeds(t *testing.T) {
	for _, c := range []struct {
		ratio float64
		want  int64
	}{{1, 2}, {1.01, 2}, {1.25, 4}, {1.5, 6}, {1.75, 8}, {2, 10}, {5, 10}} {
		for _, release := range releases {
			l := timeline{scheme: shardOf(setting(t, "dsps", "s_min=2 s_max=10 window=5 release="+release), 2), period: uneven(c.ratio)}
			l.run(2, 100)
			if got := boundNow(t, l.scheme); got != c.want {
				t.Errorf("ratio %v, %s: s_t = %d, want %d", c.ratio, release, got, c.want)
			}
		}
	}
}

// TestDSPSWaitingDoesNotCount: sync core, DSSP details, item 5 [X], taken over: the time is measured from the reply to
// the push. Measured from push to push, a delayed worker would seem as slow as the worker that it waits for. The bound
// would fall just when it is needed, and with s_min = 0 it could never rise.
func TestDSPSWaitingDoesNotCount(t *testing.T) {
	l := timeline{scheme: shardOf(setting(t, "dsps", "s_min=0 s_max=4 window=1"), 2), period: uneven(3)}
	l.run(2, 50)
	if got := boundNow(t, l.scheme); got != 4 || l.running != 4 {
		t.Errorf("s_t = %d, largest running lead %d, want 4 and 4", got, l.running)
	}
}

// TestDSPSStragglerComesAndGoes: the purpose of a changing bound: it rises while one worker is slow, and falls again.
func TestDSPSStragglerComesAndGoes(t *testing.T) {
	l := timeline{scheme: shardOf(setting(t, "dsps", "s_min=1 s_max=6 window=4 smoothing=0.5"), 3)}
	computed := 0 // iterations that worker 2 has begun
	var bounds []int64
	l.period = func(w int) float64 {
		if w != 2 {
			return 1
		}
		if computed++; computed%20 == 0 {
			bounds = append(bounds, boundNow(t, l.scheme))
		}
		if computed > 20 && computed <= 40 {
			return 3
		}
		return 1
	}
	l.run(3, 80)
	if got := fmt.Sprint(bounds); got != "[1 6 1 1]" {
		t.Errorf("bounds at iterations 20, 40, 60, 80 of the straggler: %s, want [1 6 1 1]", got)
	}
}

// TestDSPSInvariants: s_min <= s_t <= s_max always; running lead <= s_max; where the two differ, both are reached.
func TestDSPSInvariants(t *testing.T) {
	v := setting(t, "dsps", "fold=arrival s_min=1 s_max=4 window=2 smoothing=0.5")
	seen := map[int64]bool{}
	lead := int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		plainRun(rt, v, func(ev scheme.Event, _ bool, all []scheme.Decision, b *pushCounts) {
			for _, d := range replies(all) {
				lead = max(lead, d.Iter-b.v)
			}
		})
		env := scheme.Env{Workers: 3, Shards: []int32{0}, Servers: 1}
		l := timeline{scheme: v.New(env)}
		l.period = func(int) float64 {
			bound := boundNow(rt, l.scheme)
			if bound < 1 || bound > 4 {
				rt.Fatalf("s_t = %d", bound)
			}
			seen[bound] = true
			return rapid.Float64Range(0.5, 1.5).Draw(rt, "period")
		}
		l.run(3, 30)
	})
	if lead > 4 || !seen[1] || !seen[4] {
		t.Errorf("largest running lead %d, bounds seen %v", lead, seen)
	}
}

// TestDSPSWithoutRangeIsSSP: equivalence tests: s_min = s_max is SSP; with 0 it is BSP.
func TestDSPSWithoutRangeIsSSP(t *testing.T) {
	for _, release := range releases {
		for _, s := range []int64{0, 1, 3} {
			for _, fold := range []string{"rank", "arrival"} {
				law(t, setting(t, "ssp", fmt.Sprintf("fold=%s staleness=%d release=%s", fold, s, release)),
					setting(t, "dsps", fmt.Sprintf("fold=%s s_min=%d s_max=%d window=1 release=%s", fold, s, s, release)), false)
			}
		}
		bsp := setting(t, "bsp", "fold=rank strict=true release="+release)
		law(t, bsp, setting(t, "dsps", "fold=rank s_min=0 s_max=0 release="+release), false)
		law(t, bsp, setting(t, "dsps", "fold=arrival s_min=0 s_max=0 release="+release), true)
	}
}

// paced pushes and pulls for w at second at.
func paced(s scheme.Scheme, w int32, i int64, at time.Duration) (answered []int32) {
	var all []scheme.Decision
	all = s.Step(scheme.Event{Kind: scheme.Pushed, Worker: w, Owner: w, Parts: 1, Iter: i, Samples: 1, At: at * time.Second}, all)
	all = s.Step(scheme.Event{Kind: scheme.Wanted, Worker: w, Iter: i + 1, At: at * time.Second}, all)
	for _, d := range replies(all) {
		answered = append(answered, d.Worker)
	}
	return answered
}

// TestDSPSRiseReleases: when s_t rises, all delayed pulls are judged anew at once, also pulls that release: lazy would
// delay until every worker has finished their iteration. When s_t falls, no running worker is called back; it applies
// at the next pull.
func TestDSPSRiseReleases(t *testing.T) {
	for _, release := range releases {
		s := shardOf(setting(t, "dsps", "s_min=1 s_max=4 window=1 smoothing=1 release="+release), 2)
		for w := range int32(2) {
			s.Step(scheme.Event{Kind: scheme.Wanted, Worker: w}, nil)
		}
		paced(s, 0, 0, 1)
		if got := paced(s, 0, 1, 2); len(got) > 0 {
			t.Fatalf("%s: w0 was answered at a lead of 2: %v", release, s)
		}
		if got := fmt.Sprint(paced(s, 1, 0, 5)); got != "[0 1]" || boundNow(t, s) != 4 {
			t.Errorf("%s: w1's slow iteration answers %s; %v", release, got, s)
		}
		for i := int64(2); i < 5; i++ { // w0 runs at a lead of 4
			if len(paced(s, 0, i, 4+time.Duration(i))) == 0 {
				t.Fatalf("%s: w0 waits at iteration %d: %v", release, i+1, s)
			}
		}
		if paced(s, 1, 1, 6); boundNow(t, s) != 1 { // w1 took 1 s, as w0 does
			t.Errorf("%s: the bound has not fallen: %v", release, s)
		}
		if got := paced(s, 0, 5, 9); len(got) > 0 {
			t.Errorf("%s: w0 was answered beyond the new bound: %v", release, s)
		}
	}
}

// TestDSPSMembership: only workers in the run count. A worker that came back has no pace yet, and until it has one the
// bound stays.
func TestDSPSMembership(t *testing.T) {
	s := shardOf(setting(t, "dsps", "s_min=0 s_max=4 window=1 smoothing=1"), 3)
	for w := range int32(3) {
		s.Step(scheme.Event{Kind: scheme.Wanted, Worker: w}, nil)
	}
	paced(s, 0, 0, 1)
	paced(s, 1, 0, 1)
	paced(s, 2, 0, 5)
	if got := boundNow(t, s); got != 4 {
		t.Fatalf("with a straggler s_t = %d, want 4", got)
	}
	s.Step(scheme.Event{Kind: scheme.Left, Worker: 2}, nil)
	paced(s, 0, 1, 6)
	paced(s, 1, 1, 6)
	if got := boundNow(t, s); got != 0 {
		t.Errorf("without the straggler s_t = %d, want 0", got)
	}
	s.Step(scheme.Event{Kind: scheme.Joined, Worker: 2}, nil)
	paced(s, 0, 2, 20)
	paced(s, 1, 2, 30)
	paced(s, 2, 2, 40) // it pushes without ever having been answered
	if got := boundNow(t, s); got != 0 {
		t.Errorf("before the newcomer's pace is known s_t = %d, want 0 as before", got)
	}
}
