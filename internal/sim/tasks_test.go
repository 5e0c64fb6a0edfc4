package sim_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/core"
	"fluentps/internal/plan/build"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
)

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
		{"whole", build.Axes{}, nil, 10 * time.Millisecond, [2]int{10, 10}, [2]time.Duration{10e6, 10e6},
			[2]time.Duration{}, [2]time.Duration{10e6, 10e6}},
		{"half is lent", simtest.LendFrom(5), nil, 15 * time.Millisecond, [2]int{5, 10}, [2]time.Duration{5e6, 10e6},
			[2]time.Duration{}, [2]time.Duration{5e6, 15e6}},
		{"slow, and half is lent", simtest.LendFrom(5), []string{"faults=[{worker: 0, slow: {factor: 4}}]"},
			20 * time.Millisecond, [2]int{5, 10}, [2]time.Duration{20e6, 10e6}, [2]time.Duration{15e6, 0}, [2]time.Duration{20e6, 15e6}},
		{"a fixed part", simtest.LendFrom(5), []string{"simulate.compute={fixed: 4ms, per_sample: 600us}"},
			15 * time.Millisecond, [2]int{5, 10}, [2]time.Duration{5e6, 10e6}, [2]time.Duration{}, [2]time.Duration{5e6, 15e6}},
		{"the helper is slow", simtest.LendFrom(8), []string{"faults=[{worker: 1, slow: {sleep: 20ms}}]"},
			36 * time.Millisecond, [2]int{8, 10}, [2]time.Duration{8e6, 30e6}, [2]time.Duration{0, 20e6}, [2]time.Duration{8e6, 36e6}},
		{"7 ms at most", build.Axes{}, []string{"work={policy: anytime, time: 7ms, micro: 2}"}, 8 * time.Millisecond,
			[2]int{8, 8}, [2]time.Duration{8e6, 8e6}, [2]time.Duration{}, [2]time.Duration{8e6, 8e6}},
		{"7 ms, slow", build.Axes{}, []string{"work={policy: anytime, time: 7ms, micro: 2}", "faults=[{worker: 0, slow: " +
			"{factor: 3}}]"}, 12 * time.Millisecond, [2]int{4, 8}, [2]time.Duration{12e6, 8e6}, [2]time.Duration{8e6, 0},
			[2]time.Duration{12e6, 8e6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const iterations = 6
			o := simtest.Setting{Workers: 2, Servers: 1, Scheme: "bsp", Iterations: 100,
				Set: append(c.set, "train.batch_per_worker=10", "train.stop={updates: 6}")}.Options(t)
			o.Axes = c.axes
			o.Iterations = make([]timings.Recorder, 2)
			for i := range o.Iterations {
				o.Iterations[i].Max = 100
			}
			r, err := check.Run(o)
			if err != nil {
				t.Fatal(err)
			}
			if r.Duration != iterations*c.each {
				t.Errorf("%v for %d iterations, want %v each", r.Duration, iterations, c.each)
			}
			for w, of := range simtest.ReadIterations(t, o.Iterations) {
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

// What cannot be simulated with a policy of tasks is refused, and the error says what to do.
func TestTasksRefuse(t *testing.T) {
	for _, c := range []struct {
		want string
		axes build.Axes
		set  []string
		with func(o *sim.Options)
	}{
		{"leave --join out", build.Axes{}, []string{"work.policy=flexrr"}, func(o *sim.Options) {
			o.Losses, o.Joins = []sim.Loss{{Worker: 1}}, []sim.Join{{Worker: 1, At: time.Second}}
		}},
		{"set work.policy: fixed", simtest.LendFrom(5), []string{"work.policy=dbs"}, nil},
		{"local.policy: none", simtest.LendFrom(5), []string{"local={policy: averaging, steps: 2}"}, nil},
		{"scheme ssp for \"*\" needs whole pushes", simtest.LendFrom(5),
			[]string{`sync=[{match: "*", scheme: ssp, cache: true, push: delta}]`}, nil},
		{"scheme vap for \"*\" needs whole pushes", simtest.LendFrom(5), []string{`sync=[{match: "*", scheme: vap}]`}, nil},
		{"scheme r2sp for \"*\" needs whole pushes", simtest.LendFrom(5), []string{`sync=[{match: "*", scheme: r2sp}]`}, nil},
	} {
		t.Run(c.want, func(t *testing.T) {
			o := simtest.Setting{Workers: 2, Servers: 1, Scheme: "bsp", Iterations: 30, Set: c.set}.Options(t)
			o.Axes = c.axes
			if c.with != nil {
				c.with(&o)
			}
			if _, err := check.Run(o); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A message arrives after the latency, and cancels the samples behind the step that runs then. All that are left hear of a loss after the
// latency, once.
func TestMessagesAndLossesBetweenWorkers(t *testing.T) {
	o := simtest.Setting{Workers: 3, Servers: 1, Scheme: "bsp", Iterations: 100,
		Set: []string{"train.batch_per_worker=10", "train.stop={updates: 3}", "simulate.network={bandwidth: 0B, latency: 3ms}"}}.Options(t)
	type heard struct {
		me, of int32
		kind   core.WorkEventKind
		at     time.Duration
	}
	var got []heard
	o.Axes.Work = func(worker int) core.Work {
		return simtest.Orders(func(ev core.WorkEvent, out []core.Order) []core.Order {
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
	o.Losses = []sim.Loss{{Worker: 2, At: 8 * time.Millisecond}}
	o.Iterations = []timings.Recorder{{Max: 10}, {Max: 10}, {Max: 10}}
	r, err := check.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	want := []heard{{0, 1, core.Came, 9 * time.Millisecond}, {0, 2, core.Gone, 11 * time.Millisecond},
		{1, 2, core.Gone, 11 * time.Millisecond}}
	if len(got) < 3 || !slices.Equal(got[:3], want) {
		t.Errorf("heard %v, want %v", got, want)
	}
	rows := simtest.ReadIterations(t, o.Iterations[:2])
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
