package sim

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/build"
	"fluentps/ps/core"
	"fluentps/ps/metrics"
)

// lending gives, in every iteration of worker 0, the samples from `from` on to worker 1.
type lending struct {
	me, from int32
	iter     int64
	given    []core.Task
}

func lendFrom(from int32) build.Axes {
	return build.Axes{Parts: 2, Work: func(worker int) core.Work { return &lending{me: int32(worker), from: from} }}
}

func (l *lending) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	switch ev.Kind {
	case core.Starting:
		l.iter = ev.Task.Iter
		own := ev.Task
		own.Grain = 2
		if l.me == 0 {
			own.Parts, own.To = 2, l.from
			out = append(out, core.Order{Kind: core.Tell, To: 1, Msg: wire.Header{Iter: l.iter}})
		}
		out = append(out, core.Order{Kind: core.Assign, Task: own})
	case core.Came:
		l.given = append(l.given, core.Task{Owner: ev.Msg.Worker, Iter: ev.Msg.Iter, Part: 1, Parts: 2, From: l.from, Grain: 2})
	}
	for len(l.given) > 0 && l.given[0].Iter <= l.iter { // computed on the parameters of that iteration
		out = append(out, core.Order{Kind: core.Assign, Task: l.given[0]})
		l.given = l.given[1:]
	}
	return out
}

