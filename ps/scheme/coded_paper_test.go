package scheme_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/policy/work/code"
	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// drawCode draws the code of a run.
func drawCode(t *testing.T, rt *rapid.T, workers int) *scheme.TestCode {
	s := code.Spec{Kind: code.Auto, Stragglers: rapid.IntRange(0, workers-1).Draw(rt, "stragglers")}
	c := scheme.NewTestCode(t, s, workers, time.Duration(rapid.SampledFrom([]int{0, 1, 20, 200}).Draw(rt, "deadline"))*time.Millisecond)
	c.IsPrivate = rapid.Bool().Draw(rt, "private parts")
	return c
}

// codewordsOf and privateOf are the pushes of an iteration that are sums of partitions, and the private parts, in rank order.
func (h *hindsight) codewordsOf(j int64, k int) []int { return h.halfOf(j, k, false) }
func (h *hindsight) privateOf(j int64, k int) []int   { return h.halfOf(j, k, true) }

func (h *hindsight) halfOf(j int64, k int, isPrivate bool) (pushes []int) {
	for w := range int32(h.env.Workers) {
		for _, p := range h.pushesOf(j, k) {
			if ev := h.history[p]; ev.Worker == w && isPrivate == (ev.Part < ev.Parts-1) {
				pushes = append(pushes, p)
			}
		}
	}
	return pushes
}

// workersOf are the workers of pushes.
func (h *hindsight) workersOf(pushes []int) (workers []int32) {
	for _, p := range pushes {
		workers = append(workers, h.history[p].Worker)
	}
	return workers
}

// isRepeated says whether the private part, or the sum, that lands at event k had landed before, in an earlier life of its worker.
func (h *hindsight) isRepeated(k int) bool {
	ev := h.history[k]
	return ev.Parts > 1 &&
		slices.ContainsFunc(h.pushesOf(ev.Iter, k-1),
			func(p int) bool { return h.history[p].Worker == ev.Worker && h.history[p].Part == ev.Part })
}

// privateEnd is the iteration behind the last one of which a private part counts, up to event k; 0: there is none.
func (h *hindsight) privateEnd(k int) (end int64) {
	for p := range k + 1 {
		if ev := h.history[p]; ev.Parts > 1 && h.counts(p) {
			end = max(end, ev.Iter+1)
		}
	}
	return end
}

// codedSince is the event at which iteration v was open and had a push, up to event k; -1: it has none. opens is the event at which it
// was opened, if h does not know yet.
func (h *hindsight) codedSince(v int64, k, opens int) int {
	pushes := h.pushesOf(v, k)
	if len(pushes) == 0 {
		return -1
	}
	for e := range h.v {
		if h.v[e] >= v {
			opens = e - 1
			break
		}
	}
	return max(opens, slices.Min(pushes))
}

// codedMoves says whether event k can close an iteration.
func (h *hindsight) codedMoves(k int) bool {
	ev := h.history[k]
	switch gone := h.left[k][ev.Worker]; ev.Kind {
	case scheme.Pushed, scheme.Left:
		return !gone
	case scheme.Joined:
		return gone
	}
	return ev.Kind == scheme.Alarm
}

// codedV moves v after event k past every iteration that decodes, whose deadline has passed, or that nobody in the run can push any more.
func (h *hindsight) codedV(v int64, k int, clock []int64, left []bool) int64 {
	if !h.codedMoves(k) {
		return v
	}
	for c := h.env.Code; ; v++ {
		arrived, private, live := h.workersOf(h.codewordsOf(v, k)), h.workersOf(h.privateOf(v, k)), liveClocks(clock, left)
		closes := len(arrived) > 0 && c.Decodes(arrived)
		for w, c := range clock { // the private part of each worker that may still push it must be there
			closes = closes && (!h.env.Code.Private() || left[w] || c > v || slices.Contains(private, int32(w)))
		}
		if since := h.codedSince(v, k, k); since >= 0 && c.Deadline() > 0 && h.history[k].At >= h.history[since].At+c.Deadline() {
			closes = true
		}
		if !closes && (len(live) == 0 || slices.Min(live) <= v) {
			return v
		}
	}
}

