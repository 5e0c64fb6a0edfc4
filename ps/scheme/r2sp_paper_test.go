package scheme_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// All of R2SP below is reconstructed [R] from the paper's abstract; the sections are those of our notes on stragglers and
// contention, 1.1 to 1.3.

// runToTheEnd runs workers that all take part to the end, and calls see for every event with its decisions.
func runToTheEnd(rt *rapid.T, v schemetest.Variant, workers int, see func(ev scheme.Event, ds []scheme.Decision)) {
	env := scheme.Env{Workers: workers, Shards: []int32{schemetest.Shard}, Servers: 1}
	d := schemetest.Driver{Env: env, Plain: true, Grants: true, See: see}
	d.Run(rt, v.New(env))
}

// Invariants 1 and 2: the order of commits over any window of N is that of the ranks, and each worker commits once per
// round. The staleness of every commit after the first round is exactly N-1; in the first round it is the rank. Strict
// order, any speeds. The lead c - v is at most 1.
func TestR2SPOrderAndStaleness(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(rt, "workers")
		draw := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
		speed := func(int32, int64) time.Duration { return time.Duration(draw.IntN(int(200 * time.Millisecond))) }
		m := clockwork(t, "skip_after=0 profile=2", int32(n), speed, time.Duration(1+draw.IntN(int(20*time.Millisecond))), 30)
		for k, w := range m.who {
			if want := min(k, n-1); int(w) != k%n || m.stale[k] != want {
				rt.Fatalf("commit %d of %d workers is of worker %d with staleness %d, want worker %d with %d", k, n, w, m.stale[k], k%n, want)
			}
		}
		if m.lead > 1 || n > 1 && m.lead < 1 {
			rt.Fatalf("the lead is %d, the limit 1", m.lead)
		}
	})
}

// turnsOf plays rounds of pushes in rank order, with a batch per worker, and returns the scales of the commits.
func turnsOf(s scheme.Scheme, batches []int64, iters ...int64) (scales []float64) {
	for _, i := range iters {
		for w, samples := range batches {
			if samples == 0 {
				continue // has left
			}
			ev := scheme.Event{Worker: int32(w), Owner: int32(w), Iter: i, Parts: 1, Samples: samples, Kind: scheme.Ready}
			s.Step(ev, nil)
			ev.Kind = scheme.Pushed
			for _, d := range s.Step(ev, nil) {
				if d.Kind == scheme.Commit {
					scales = append(scales, d.Scale)
				}
			}
			ev.Kind, ev.Iter = scheme.Wanted, i+1
			s.Step(ev, nil)
		}
	}
	return scales
}

// Section 1.2 and invariant 4: lambda_i = b_i / sum_j b_j, so that a round of pushes weighs as one step on the mean
// over all samples, also after a worker has left. Before all have pushed, a worker that has not counts with the batch
// of the one that pushes.
func TestR2SPWeighsBySamples(t *testing.T) {
	v := setting(t, "r2sp", "skip_after=0")
	s := shardOf(v, 3)
	turnsOf(s, []int64{16, 32, 80}, 0)
	scales := turnsOf(s, []int64{16, 32, 80}, 1)
	if want := []float64{0.125, 0.25, 0.625}; !slices.Equal(scales, want) {
		t.Errorf("scales %v, want %v", scales, want)
	}
	s.Step(scheme.Event{Kind: scheme.Left, Worker: 2}, nil)
	if scales, want := turnsOf(s, []int64{16, 48, 0}, 2, 3), []float64{1. / 3, 0.75, 0.25, 0.75}; !slices.Equal(scales, want) {
		t.Errorf("without worker 2: scales %v, want %v", scales, want)
	}
	if scales := turnsOf(shardOf(v, 4), []int64{8, 8, 8, 8}, 0); !slices.Equal(scales, []float64{0.25, 0.25, 0.25, 0.25}) {
		t.Errorf("first round of equal batches: scales %v, want 1/N", scales)
	}
	v.Common.Weight = 0.4
	if scales := turnsOf(shardOf(v, 2), []int64{1, 9}, 0); !slices.Equal(scales, []float64{0.4, 0.4}) {
		t.Errorf("weight: 0.4 gives scales %v", scales)
	}
}

// Invariant 5: one worker is sequential SGD: every announcement is granted at once, and every push is a whole step.
func TestR2SPOfOneIsSequential(t *testing.T) {
	for _, keys := range []string{"skip_after=0", "skip_after=3 profile=1"} {
		rapid.Check(t, func(rt *rapid.T) {
			runToTheEnd(rt, setting(t, "r2sp", keys), 1, func(ev scheme.Event, ds []scheme.Decision) {
				ds = slices.DeleteFunc(ds, func(d scheme.Decision) bool { return d.Kind == scheme.WakeAt })
				ok := true
				switch ev.Kind {
				case scheme.Ready: // unless the worker is too early for the coarse clock of the test
					ok = len(ds) <= 1
				case scheme.Pushed:
					ok = len(ds) == 2 && ds[1].Kind == scheme.Commit && ds[1].Scale == 1
				case scheme.Wanted:
					ok = len(ds) == 1 && ds[0].Kind == scheme.Reply
				}
				if !ok {
					rt.Fatalf("%v: %v", ev, ds)
				}
			})
		})
	}
}

// clockworkRun is the result of a clockwork: when each push landed, whose it was, how stale it was, and the largest c - v of a
// reply.
type clockworkRun struct {
	scheme.Scheme
	landed []time.Duration
	who    []int32
	stale  []int
	lead   int64
}