// Times are those that can be told in one's head: a batch of 10 samples computes for 10 ms, without a cost of anything else.
func TestTimesOfTasks(t *testing.T) {
	for _, c := range []struct {
		name    string
		axes    build.Axes
		set     []string
		each    time.Duration // of an iteration
		samples [2]int        // that a worker counts for its own iterations
		took    [2]time.Duration
		slept   [2]time.Duration
		busy    [2]time.Duration // in an iteration, of all tasks
	}{
		{"whole", build.Axes{}, nil, 10 * time.Millisecond, [2]int{10, 10}, [2]time.Duration{10e6, 10e6}, [2]time.Duration{}, [2]time.Duration{10e6, 10e6}},
		{"half is lent", lendFrom(5), nil, 15 * time.Millisecond, [2]int{5, 10}, [2]time.Duration{5e6, 10e6}, [2]time.Duration{}, [2]time.Duration{5e6, 15e6}},
		{"slow, and half is lent", lendFrom(5), []string{"faults=[{worker: 0, slow: {factor: 4}}]"}, 20 * time.Millisecond, [2]int{5, 10}, [2]time.Duration{20e6, 10e6}, [2]time.Duration{15e6, 0}, [2]time.Duration{20e6, 15e6}},
		{"a fixed part", lendFrom(5), []string{"simulate.compute={fixed: 4ms, per_sample: 600us}"}, 15 * time.Millisecond, [2]int{5, 10}, [2]time.Duration{5e6, 10e6}, [2]time.Duration{}, [2]time.Duration{5e6, 15e6}},
		{"the helper is slow", lendFrom(8), []string{"faults=[{worker: 1, slow: {sleep: 20ms}}]"}, 36 * time.Millisecond, [2]int{8, 10}, [2]time.Duration{8e6, 30e6}, [2]time.Duration{0, 20e6}, [2]time.Duration{8e6, 36e6}},
		{"7 ms at most", build.Axes{}, []string{"work={policy: anytime, time: 7ms, micro: 2}"}, 8 * time.Millisecond, [2]int{8, 8}, [2]time.Duration{8e6, 8e6}, [2]time.Duration{}, [2]time.Duration{8e6, 8e6}},
		{"7 ms, slow", build.Axes{}, []string{"work={policy: anytime, time: 7ms, micro: 2}", "faults=[{worker: 0, slow: {factor: 3}}]"}, 12 * time.Millisecond, [2]int{4, 8}, [2]time.Duration{12e6, 8e6}, [2]time.Duration{8e6, 0}, [2]time.Duration{12e6, 8e6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const iterations = 6
			o := setting{workers: 2, servers: 1, scheme: "bsp", iterations: 100, set: append(c.set, "train.batch_per_worker=10", "train.stop={updates: 6}")}.options(t)
			o.Axes = c.axes
			o.Iterations = make([]metrics.Recorder, 2)
			for i := range o.Iterations {
				o.Iterations[i].Max = 100
			}
			r, err := Run(o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Duration != iterations*c.each {
				t.Errorf("%v for %d iterations, want %v each", r.Duration, iterations, c.each)
			}
			for w, of := range readIterations(t, o.Iterations) {
				if len(of) != iterations {
					t.Fatalf("worker %d has %d rows, want %d", w, len(of), iterations)
				}
				for i, it := range of {
					if it.Iter != int64(i) || it.Samples != c.samples[w] || it.Compute != c.took[w] || it.Injected != c.slept[w] {
						t.Errorf("worker %d: %+v, want %d samples in %v, of it %v injected", w, it, c.samples[w], c.took[w], c.slept[w])
					}
				}
				if got := time.Duration(math.Round(float64(r.Summary.PerWorker[w].ComputeS) * 1e9)); got != iterations*c.busy[w] {
					t.Errorf("worker %d computed for %v, want %v an iteration", w, got, c.busy[w])
				}
			}
		})
	}
}

// A run whose samples all count, computed by whomever, ends with the parameters of plain bsp, except for the order of sums; and the run
// folds as many samples.
func TestTasksTrainLikeBSP(t *testing.T) {
	for name, c := range map[string]struct {
		policy string // "": every iteration of worker 0 is shared with worker 1
		set    []string
	}{
		"softmax":                {},
		"mlp, 3 servers":         {"", []string{"cluster.servers=3", "model={name: mlp, layers: [16, 8]}", "shards.max_bytes=256B"}},
		"by layer, priority":     {"", []string{"cluster.servers=2", "model={name: mlp, layers: [16, 8]}", "shards={slice: layer, max_bytes: 256B}", "send={order: priority, window: 512B}"}},
		"adam, colocate":         {"", []string{"train.optimizer={name: adam, lr: 0.001}", "cluster.servers=2", "cluster.placement=colocate"}},
		"flexrr":                 {"work={policy: flexrr, micro: 1}", []string{"faults=[{worker: 1, slow: {factor: 4}}]", "cluster.servers=2"}},
		"flexrr, one request":    {"work={policy: flexrr, micro: 1, help: {first: 0, helpers: 3}}", []string{"faults=[{worker: 1, slow: {factor: 4}}]"}},
		"dropcompute that waits": {"work={policy: dropcompute, time: 1h, micro: 3}", []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			plain := realOptions(t, c.set...)
			o := plain
			if c.policy != "" {
				o = realOptions(t, append(c.set, c.policy)...)
			} else {
				o.Axes = lendFrom(3)
			}
			got, want := runReal(t, o), runReal(t, plain)
			worst := 0.0
			for i, x := range want.Parameters {
				worst = max(worst, math.Abs(float64(got.Parameters[i]-x)))
			}
			if worst == 0 || worst > 1e-5 {
				t.Errorf("a parameter is off by %g, want a little: sums are added up in another order", worst)
			}
			if got.Summary.Samples != want.Summary.Samples || got.Summary.Iterations != want.Summary.Iterations {
				t.Errorf("%d samples in %d iterations, want %d in %d", got.Summary.Samples, got.Summary.Iterations, want.Summary.Samples, want.Summary.Iterations)
			}
			if text := got.Summary.Work; c.policy != "" && text != o.Config.Work.Policy {
				t.Errorf("the summary names policy %q, want %q", text, o.Config.Work.Policy)
			}
		})
	}
}

// orders is a policy from a function.
type orders func(ev core.WorkEvent, out []core.Order) []core.Order

func (f orders) Step(ev core.WorkEvent, out []core.Order) []core.Order { return f(ev, out) }

