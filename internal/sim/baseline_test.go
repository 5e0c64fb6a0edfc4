package sim_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
	"fluentps/ps/workload"
)

// ideal is a run of three tensors, of one layer, on a network of bandwidth and latency, where nothing else takes time.
const (
	idealLink    = 12_500_000 // bytes per second
	idealLatency = 100 * time.Microsecond
	idealCompute = 10 * time.Millisecond
	idealTensors = 3
	idealArena   = 60_000 + 39_000 + 1_000 // elements
)

func ideal(t testing.TB, workers, servers int, set ...string) sim.Options {
	t.Helper()
	text := fmt.Sprintf(`name: ideal
cluster: {servers: %d}
data: {set: generated}
model: {name: softmax}
train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 10}}
send: {overlap: false}
simulate: {workers: %d, compute: %s, network: {bandwidth: %dB, latency: %s}, server: {fold: 0B, commit: 0B}}
`, servers, workers, idealCompute, idealLink, idealLatency)
	cfg, _, ds := configs.Parse("ideal", []byte(text), configs.Options{Set: set})
	if cfg == nil {
		t.Fatal(ds)
	}
	plan, err := layout.Plan(cfg,
		[]workload.Param{{Name: "a.weight", Shape: []int{60_000}}, {Name: "b.weight", Shape: []int{39_000}},
			{Name: "b.bias", Shape: []int{1_000}}}, servers, layout.Link{})
	if err != nil {
		t.Fatal(err)
	}
	return sim.Options{Config: cfg, Plan: plan, Rows: 1000, CheckEvery: 16, Replay: "go test"}
}