// clockwork plays N workers that compute for a time, push for a time and are answered at once, on one server, without
// jitter. The only events are those of the workers and the alarms.
func clockwork(t *testing.T, keys string, workers int32, compute func(w int32, iter int64) time.Duration,
	push time.Duration, rounds int) (m clockworkRun) {
	t.Helper()
	m.Scheme = shardOf(setting(t, "r2sp", keys), int(workers))
	type due struct {
		at time.Duration
		ev scheme.Event
	}
	var queue []due
	add := func(at time.Duration, kind scheme.EventKind, w int32, iter int64) {
		queue = append(queue, due{at, scheme.Event{Kind: kind, Worker: w, Owner: w, Iter: iter, Parts: 1, Samples: 8, At: at}})
	}
	for w := range workers {
		add(compute(w, 0), scheme.Ready, w, 0)
	}
	seen, clock := make([]int, workers), make([]int64, workers)
	for len(m.landed) < rounds*int(workers) {
		slices.SortStableFunc(queue, func(a, b due) int { return int(a.at - b.at) })
		now, ev := queue[0].at, queue[0].ev
		queue = queue[1:]
		if ev.Kind == scheme.Pushed {
			m.stale = append(m.stale, len(m.landed)-seen[ev.Worker])
			m.landed, m.who = append(m.landed, now), append(m.who, ev.Worker)
			clock[ev.Worker]++
			add(now, scheme.Wanted, ev.Worker, ev.Iter+1)
		}
		for _, d := range m.Step(ev, nil) {
			switch d.Kind {
			case scheme.Grant:
				add(now+push, scheme.Pushed, d.Worker, d.Iter)
			case scheme.Reply:
				seen[d.Worker] = len(m.landed)
				m.lead = max(m.lead, d.Iter-slices.Min(clock))
				add(now, scheme.Sent, d.Worker, d.Iter)
				add(now+compute(d.Worker, d.Iter), scheme.Ready, d.Worker, d.Iter)
			case scheme.WakeAt:
				add(d.At, scheme.Alarm, 0, 0)
			}
		}
	}
	return m
}

// Section 1.1: T = max(max_i cycle_i, N * push), gap = T/N. Invariant 6: without jitter consecutive commits are exactly
// a gap apart. Workers of different speed keep the order too: the slowest sets the period, and the others wait.
func TestR2SPGap(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		compute []time.Duration
		push    time.Duration
		period  time.Duration
	}{
		{[]time.Duration{90 * ms, 90 * ms, 90 * ms, 90 * ms}, 10 * ms, 100 * ms},
		{[]time.Duration{90 * ms, 90 * ms, 290 * ms, 90 * ms}, 10 * ms, 300 * ms},
		{[]time.Duration{390 * ms, 90 * ms, 190 * ms, 90 * ms}, 10 * ms, 400 * ms},
		{[]time.Duration{90 * ms, 90 * ms, 90 * ms, 90 * ms}, 50 * ms, 200 * ms}, // beyond saturation
		{[]time.Duration{90 * ms}, 10 * ms, 100 * ms},
	} {
		for _, keys := range []string{"", "skip_after=0", "skip_after=0 profile=1 delta=0"} {
			n := len(c.compute)
			m := clockwork(t, keys, int32(n), func(w int32, _ int64) time.Duration { return c.compute[w] }, c.push, 40)
			for k := 20 * n; k < 40*n; k++ {
				if d := m.landed[k] - m.landed[k-1]; d != c.period/time.Duration(n) || int(m.who[k]) != k%n {
					t.Fatalf("%v, push %v, %q: worker %d commits %v after the one before, want worker %d after %v; %v", c.compute,
						c.push, keys, m.who[k], d, k%n, c.period/time.Duration(n), m)
				}
			}
		}
	}
}

// Section 1.1, re-coordination: when a worker becomes slower the slots are dealt anew, and commits are evenly spaced
// again, within delta. With skip_after the worker loses turns until the period has followed it.
func TestR2SPCoordinatesAnew(t *testing.T) {
	const ms = time.Millisecond
	for _, keys := range []string{"skip_after=0 delta=0.02", "skip_after=2 delta=0.02"} {
		m := clockwork(t, keys, 3, func(w int32, iter int64) time.Duration {
			if w == 2 && iter >= 15 {
				return 140 * ms
			}
			return 90 * ms
		}, 10*ms, 90)
		for k := 200; k < len(m.landed); k++ {
			if d := m.landed[k] - m.landed[k-1]; d < 46*ms || d > 54*ms {
				t.Fatalf("%s: commit %d comes %v after the one before, want 50 ms; %v", keys, k, d, m)
			}
		}
	}
}

// Section 1.1, skip_after: the strict order waits for ever. Otherwise the turn of a worker that is late by more than so
// many gaps passes. Here no worker announces any more. The slot of worker 0 is 40 ms after the last push, the gap is 50
// ms. Then it is worker 1's turn, whose slot has passed.
func TestR2SPSkipsALateWorker(t *testing.T) {
	const ms = time.Millisecond
	for keys, want := range map[string]string{"skip_after=0": "", "skip_after=2": "140ms skips=1; 240ms skips=2"} {
		m := clockwork(t, keys, 2, func(int32, int64) time.Duration { return 90 * ms }, 10*ms, 20)
		end := m.landed[len(m.landed)-1]
		skips := ""
		var seen []string
		for after := ms; after < 400*ms; after += ms {
			m.Step(scheme.Event{Kind: scheme.Alarm, At: end + after}, nil)
			if word := m.String()[strings.LastIndexByte(m.String(), ' ')+1:]; strings.HasPrefix(word, "skips") && word != skips {
				skips = word
				seen = append(seen, fmt.Sprint(after, " ", word))
			}
		}
		if got := strings.Join(seen, "; "); got != want {
			t.Errorf("%s: %q, want %q", keys, got, want)
		}
	}
}