// decoded lists the folds and commits of the iterations that event k closes, and the alarm for the one that it leaves open.
func (h *hindsight) decoded(k int) (out []scheme.Decision) {
	c := h.env.Code
	for j := h.v[k]; j < h.v[k+1]; j++ {
		codewords, n, sum := h.codewordsOf(j, k), 0, int64(0)
		for _, p := range h.privateOf(j, k) {
			out = append(out, fold(h.history[p], float64(min(1, n))))
			n, sum = n+1, sum+h.history[p].Samples
		}
		for i, weight := range c.Weights(h.workersOf(codewords)) {
			ev := h.history[codewords[i]]
			if weight == 0 {
				out = append(out, scheme.Decision{Kind: scheme.Drop, Worker: ev.Worker, Shard: ev.Shard, Part: ev.Part, Iter: j,
					Reason: scheme.Surplus})
				continue
			}
			f := fold(ev, float64(min(1, n)))
			f.Weight = weight
			out = append(out, f)
			n, sum = n+1, sum+ev.Samples
		}
		if n > 0 {
			d := commit(scheme.NoWorker, j, 1, c.Samples())
			d.Unpushed = c.Samples() - sum
			d.Approximate = !c.Decodes(h.workersOf(codewords)) || c.Private() && len(h.privateOf(j, k)) < h.env.Workers
			out = append(out, d)
		}
	}
	if v := h.v[k+1]; c.Deadline() > 0 && h.codedMoves(k) && h.codedSince(v, k, k) == k {
		out = append(out, scheme.Decision{Kind: scheme.WakeAt, Worker: scheme.NoWorker, Shard: schemetest.Shard,
			At: h.history[k].At + c.Deadline()})
	}
	return out
}

// Without a deadline each iteration is one commit, in which every partition counts once, however the pushes arrive
// (gradient coding [A]: a B = 1), and so does the private part of each worker in the run. It closes with less only
// when no worker in the run can push it any more.
func TestCodedCountsEachPartitionOnce(t *testing.T) {
	keys := setting(t, "coded", "")
	exact, few, private := 0, 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 7).Draw(rt, "workers")
		c := scheme.NewTestCode(t, code.Spec{Kind: code.Auto, Stragglers: rapid.IntRange(0, min(3, n-1)).Draw(rt, "stragglers")}, n, 0)
		c.IsPrivate = rapid.Bool().Draw(rt, "private parts")
		env := scheme.Env{Workers: n, Shards: []int32{schemetest.Shard}, Servers: 1, Code: c}
		clock, arrived, alone, v := map[int32]int64{}, map[int64][]int32{}, map[int64][]int32{}, int64(0)
		for w := range int32(n) {
			clock[w] = 0
		}
		d := schemetest.Driver{Env: env, See: func(ev scheme.Event, ds []scheme.Decision) {
			_, live := clock[ev.Worker]
			switch {
			case ev.Kind == scheme.Left:
				delete(clock, ev.Worker)
			case ev.Kind == scheme.Joined:
				clock[ev.Worker] = ev.Iter
			case ev.Kind == scheme.Pushed && live:
				of := arrived
				if clock[ev.Worker] = ev.Iter + 1; ev.Part < ev.Parts-1 {
					clock[ev.Worker], of = ev.Iter, alone
				}
				if ev.Samples > 0 && !slices.Contains(of[ev.Iter], ev.Worker) {
					of[ev.Iter] = append(of[ev.Iter], ev.Worker)
				}
			}
			var folded []int32
			parts, largest := make([]float64, n), 1.0
			for _, d := range ds {
				switch d.Kind {
				case scheme.Fold:
					if c.IsPrivate && d.Part == 0 {
						if folded = append(folded, d.Worker); d.Weight != 1 {
							rt.Fatalf("%v: %v", ev, d)
						}
						continue
					}
					of, factors := c.Row(int(d.Worker))
					for i, j := range of {
						parts[j] += d.Weight * factors[i]
						largest = max(largest, math.Abs(d.Weight*factors[i]))
					}
				case scheme.Commit:
					isExact := c.Decodes(arrived[d.Iter])
					for w, clock := range clock {
						if c.IsPrivate && clock <= d.Iter && !slices.Contains(alone[d.Iter], w) && w != ev.Worker {
							rt.Fatalf("%v: %v without the private part of w%d, which may still come", ev, d, w)
						}
					}
					if slices.Sort(alone[d.Iter]); !slices.Equal(folded, alone[d.Iter]) {
						rt.Fatalf("%v: %v with the private parts of %v; those of %v have landed", ev, d, folded, alone[d.Iter])
					}
					private += len(folded)
					if d.Approximate == (isExact && (!c.IsPrivate || len(folded) == n)) {
						rt.Fatalf("%v: %v of sums %v and private parts %v", ev, d, arrived[d.Iter], folded)
					}
					folded = nil
					if isExact {
						exact++
					} else {
						few++
					}
					for j, sum := range parts {
						if isExact && math.Abs(sum-1) > 1e-9*largest {
							rt.Fatalf("%v: partition %d counts %v times in %v", ev, j, sum, d)
						}
					}
					for w, c := range clock {
						if !isExact && c <= d.Iter && w != ev.Worker {
							rt.Fatalf("%v: %v of %v, but w%d may still push it", ev, d, arrived[d.Iter], w)
						}
					}
					if d.Iter < v || d.Samples != c.Samples() {
						rt.Fatalf("%v: %v; %d iterations were closed", ev, d, v)
					}
					v = d.Iter + 1
					clear(parts)
				}
			}
		}}
		d.Run(rt, keys.New(env))
	})
	if exact == 0 || few == 0 || private == 0 {
		t.Errorf("%d iterations closed with enough pushes and %d with too few, with %d private parts; want some of each", exact, few, private)
	}
}

