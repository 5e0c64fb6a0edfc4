package sim

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fluentps/configs"
	"fluentps/ps/layout"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// setting describes a run. Its zero values are the defaults of the tests: one server, no noise, no cost of network and servers.
type setting struct {
	workers, servers int
	scheme           string // of every parameter: "ssp, staleness: 3"
	iterations       int64  // of the run
	bytes            int64  // of the model
	compute          string
	seed             uint64
	set              []string
}

func (c setting) options(t testing.TB) Options {
	t.Helper()
	if c.compute == "" {
		c.compute = "10ms"
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
`, c.seed, c.servers, c.iterations*int64(c.workers), c.scheme, c.workers, c.compute)
	cfg, _, ds := configs.Parse("test", []byte(text), configs.Options{Set: c.set})
	if cfg == nil {
		t.Fatal(ds)
	}
	if c.bytes == 0 {
		c.bytes = 4 * int64(c.servers)
	}
	plan, err := layout.Plan(cfg, []workload.Param{{Name: "a", Shape: []int{int(c.bytes / shard.ElemBytes)}}}, c.servers, layout.Link{})
	if err != nil {
		t.Fatal(err)
	}
	return Options{Config: cfg, Plan: plan, Rows: 1000, CheckEvery: 64, Replay: "go test"}
}

func (c setting) run(t testing.TB) *Result {
	t.Helper()
	r, err := Run(c.options(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// noisy are settings under which computing takes compute on average, with a normal deviation of that share, and the faults. Slowness is
// never negative, so it is three standard deviations less and what is added to it; below that it is cut off.
func noisy(compute time.Duration, share float64, faults ...string) []string {
	least, slow := normalAbove(share)
	all := append([]string{(&configs.Fault{Worker: -1, Slow: *slow}).YAML()}, faults...)
	return []string{"simulate.compute=" + time.Duration(least*float64(compute)).String(), "faults=[" + strings.Join(all, ", ") + "]"}
}

// exponential is slowness that makes computing a shifted exponential, which takes 1 + mean of itself on average.
func exponential(mean float64) string {
	return fmt.Sprintf(`{worker: "*", slow: {kind: exponential, factor: %g}}`, 1+mean)
}

// perIteration is the virtual time of one iteration of the run.
func perIteration(r *Result) time.Duration { return r.Duration / time.Duration(r.Summary.Iterations) }

// near fails the test unless got is within share*want of want.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if d := got - want; d > share*want || d < -share*want {
		t.Errorf("%s: %.5g, want %.5g within %.3g %%", what, got, want, 100*share)
	}
}

// readIterations reads the iterations of every worker that recorded.
func readIterations(t testing.TB, of []metrics.Recorder) [][]metrics.Iteration {
	t.Helper()
	text := metrics.IterationsHeader()
	for w := range of {
		for k := range of[w].Chunks() {
			text = append(text, of[w].Chunk(w, k)...)
		}
	}
	path := filepath.Join(t.TempDir(), metrics.IterationsName)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	all, err := metrics.ReadIterations(path)
	if err != nil {
		t.Fatal(err)
	}
	return all
}