// communication is the time of an iteration without its computing, and the bytes that it moves, both from the difference of
// two runs.
func communication(t testing.TB, workers, servers int, set ...string) (time.Duration, int64) {
	t.Helper()
	const first, more = 5, 10
	run := func(updates int) *sim.Result {
		r, err := check.Run(ideal(t, workers, servers, append(set, fmt.Sprintf("train.stop.updates=%d", updates))...))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, b := run(first), run(first+more)
	if b.Summary.BytesSent != b.Summary.BytesReceived {
		t.Errorf("%v: %d bytes sent, %d received", set, b.Summary.BytesSent, b.Summary.BytesReceived)
	}
	return (b.Duration-a.Duration)/more - idealCompute, (b.Summary.BytesSent - a.Summary.BytesSent) / more
}

// The time of communication is that of the formula: the bytes through the fullest card, and a latency for each message that must
// wait for another. If every scalar has a key, 32 bytes a parameter go through the card of server 0. With even slices over M
// servers 8/M go through each card.
func TestCommunicationOfKeys(t *testing.T) {
	const push, pull, keyed = 4 * idealArena, 0, 4*idealArena + 12*idealTensors
	for _, c := range []struct {
		what             string
		servers, workers int
		up, ask, down    int64 // bytes of one worker through the fullest card: pushes, pulls, replies
		latencies        int64
		set              string
	}{
		{"even slices", 1, 4, push, 0, push, 2, "baseline=none"},
		{"even slices", 4, 4, push / 4, 0, push / 4, 2, "baseline=none"},
		{"even slices", 4, 8, push / 4, 0, push / 4, 2, "baseline=none"},
		{"tensor", 4, 4, push, pull, push, 6, "baseline=pslite"},
		{"tensor", 1, 3, push, pull, push, 6, "baseline=pslite"},
		{"list", 4, 4, keyed, 8 * idealTensors, keyed, 6, "baseline={name: pslite, keys: list}"},
		{"scalar", 4, 4, 12 * idealArena, 8 * idealArena, 12 * idealArena, 6, "baseline={name: pslite, keys: scalar}"},
		{"scalar", 1, 6, 12 * idealArena, 8 * idealArena, 12 * idealArena, 6, "baseline={name: pslite, keys: scalar}"},
	} {
		got, bytes := communication(t, c.workers, c.servers, c.set)
		each := c.up + c.ask + c.down
		want := time.Duration(sim.Nanoseconds(int64(c.workers)*each, idealLink) + c.latencies*int64(idealLatency))
		simtest.Near(t, fmt.Sprintf("%s, %d servers, %d workers", c.what, c.servers, c.workers), got.Seconds(), want.Seconds(), 1e-5)
		all := int64(c.workers) * each
		if c.set == "baseline=none" {
			all *= int64(c.servers)
		}
		if bytes != all {
			t.Errorf("%s, %d servers, %d workers: %d bytes an iteration, want %d", c.what, c.servers, c.workers, bytes, all)
		}
	}
}

// 1 - 1/(4 M): with 4 servers even slices take 93.75 % less time than a key for every scalar, with one 75 %.
func TestEvenSlicesAgainstAKeyForEveryScalar(t *testing.T) {
	for servers, want := range map[int]float64{1: 0.75, 2: 0.875, 4: 0.9375} {
		even, _ := communication(t, 4, servers, "simulate.network.latency=0s")
		scalar, _ := communication(t, 4, servers, "simulate.network.latency=0s", "baseline={name: pslite, keys: scalar}")
		simtest.Near(t, fmt.Sprintf("%d servers", servers), 1-even.Seconds()/scalar.Seconds(), want, 1e-5)
	}
}

// An all-reduce is a ring: 2 (N-1) steps of 1/N of the bytes and a latency. Over all links it moves 2 (N-1) times the bytes.
func TestCommunicationOfARing(t *testing.T) {
	const bytes = 4 * (idealArena + shard.BucketTail)
	for _, n := range []int{1, 2, 3, 4, 7, 64, 1000} {
		got, moved := communication(t, n, 1, "baseline=allreduce")
		steps := float64(2 * (n - 1))
		want := steps * (idealLatency.Seconds() + bytes/float64(n)/idealLink)
		if d := math.Abs(got.Seconds() - want); d > 2e-9 {
			t.Errorf("%d workers: %v, want %.9f s", n, got, want)
		}
		if moved != 2*int64(n-1)*bytes {
			t.Errorf("%d workers: %d bytes, want %d", n, moved, 2*int64(n-1)*bytes)
		}
	}
	// Ranks that share a host pass parts on in memory: the card carries one flow each way, and the slower hop sets the pace.
	got, _ := communication(t, 8, 1, "baseline=allreduce", "simulate.ranks_per_host=2", "simulate.network.memory=1MB")
	simtest.Near(t, "slow memory", got.Seconds(), 14*bytes/8.0/1e6, 1e-6)
	got, _ = communication(t, 8, 1, "baseline=allreduce", "simulate.ranks_per_host=8", "simulate.network.memory=100MB")
	simtest.Near(t, "one host", got.Seconds(), 14*bytes/8.0/1e8, 1e-6)
}

// hops simulates a ring hop by hop: a rank sends a part on as soon as it has the part, has computed, and its link is free.
func hops(starts []float64, hop float64) (end float64) {
	n := len(starts)
	arrived, free := make([]float64, n), append([]float64(nil), starts...)
	for range 2 * (n - 1) {
		next := make([]float64, n)
		for i := range n {
			free[i] = max(free[i], arrived[i]) + hop
			next[(i+1)%n] = free[i]
			end = max(end, free[i])
		}
		arrived = next
	}
	if n == 1 {
		return starts[0]
	}
	return end
}

// For all starting times of the ranks, the ring ends when the simulation hop by hop ends.
func TestRingAgainstItsHops(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(1, 9).Draw(rt, "workers")
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		per := make([]string, n)
		starts := make([]float64, n)
		for i := range per {
			multiple := float64(1+rng.IntN(50)) / 10
			per[i], starts[i] = fmt.Sprint(multiple), multiple*idealCompute.Seconds()
		}
		got, _ := communication(t, n, 1, "baseline=allreduce", "simulate.per_worker=["+strings.Join(per, ",")+"]")
		hop := idealLatency.Seconds() + 4*(idealArena+shard.BucketTail)/float64(n)/idealLink
		if want := hops(starts, hop) - idealCompute.Seconds(); math.Abs(got.Seconds()-want) > 1e-8 {
			rt.Fatalf("%d workers, computing %v: %v, hop by hop %.9f s", n, starts, got, want)
		}
	})
}

// A bucket is summed while backward computes the earlier layers: the time is the larger of the two, and the last bucket.
func TestBucketsAreSummedWhileBackwardRuns(t *testing.T) {
	const layer = 8 << 20 // elements: 32 MiB
	var params []workload.Param
	for l := range 4 {
		params = append(params, workload.Param{Name: fmt.Sprintf("l%d.weight", l), Layer: l, Shape: []int{layer}})
	}
	took := func(compute time.Duration) time.Duration {
		o := ideal(t, 4, 1, "baseline=allreduce", "simulate.network={bandwidth: 1GB, latency: 0s}", "simulate.compute="+
			compute.String(), "cluster.memory_max=64GiB")
		plan, err := layout.Plan(o.Config, params, 1, layout.Link{})
		if err != nil {
			t.Fatal(err)
		}
		o.Plan = plan
		r, err := check.Run(o)
		if err != nil {
			t.Fatal(err)
		}
		return simtest.PerIteration(r)
	}
	sum := time.Duration(float64(6.0 / 4 * 4 * layer)) // of a bucket, in nanoseconds at 1 GB/s
	// Backward of a layer is a sixth of computing. Slow computing hides all buckets but the last, fast computing is hidden itself.
	simtest.Near(t, "slow", took(6000*time.Millisecond).Seconds(), (6000*time.Millisecond + sum).Seconds(), 1e-6)
	simtest.Near(t, "fast", took(6*time.Millisecond).Seconds(), (3*time.Millisecond + 4*sum).Seconds(), 1e-6)
}

