package tasks

import (
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// latency is that of all messages of a steady cluster.
const latency = 10 * time.Microsecond

// steady is a cluster in which a sample takes a millisecond, or as many as its worker is slow, and all messages take the latency.
func steady(t interface{ Fatalf(string, ...any) }, s work.Spec, batch int, iterations int64, slow []float64) *model {
	batches, iters := make([]int, len(slow)), make([]int64, len(slow))
	for w := range slow {
		batches[w], iters[w] = batch, iterations
	}
	m := newModel(s, batches, iters)
	m.fail = t.Fatalf
	m.delay = func(string) time.Duration { return latency }
	m.dropped = func() bool { return true }
	m.cost = func(w int32, _ time.Duration) float64 { return 1e6 * slow[w] }
	return m
}

// alone is how long the iterations take if nobody lends anything.
func alone(batch int, iterations int64, slow []float64) time.Duration {
	most := 0.0
	for _, f := range slow {
		most = max(most, f)
	}
	return time.Duration(iterations) * (time.Duration(float64(batch)*most*1e6) + 4*latency)
}

// Workers that are equally fast lend each other nothing, whatever the batch, the step and the gate.
func TestEqualWorkersLendNothing(t *testing.T) {
	for _, policy := range moving() {
		rapid.Check(t, func(t *rapid.T) {
			s := work.Defaults()
			s.Policy, s.Micro = policy, rapid.IntRange(0, 3).Draw(t, "micro")
			n := rapid.IntRange(2, 6).Draw(t, "workers")
			slow := make([]float64, n)
			for w := range slow {
				slow[w] = 1
			}
			batch := rapid.IntRange(16, 64).Draw(t, "batch")
			m := steady(t, s, batch, 5, slow)
			m.ahead = int64(rapid.IntRange(0, 2).Draw(t, "ahead"))
			m.run(100_000)
			if m.gives > 0 {
				t.Fatalf("%s: %d chunks", policy, m.gives)
			}
		})
	}
}

// Workers whose steps take longer or shorter by chance, and that begin within half a step, hardly ever lend anything with steps of the
// default size.
func TestNearlyEqualWorkersHardlyLend(t *testing.T) {
	for _, policy := range moving() {
		s := work.Defaults()
		s.Policy = policy
		const batch, iterations = 64, 200
		m := steady(t, s, batch, iterations, []float64{1, 1, 1, 1})
		r := rand.New(rand.NewPCG(1, 1))
		m.delay = func(string) time.Duration { return latency + time.Duration(r.Float64()*1e6) }
		m.cost = func(int32, time.Duration) float64 { return 1e6 * max(0.5, 1+0.1*r.NormFloat64()) }
		m.run(1_000_000)
		if m.gives > 4*iterations/20 {
			t.Errorf("%s: %d chunks in %d iterations of 4 workers", policy, m.gives, iterations)
		}
	}
}

// Of a pair, one worker is slow. With lending it is later than without by one chunk at most, and a step of the helper.
func TestAPairIsHardlyEverLater(t *testing.T) {
	for _, policy := range moving() {
		rapid.Check(t, func(t *rapid.T) {
			s := work.Defaults()
			s.Policy, s.Micro = policy, rapid.IntRange(0, 4).Draw(t, "micro")
			s.Help.First = rapid.SampledFrom([]float64{0.025, 0, 0.2}).Draw(t, "first")
			s.Help.Next = rapid.SampledFrom([]float64{0.05, 0.2}).Draw(t, "next")
			slow := []float64{1, rapid.Float64Range(1, 10).Draw(t, "slow")}
			batch := rapid.IntRange(16, 64).Draw(t, "batch")
			const iterations = 3
			m := steady(t, s, batch, iterations, slow)
			m.run(100_000)
			chunk := max(s.Help.First, s.Help.Next) * float64(batch)
			if s.Help.First == 0 {
				chunk = float64(batch) / 2
			}
			limit := alone(batch, iterations, slow) + iterations*time.Duration((chunk+float64(stepOf(s, batch)))*1e6) + 10*iterations*latency
			if m.now > limit {
				t.Fatalf("%s: %v with lending, %v without, at most %v is expected", policy, m.now, alone(batch, iterations, slow), limit)
			}
		})
	}
}

// By default a worker takes steps of an eighth of its batch, and of a sixteenth after an iteration of which it has given samples away.
func TestStepsAreFineWhereSamplesMove(t *testing.T) {
	for _, policy := range moving() {
		s := work.Defaults()
		s.Policy = policy
		m := steady(t, s, 64, 5, []float64{1, 3, 1, 1})
		m.worked = func(from, _ time.Duration, by int32, task core.Task) {
			want := int32(8)
			if by == 1 && task.Iter > 0 {
				want = 4
			}
			if n := task.To - task.From; task.Part == 0 && task.Owner == by && task.From == 0 && n != want {
				t.Errorf("%s: worker %d takes %d samples in a step of iteration %d, want %d", policy, by, n, task.Iter, want)
			}
		}
		m.run(100_000)
	}
}

// One of four workers is three times slower. One request of one helper ends an iteration 1.33 times earlier at best, chunks of two helpers
// 2 times at best, and shares in proportion to all speeds 2.5 times.
func TestOneSlowWorkerOfFour(t *testing.T) {
	for _, c := range []struct {
		name, policy string
		first        float64
		helpers      int
		times        float64
	}{
		{"one request", "flexrr", 0, 1, 1.28},
		{"chunks", "flexrr", 0.025, 2, 1.6},
		{"epsp", "epsp", 0, 1, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := work.Defaults()
			s.Policy, s.Help.First, s.Help.Helpers = c.policy, c.first, c.helpers
			slow := []float64{1, 3, 1, 1}
			const batch, iterations = 64, 10
			m := steady(t, s, batch, iterations, slow)
			m.run(100_000)
			times := float64(alone(batch, iterations, slow)) / float64(m.now)
			t.Logf("%.3f times", times)
			if times < c.times {
				t.Errorf("%.3f times faster, at least %.3f is expected", times, c.times)
			}
		})
	}
}
