package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/sim"
	"fluentps/internal/sim/simtest"
	"fluentps/ps/scheme"
)

// partialRun is one iteration of partial gradients. The delay of a worker is the same for all of its tasks.
type partialRun struct {
	workers, load, required int
	order, slow             string
	seed                    uint64
}

func genPartial(t *rapid.T) partialRun {
	n := rapid.IntRange(1, 9).Draw(t, "workers")
	return partialRun{workers: n, load: rapid.IntRange(1, n).Draw(t, "load"), required: rapid.IntRange(1, n).Draw(t, "required"),
		order: rapid.SampledFrom([]string{"cyclic", "staircase"}).Draw(t, "order"),
		slow: rapid.SampledFrom([]string{"kind: exponential, factor: 2", "kind: lognormal, factor: 3, spread: 1.5",
			"kind: two_state, factor: 9, enter: 0.5", "kind: exponential, sleep: 40ms"}).Draw(t, "slow"),
		seed: rapid.Uint64Range(1, 1<<40).Draw(t, "seed")}
}

// closes returns when the iteration is closed, simulated, and the time of one task of each worker.
func (p *partialRun) closes(t *rapid.T, tb testing.TB, batching int) (at time.Duration, tasks []time.Duration) {
	set := []string{"train.stop={updates: 1}", "train.batch_per_worker=4",
		fmt.Sprintf("work={policy: partial, micro: 4, load: %d, required: %d, order: %s, batching: %d}", p.load, p.required, p.order, batching),
		fmt.Sprintf(`faults=[{worker: "*", slow: {%s}}]`, p.slow)}
	o := simtest.Setting{Workers: p.workers, Servers: 1, Scheme: fmt.Sprintf("drop, required: %d", p.required),
		Iterations: 1, Seed: p.seed, Set: set}.Options(tb)
	o.Decided = func(ev scheme.Event, decisions []scheme.Decision) {
		for _, d := range decisions {
			if d.Kind == scheme.Commit {
				at = ev.At
			}
		}
	}
	s, err := sim.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.Workers() {
		own, injected, late := s.TakesGrain(i, 0, 0, 4, true)
		tasks = append(tasks, time.Duration(own+injected+late))
	}
	if _, err := s.Run(); err != nil {
		t.Fatal(err)
	}
	return at, tasks
}

// model is a second implementation: partition j is there when the first message with it is.
func (p *partialRun) model(tasks []time.Duration, batching int) time.Duration {
	first := make([]time.Duration, p.workers)
	for i := range p.workers {
		for j := 1; j <= p.load; j++ {
			partition := (i + j - 1) % p.workers
			if p.order == "staircase" && i%2 == 1 {
				partition = (i - (j - 1) + p.workers) % p.workers
			}
			sent := min((j+batching-1)/batching*batching, p.load)
			if at := time.Duration(sent) * tasks[i]; first[partition] == 0 || at < first[partition] {
				first[partition] = at
			}
		}
	}
	slices.Sort(first)
	return first[p.required-1]
}

// On the same delays several messages never close an iteration later than one message, if messages cost nothing; and both close
// when the model says.
func TestSeveralMessagesAreNeverLaterThanOne(t *testing.T) {
	earlier, runs := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		p := genPartial(rt)
		one, tasks := p.closes(rt, t, p.load)
		several := one
		for batching := p.load; batching >= 1; batching-- {
			at, again := p.closes(rt, t, batching)
			if want := p.model(tasks, batching); at != want || !slices.Equal(tasks, again) {
				rt.Fatalf("%+v: with batching %d the iteration is closed at %v, want %v", p, batching, at, want)
			}
			if p.load%batching == 0 && at > one {
				rt.Fatalf("%+v: with batching %d the iteration is closed at %v, and with one message at %v", p, batching, at, one)
			}
			several = at
		}
		runs++
		if several < one {
			earlier++
		} else if several > one {
			rt.Fatalf("%+v: closed at %v, and with one message at %v", p, several, one)
		}
	})
	if earlier < runs/4 {
		t.Errorf("several messages were earlier in %d of %d runs: the draw is too narrow", earlier, runs)
	}
}