// Each law of the work axis is broken on purpose, by a policy or behind the checker's back.
func TestCheckersDetectBrokenLawsOfTasks(t *testing.T) {
	assign := func(t core.Task) core.Order { return core.Order{Kind: core.Assign, Task: t} }
	policies := func(zero, one orders) func(worker int) core.Work {
		return func(worker int) core.Work { return []orders{zero, one}[worker] }
	}
	idle := func(_ core.WorkEvent, out []core.Order) []core.Order { return out }
	give := func(from int32) orders { // the samples from `from` on are worker 1's
		return func(ev core.WorkEvent, out []core.Order) []core.Order {
			if ev.Kind != core.Starting {
				return out
			}
			own := ev.Task
			own.Parts, own.To, own.Grain = 2, 5, 2
			return append(out, assign(own), core.Order{Kind: core.Tell, To: 1, Msg: wire.Header{Iter: ev.Task.Iter, Samples: int64(from)}})
		}
	}
	taken := func(times int) orders {
		return func(ev core.WorkEvent, out []core.Order) []core.Order {
			for range times {
				if ev.Kind == core.Came {
					out = append(out, assign(core.Task{Owner: 0, Iter: ev.Msg.Iter, Part: 1, Parts: 2, From: int32(ev.Msg.Samples)}))
				}
			}
			return out
		}
	}
	answers := func(other int32) orders {
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
		spoil     func(s *simulation)
	}{
		{what: "a thread from nowhere", law: "the workers of host 0 have 9 threads, and began with 8", set: []string{"device={kind: cpu, threads: 4}", "work={policy: epsp, threads_max: 6}", "simulate.ranks_per_host=3"}, work: threaded(5)},
		{what: "a thread of another host", law: "the workers of host 1 have 5 threads, and began with 4", set: []string{"device={kind: cpu, threads: 4}", "work={policy: epsp, threads_max: 6}"}, work: threaded(5)},
		{what: "too many threads", law: "worker 0 has 7 threads, at most 6 are allowed", set: []string{"device={kind: cpu, threads: 4}", "work={policy: epsp, threads_max: 6}", "simulate.ranks_per_host=3"}, work: threaded(7)},
		{what: "no threads", law: "threads: worker 0 computes", set: []string{"device={kind: cpu, threads: 4}", "work={policy: epsp, threads_max: 6}"}, work: threaded(0)},
		{what: "threads that may not move", law: "threads: worker 0 computes", work: threaded(4)},
		{what: "samples twice", law: "exactly once: shard 0 folds iteration 0 of worker 0 with 11 samples", work: policies(give(4), taken(1))},
		{what: "a part that nobody computes", law: "liveness", work: policies(give(5), idle)},
		{what: "a part twice", law: "exactly once: worker 1 is assigned", work: policies(give(5), taken(2))},
		{what: "messages for ever", law: "they answer each other for ever", latency: "0s", work: policies(answers(1), answers(0))},
		{what: "a part is merged twice", law: "merged", work: policies(give(5), taken(1)), spoil: func(s *simulation) { s.check.tasks.shards[0].merged-- }},
		{what: "a part is not merged", law: "merged", work: policies(give(5), taken(1)), spoil: func(s *simulation) { s.check.tasks.shards[0].merges++ }},
		{what: "a part is dropped", law: "pushes landed", work: policies(give(5), taken(1)), spoil: func(s *simulation) { s.check.tasks.shards[0].dropped++ }},
		{what: "samples are left out", law: "samples of", work: policies(give(5), taken(1)), spoil: func(s *simulation) { s.workers[0].tasks.limit = 3 }},
		{what: "samples too many", law: "begins samples", work: policies(give(5), taken(1)), spoil: func(s *simulation) { s.workers[0].tasks.limit = 8; s.workers[0].tasks.task.Grain = 8 }},
		{what: "a push that was not computed", law: "exactly once: worker 0 pushes part 0", work: policies(give(5), taken(1)), spoil: func(s *simulation) {
			for len(s.check.tasks.made) == 0 {
				s.next()
			}
			clear(s.check.tasks.made)
		}},
	} {
		t.Run(c.what, func(t *testing.T) {
			o := setting{workers: 2, servers: 1, scheme: "bsp", iterations: 30, set: append(c.set, "train.batch_per_worker=10", "simulate.network={bandwidth: 1MB, latency: "+cmp.Or(c.latency, "1ms")+"}")}.options(t)
			o.Axes = build.Axes{Work: c.work, Parts: 2}
			s, err := newSimulation(o)
			if err != nil {
				t.Fatal(err)
			}
			s.begin()
			if c.spoil != nil {
				for !s.workers[0].busy || !s.workers[1].busy {
					s.next()
				}
				c.spoil(s)
			}
			if _, err = s.run(); err == nil || !strings.Contains(err.Error(), c.law) {
				t.Errorf("got %v, want %q", err, c.law)
			}
		})
	}
}