// A scheme with a code that is saved and restored half-way decides as before, and damaged state is refused or is another state.
func TestCodedIsRestored(t *testing.T) {
	keys := setting(t, "coded", "")
	rapid.Check(t, func(rt *rapid.T) {
		env := schemetest.DrawEnv(rt)
		env.Code = drawCode(t, rt, env.Workers)
		at, bit := rapid.IntRange(1, 60).Draw(rt, "save at event"), rapid.IntRange(0, 1<<16).Draw(rt, "damaged bit")
		s := keys.New(env)
		var restored scheme.Scheme
		d := schemetest.Driver{Env: env, See: func(ev scheme.Event, want []scheme.Decision) {
			if restored != nil {
				if got := restored.Step(ev, nil); !slices.Equal(got, want) {
					rt.Fatalf("%v: restored it decides\n%v\ninstead of\n%v", ev, got, want)
				}
			}
			if at--; at != 0 {
				return
			}
			saved, err := s.MarshalBinary()
			if err != nil {
				rt.Fatal(err)
			}
			restored = keys.New(env)
			if err := restored.UnmarshalBinary(saved); err != nil || restored.String() != s.String() {
				rt.Fatalf("restored %v from %v: %v", restored, s, err)
			}
			other := slices.Clone(saved)
			other[bit/8%len(other)] ^= 1 << (bit % 8)
			victim := keys.New(env)
			if victim.UnmarshalBinary(other) == nil {
				if again, err := victim.MarshalBinary(); err != nil || !slices.Equal(again, other) {
					rt.Fatalf("accepts damaged state and saves it as other bytes: %v", err)
				}
			}
		}}
		d.Run(rt, s)
	})
}

// While s workers push nothing at all, the others go on. With one more, they wait until the deadline.
func TestCodedWithoutStragglers(t *testing.T) {
	for _, after := range []time.Duration{0, time.Second} {
		c := scheme.NewTestCode(t, code.Spec{Kind: code.Cyclic, Stragglers: 2}, 5, after)
		s := setting(t, "coded", "").New(scheme.Env{Workers: 5, Shards: []int32{schemetest.Shard}, Servers: 1, Code: c})
		commits, at := 0, time.Duration(0)
		step := func(ev scheme.Event) {
			ev.Shard, ev.Owner, ev.Parts, ev.Samples, ev.At = schemetest.Shard, ev.Worker, 1, 32, at
			for _, d := range s.Step(ev, nil) {
				if d.Kind == scheme.Commit {
					commits++
				}
			}
		}
		for i := range int64(6) {
			workers := []int32{0, 2, 3}
			if i == 5 {
				workers = workers[:2] // and nobody else
			}
			at += 10 * time.Millisecond
			for _, w := range workers {
				step(scheme.Event{Kind: scheme.Pushed, Worker: w, Iter: i})
				step(scheme.Event{Kind: scheme.Wanted, Worker: w, Iter: i + 1})
			}
		}
		if commits != 5 {
			t.Fatalf("%d commits, want one for each iteration that three of five have pushed: %v", commits, s)
		}
		if at += after; after > 0 {
			step(scheme.Event{Kind: scheme.Alarm})
		}
		if want := 5 + int(after/time.Second); commits != want {
			t.Errorf("deadline %v: %d commits, want %d: %v", after, commits, want, s)
		}
	}
}