// With all kinds of keys, faults and pauses all workers do the same iterations, no pull is delayed, and the checkers find nothing.
func TestBaselinesOverManySeeds(t *testing.T) {
	first, n := simtest.SeedsFrom(t)
	forms := append(shard.KeyForms(), "allreduce")
	steps := int64(0)
	for k := range max(1, n/10) {
		seed := uint64(first + k)
		r := rand.New(rand.NewPCG(seed, 5))
		pick := func(words ...string) string { return words[r.IntN(len(words))] }
		baseline := forms[r.IntN(len(forms))]
		if baseline != "allreduce" {
			baseline = "{name: pslite, keys: " + baseline + "}"
		}
		servers := 1 + r.IntN(3)
		workers := servers + r.IntN(5)
		o := ideal(t, workers, servers, "seed="+fmt.Sprint(seed), "baseline="+baseline, "cluster.placement="+
			pick("spread", "colocate"), "shards.slice="+pick("range", "even"),
			"train.stop={"+pick("samples: 40", "updates: 15", "time: 400ms", "samples: 100, time: 50ms")+"}",
			"simulate.ranks_per_host="+pick("1", "2", "3"),
			"simulate.network="+pick("{bandwidth: 0B, latency: 0s}", "{bandwidth: 20MB, latency: 30us}", "{latency: 2ms, memory: 100MB}"),
			"simulate.server="+pick("{fold: 0B, commit: 0B}", "{fold: 200MB, commit: 100MB}"),
			fmt.Sprintf("faults=[{worker: %d, slow: {%s}}%s]", r.IntN(workers), pick("factor: 4", "sleep: 3ms, from: 2, until: 5"),
				pick("", `, {worker: "*", slow: {kind: normal, factor: 2}}`,
					`, {worker: "*", slow: {kind: exponential, factor: 2}}`, `, {worker: "*", slow: {kind: fluentps, sleep: 2ms}}`)))
		for range r.IntN(3) {
			o.Pauses = append(o.Pauses,
				sim.Pause{Worker: r.IntN(workers), At: time.Duration(r.Int64N(int64(100 * time.Millisecond))),
					For: time.Duration(r.Int64N(int64(100 * time.Millisecond)))})
		}
		res, err := check.Run(o)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s := res.Summary
		if s.Iterations < 1 && o.Config.Train.Stop.Time == 0 || res.Delayed > 0 || s.MaxLead > 0 ||
			s.Samples != s.Iterations*int64(workers) || s.Baseline == "" || s.BytesSent != s.BytesReceived {
			t.Fatalf("seed %d: %d delayed pulls, summary %+v", seed, res.Delayed, s)
		}
		for _, w := range s.PerWorker {
			if w.Iterations != s.Iterations {
				t.Fatalf("seed %d: worker %d did %d iterations of %d", seed, w.Worker, w.Iterations, s.Iterations)
			}
		}
		again, err := check.Run(o)
		if err != nil || again.Trace != res.Trace || again.Duration != res.Duration {
			t.Fatalf("seed %d: %v, the second run took %v with trace %x, the first %v with %x", seed, err, again.Duration,
				again.Trace, res.Duration, res.Trace)
		}
		steps += res.Steps
	}
	t.Logf("%d node steps", steps)
}

// A pause of one worker delays all workers.
func TestAPauseDelaysARing(t *testing.T) {
	o := ideal(t, 4, 1, "baseline=allreduce", "train.stop.updates=1")
	plain, err := check.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	o.Pauses = []sim.Pause{{Worker: 2, At: 3 * time.Millisecond, For: 50 * time.Millisecond}}
	held, err := check.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if d := held.Duration - plain.Duration; d != 50*time.Millisecond {
		t.Errorf("a pause of 50ms took %v", d)
	}
}

func TestOptionsThatABaselineRefuses(t *testing.T) {
	for _, baseline := range []string{"allreduce", "pslite"} {
		o := ideal(t, 4, 1, "baseline="+baseline)
		o.Losses = []sim.Loss{{Worker: 1, At: time.Millisecond}}
		if _, err := check.Run(o); err == nil || !strings.Contains(err.Error(), "baseline "+baseline+" waits for all workers") {
			t.Errorf("%v", err)
		}
	}
	o := ideal(t, 4, 1, "baseline=allreduce")
	o.Values = func(*sim.Simulation) (sim.Values, error) { return nil, nil }
	if _, err := check.Run(o); err == nil || !strings.Contains(err.Error(), "baseline allreduce is modelled without gradients") {
		t.Errorf("%v", err)
	}
}
