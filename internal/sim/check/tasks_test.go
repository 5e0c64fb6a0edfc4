package check

import (
	"cmp"
	"strings"
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/plan/build"
	"fluentps/internal/sim"
	"fluentps/internal/sim/simtest"
)

// Each law of the work axis is broken on purpose, by a policy or behind the checker's back.
func TestCheckersDetectBrokenLawsOfTasks(t *testing.T) {
	assign := func(t core.Task) core.Order { return core.Order{Kind: core.Assign, Task: t} }
	policies := func(zero, one simtest.Orders) func(worker int) core.Work {
		return func(worker int) core.Work { return []simtest.Orders{zero, one}[worker] }
	}
	idle := func(_ core.WorkEvent, out []core.Order) []core.Order { return out }
	give := func(from int32) simtest.Orders { // the samples from `from` on are worker 1's
		return func(ev core.WorkEvent, out []core.Order) []core.Order {
			if ev.Kind != core.Starting {
				return out
			}
			own := ev.Task
			own.Parts, own.To, own.Grain = 2, 5, 2
			return append(out, assign(own), core.Order{Kind: core.Tell, To: 1, Msg: wire.Header{Iter: ev.Task.Iter, Samples: int64(from)}})
		}
	}
	taken := func(times int) simtest.Orders {
		return func(ev core.WorkEvent, out []core.Order) []core.Order {
			for range times {
				if ev.Kind == core.Came {
					out = append(out, assign(core.Task{Owner: 0, Iter: ev.Msg.Iter, Part: 1, Parts: 2, From: int32(ev.Msg.Samples)}))
				}
			}
			return out
		}
	}
	answers := func(other int32) simtest.Orders {
		return func(ev core.WorkEvent, out []core.Order) []core.Order {
			if ev.Kind == core.Starting || ev.Kind == core.Came {
				out = append(out, core.Order{Kind: core.Tell, To: other})
			}
			return out
		}
	}
	threaded := func(of int32) func(worker int) core.Work { // in the second iteration
		uses := func(ev core.WorkEvent, out []core.Order) []core.Order {
			if ev.Kind != core.Starting {
				return out
			}
			own := ev.Task
			own.Threads = 4
			if own.Iter > 0 && own.Owner == 0 {
				own.Threads = of
			}
			return append(out, assign(own))
		}
		return policies(uses, uses)
	}
	for _, c := range []struct {
		what, law string
		latency   string
		set       []string
		work      func(worker int) core.Work
		spoil     func(s *sim.Simulation, c *checker)
	}{
		{what: "a thread from nowhere", law: "the workers of host 0 have 9 threads, and began with 8",
			set: []string{"device={kind: cpu, threads: 4}", "work={policy: epsp, threads_max: 6}", "simulate.ranks_per_host=3"}, work: threaded(5)},
		{what: "a thread of another host", law: "the workers of host 1 have 5 threads, and began with 4",
			set: []string{"device={kind: cpu, threads: 4}", "work={policy: epsp, threads_max: 6}"}, work: threaded(5)},
		{what: "too many threads", law: "worker 0 has 7 threads, at most 6 are allowed",
			set: []string{"device={kind: cpu, threads: 4}", "work={policy: epsp, threads_max: 6}", "simulate.ranks_per_host=3"}, work: threaded(7)},
		{what: "no threads", law: "threads: worker 0 computes",
			set: []string{"device={kind: cpu, threads: 4}", "work={policy: epsp, threads_max: 6}"}, work: threaded(0)},
		{what: "threads that may not move", law: "threads: worker 0 computes", work: threaded(4)},
		{what: "samples twice", law: "exactly once: shard 0 folds iteration 0 of worker 0 with 11 samples", work: policies(give(4), taken(1))},
		{what: "a part that nobody computes", law: "liveness", work: policies(give(5), idle)},
		{what: "a part twice", law: "exactly once: worker 1 is assigned", work: policies(give(5), taken(2))},
		{what: "messages for ever", law: "they answer each other for ever", latency: "0s", work: policies(answers(1), answers(0))},
		{what: "a part is merged twice", law: "merged", work: policies(give(5), taken(1)),
			spoil: func(_ *sim.Simulation, c *checker) { c.tasks.shards[0].merged-- }},
		{what: "a part is not merged", law: "merged", work: policies(give(5), taken(1)),
			spoil: func(_ *sim.Simulation, c *checker) { c.tasks.shards[0].merges++ }},
		{what: "a part is dropped", law: "pushes landed", work: policies(give(5), taken(1)),
			spoil: func(_ *sim.Simulation, c *checker) { c.tasks.shards[0].dropped++ }},
		{what: "a push that was not computed", law: "exactly once: worker 0 pushes part 0",
			work: policies(give(5), taken(1)), spoil: func(s *sim.Simulation, c *checker) {
				for len(c.tasks.made) == 0 {
					s.Next()
				}
				clear(c.tasks.made)
			}},
	} {
		t.Run(c.what, func(t *testing.T) {
			o := simtest.Setting{Workers: 2, Servers: 1, Scheme: "bsp", Iterations: 30,
				Set: append(c.set, "train.batch_per_worker=10", "simulate.network={bandwidth: 1MB, latency: "+cmp.Or(c.latency, "1ms")+"}")}.Options(t)
			o.Axes = build.Axes{Work: c.work, Parts: 2}
			s, of := checked(t, o)
			if c.spoil != nil {
				c.spoil(s, of)
			}
			if _, err := s.Run(); err == nil || !strings.Contains(err.Error(), c.law) {
				t.Errorf("got %v, want %q", err, c.law)
			}
		})
	}
}