// What cannot be simulated with a policy of tasks is refused, and the error says what to do.
func TestTasksRefuse(t *testing.T) {
	for _, c := range []struct {
		want string
		axes build.Axes
		set  []string
		with func(o *Options)
	}{
		{"leave --join out", build.Axes{}, []string{"work.policy=flexrr"}, func(o *Options) { o.Losses, o.Joins = []Loss{{Worker: 1}}, []Join{{Worker: 1, At: time.Second}} }},
		{"set work.policy: fixed", lendFrom(5), []string{"work.policy=dbs"}, nil},
		{"local.policy: none", lendFrom(5), []string{"local={policy: averaging, steps: 2}"}, nil},
		{"scheme ssp for \"*\" needs whole pushes", lendFrom(5), []string{`sync=[{match: "*", scheme: ssp, cache: true, push: delta}]`}, nil},
		{"scheme vap for \"*\" needs whole pushes", lendFrom(5), []string{`sync=[{match: "*", scheme: vap}]`}, nil},
		{"scheme r2sp for \"*\" needs whole pushes", lendFrom(5), []string{`sync=[{match: "*", scheme: r2sp}]`}, nil},
	} {
		t.Run(c.want, func(t *testing.T) {
			o := setting{workers: 2, servers: 1, scheme: "bsp", iterations: 30, set: c.set}.options(t)
			o.Axes = c.axes
			if c.with != nil {
				c.with(&o)
			}
			if _, err := Run(o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A message arrives after the latency, and cancels the samples behind the step that runs then. All that are left hear of a loss after the
// latency, once.
func TestMessagesAndLossesBetweenWorkers(t *testing.T) {
	o := setting{workers: 3, servers: 1, scheme: "bsp", iterations: 100, set: []string{"train.batch_per_worker=10", "train.stop={updates: 3}", "simulate.network={bandwidth: 0B, latency: 3ms}"}}.options(t)
	type heard struct {
		me, of int32
		kind   core.WorkEventKind
		at     time.Duration
	}
	var got []heard
	o.Axes.Work = func(worker int) core.Work {
		return orders(func(ev core.WorkEvent, out []core.Order) []core.Order {
			me := int32(worker)
			switch ev.Kind {
			case core.Starting:
				own := ev.Task
				own.Grain = 2
				out = append(out, core.Order{Kind: core.Assign, Task: own})
				if me == 1 && own.Iter == 0 {
					out = append(out, core.Order{Kind: core.Tell, To: 0})
				}
			case core.Came:
				got = append(got, heard{me, ev.Msg.Worker, ev.Kind, ev.At})
				out = append(out, core.Order{Kind: core.CancelWork, Task: core.Task{Owner: me, Parts: 1}})
			case core.Gone:
				got = append(got, heard{me, ev.Task.Owner, ev.Kind, ev.At})
			}
			return out
		})
	}
	o.Losses = []Loss{{Worker: 2, At: 8 * time.Millisecond}}
	o.Iterations = []metrics.Recorder{{Max: 10}, {Max: 10}, {Max: 10}}
	r, err := Run(o)
	if err != nil {
		t.Fatal(err)
	}
	want := []heard{{0, 1, core.Came, 9 * time.Millisecond}, {0, 2, core.Gone, 11 * time.Millisecond}, {1, 2, core.Gone, 11 * time.Millisecond}}
	if len(got) < 3 || !slices.Equal(got[:3], want) {
		t.Errorf("heard %v, want %v", got, want)
	}
	rows := readIterations(t, o.Iterations[:2])
	// The parameters arrive at 6 ms. At 9 ms the step of samples 2 and 3 runs, which ends at 10 ms.
	if it := rows[0][0]; it.Samples != 4 || it.Start != 6*time.Millisecond || it.Compute != 4*time.Millisecond {
		t.Errorf("the first iteration of worker 0 is %+v, want 4 samples from 6 ms on in 4 ms", it)
	}
	if it := rows[1][0]; it.Samples != 10 || it.Compute != 10*time.Millisecond {
		t.Errorf("the first iteration of worker 1 is %+v, want 10 samples in 10 ms", it)
	}
	if r.Lost != 1 || r.Summary.Updates != 3 {
		t.Errorf("%d workers lost, %d updates", r.Lost, r.Summary.Updates)
	}
}
