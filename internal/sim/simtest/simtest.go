// Package simtest describes small simulated runs for the tests of the simulator's rooms.
package simtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/build"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/sim"
	"fluentps/internal/sim/calibrate"
	"fluentps/ps/workload"
)

// Setting describes a run. Its zero values are the defaults of the tests: one server, no noise, no cost of network and servers.
type Setting struct {
	Workers, Servers int
	Scheme           string // of every parameter: "ssp, staleness: 3"
	Iterations       int64  // of the run
	Bytes            int64  // of the model
	Compute          string
	Seed             uint64
	Set              []string
}

func (c Setting) Options(t testing.TB) sim.Options {
	t.Helper()
	if c.Compute == "" {
		c.Compute = "10ms"
	}
	text := fmt.Sprintf(`name: test
seed: %d
cluster: {servers: %d}
data: {set: generated}
model: {name: softmax}
train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {samples: %d}}
sync: [{match: "*", scheme: %s}]
simulate:
  workers: %d
  compute: %s
  network: {bandwidth: 0B, latency: 0s}
  server: {fold: 0B, commit: 0B}
`, c.Seed, c.Servers, c.Iterations*int64(c.Workers), c.Scheme, c.Workers, c.Compute)
	cfg, _, ds := configs.Parse("test", []byte(text), configs.Options{Set: c.Set})
	if cfg == nil {
		t.Fatal(ds)
	}
	if c.Bytes == 0 {
		c.Bytes = 4 * int64(c.Servers)
	}
	plan, err := layout.Plan(cfg, []workload.Param{{Name: "a", Shape: []int{int(c.Bytes / shard.ElemBytes)}}}, c.Servers, layout.Link{})
	if err != nil {
		t.Fatal(err)
	}
	return sim.Options{Config: cfg, Plan: plan, Rows: 1000, CheckEvery: 64, Replay: "go test"}
}

// Noisy are settings under which computing takes compute on average, with a normal deviation of that share, and the faults. Slowness is
// never negative, so it is three standard deviations less and what is added to it; below that it is cut off.
func Noisy(compute time.Duration, share float64, faults ...string) []string {
	least, slow := calibrate.NormalAbove(share)
	all := append([]string{configs.FaultText(&configs.Fault{Worker: -1, Slow: *slow})}, faults...)
	return []string{"simulate.compute=" + time.Duration(least*float64(compute)).String(), "faults=[" + strings.Join(all, ", ") + "]"}
}

// Exponential is slowness that makes computing a shifted exponential, which takes 1 + mean of itself on average.
func Exponential(mean float64) string {
	return fmt.Sprintf(`{worker: "*", slow: {kind: exponential, factor: %g}}`, 1+mean)
}

// PerIteration is the virtual time of one iteration of the run.
func PerIteration(r *sim.Result) time.Duration {
	return r.Duration / time.Duration(r.Summary.Iterations)
}

// Near fails the test unless got is within share*want of want.
func Near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if d := got - want; d > share*want || d < -share*want {
		t.Errorf("%s: %.5g, want %.5g within %.3g %%", what, got, want, 100*share)
	}
}

// ReadIterations reads the iterations of every worker that recorded.
func ReadIterations(t testing.TB, of []timings.Recorder) [][]timings.Iteration {
	t.Helper()
	text := timings.Header()
	for w := range of {
		for k := range of[w].Chunks() {
			text = append(text, of[w].Chunk(w, k)...)
		}
	}
	path := filepath.Join(t.TempDir(), timings.FileName)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := timings.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lending gives, in every iteration of worker 0, the samples from `from` on to worker 1.
type lending struct {
	me, from int32
	iter     int64
	given    []core.Task
}

func LendFrom(from int32) build.Axes {
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

// Orders is a policy from a function.
type Orders func(ev core.WorkEvent, out []core.Order) []core.Order

func (f Orders) Step(ev core.WorkEvent, out []core.Order) []core.Order { return f(ev, out) }

// SeedsFrom reads the first seed and the number of seeds to try: FLUENTPS_TEST_SIM_SEEDS=1000000 tries many, FLUENTPS_TEST_SIM_SEEDS=1 with
// FLUENTPS_TEST_SIM_FIRST=17 repeats one.
func SeedsFrom(t *testing.T) (first, n int) {
	read := func(name string, def int) int {
		text := os.Getenv(name)
		if text == "" {
			return def
		}
		v, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return v
	}
	return read("FLUENTPS_TEST_SIM_FIRST", 0), read("FLUENTPS_TEST_SIM_SEEDS", 10_000)
}
