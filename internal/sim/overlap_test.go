package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/ps/workload"
)

// sixteen is a net of 16 equal layers of 256 KiB, of one worker and one server with links of 25 MB/s.
const (
	sixteenBytes = 16 * 65536 * shard.ElemBytes
	sixteenLink  = 25_000_000
)

func sixteen(t testing.TB, compute time.Duration, set ...string) time.Duration {
	t.Helper()
	text := fmt.Sprintf(`name: sixteen
data: {set: generated}
model: {name: synthetic, layers: [%s65536]}
train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {updates: 40}}
shards: {slice: slices, max_bytes: 64KiB}
simulate: {workers: 1, compute: %s, network: {bandwidth: %dB, latency: 0s}, server: {fold: 0B, commit: 0B}}
`, strings.Repeat("65536, ", 15), compute, sixteenLink)
	cfg, _, ds := configs.Parse("sixteen", []byte(text), configs.Options{Set: set})
	if cfg == nil {
		t.Fatal(ds)
	}
	var params []shard.Param
	for l := range 16 {
		params = append(params, shard.Param{Name: fmt.Sprintf("layer%d.weight", l+1), Layer: l, N: 65536})
	}
	plan, err := shard.Cut(params, shard.Options{Slice: cfg.Shards.Slice, MaxBytes: cfg.Shards.MaxBytes, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	var ends []time.Duration
	r, err := check.Run(sim.Options{Config: cfg, Plan: plan, Rows: 1000, CheckEvery: 64,
		Computed: func(_ int, _ int64, _, until time.Duration) { ends = append(ends, until) }})
	if err != nil {
		t.Fatal(err)
	}
	if r.Summary.Iterations != 40 {
		t.Fatalf("%d iterations", r.Summary.Iterations)
	}
	return (ends[39] - ends[9]) / 30 // time of a step when the pipeline is full
}

// A net whose computing takes as long as the same run without computing.
//
// No schedule can be faster than computing, or than a link. In every order the push and the reply of layer 0 lie between the end of
// backward and the start of the next forward, because its gradients are ready last and its parameters are read first. A server
// answers a shard when all of the shard has landed. So the replies of all shards but the last overlap the pushes in the other
// direction, and the reply of one shard remains. Nothing is computed meanwhile:
//
//	best >= max(compute + (layer 0 + a shard of it) / link, all layers / link)
//
// Priority must be within 8% of that, with P3's slices and with a shard for each layer. Without overlap, communication follows
// computing, so a step takes twice as long as either.
func TestTheBestOrderOfSending(t *testing.T) {
	link := func(bytes int64) time.Duration { return time.Duration(sim.Nanoseconds(bytes, sixteenLink)) }
	const layer = sixteenBytes / 16
	for _, c := range []struct {
		slicing string
		shard   int64 // bytes
	}{{"{slice: slices, max_bytes: 64KiB}", 64 << 10}, {"{slice: layer, max_bytes: 4MiB}", layer}} {
		shards := "shards=" + c.slicing
		comm := sixteen(t, time.Nanosecond, "send={order: priority}", shards)
		compute := comm
		best := max(compute+link(layer+c.shard), link(sixteenBytes))
		step := func(send string) time.Duration {
			d := sixteen(t, compute, "send="+send, shards)
			t.Logf("%s %s: %v, %.3f of the best schedule's, %.3f of computing", c.slicing, send, d, ratio(d, best), ratio(d, compute))
			return d
		}
		priority, fifo, credit, off := step("{order: priority}"), step("{order: fifo}"),
			step("{order: credit, credit: 100KB, tune: {points: 0}}"), step("{order: priority, overlap: false}")
		if r := ratio(step("{order: aligned}"), priority); r > 1.02 || r < 0.98 {
			t.Errorf("%s: aligned takes %.3f of priority's step", c.slicing, r)
		}
		if r := ratio(priority, best); r > 1.08 || r < 1 {
			t.Errorf("%s: priority takes %v, %.3f of the best schedule's %v", c.slicing, priority, r, best)
		}
		if r := ratio(credit, best); r > 1.08 || r < 1 {
			t.Errorf("%s: a credit of two small pieces takes %v, %.3f of the best schedule's %v", c.slicing, credit, r, best)
		}
		if r := ratio(off, compute+comm); r < 0.999 || r > 1.001 {
			t.Errorf("%s: without overlap a step takes %v, computing and communication %v", c.slicing, off, compute+comm)
		}
		if fifo < priority*120/100 {
			t.Errorf("%s: fifo takes %v, priority %v", c.slicing, fifo, priority)
		}
	}
}

// A server answers a shard when all of the shard has landed. If more urgent pieces could interrupt its push, all layers would be in
// flight at the end of backward, and none would be answered: a step of 267 ms. They cannot, so small pieces cost nothing. Slices
// are a little faster, because each slice is answered on its own.
func TestPiecesOfAShardComeNearSlices(t *testing.T) {
	compute := sixteen(t, time.Nanosecond, "send={order: priority}")
	slices := sixteen(t, compute, "send={order: priority}")
	pieces := sixteen(t, compute, "send={order: priority}", "shards.slice=layer")
	best := compute + time.Duration(sim.Nanoseconds(sixteenBytes/8, sixteenLink))
	t.Logf("slices %v, pieces of shards %v, %.3f of the best schedule's", slices, pieces, ratio(pieces, best))
	if pieces <= slices || pieces < best || pieces > best*108/100 {
		t.Errorf("slices take %v, pieces of one shard %v, their best schedule %v", slices, pieces, best)
	}
}

// Four workers whose computing differs by a few milliseconds share the link of a server. With priority each sends
// other layers first, and the layers are complete only when all pushes are over. Aligned workers lose what the
// slowest of them computes longer, and little more: they are also faster than fifo.
func TestAlignedWorkersSendTheSameShards(t *testing.T) {
	speed := func(set ...string) float64 {
		set = append(set, "simulate.compute=178ms", "simulate.network.latency=100us", "shards.slice=layer")
		text := fmt.Sprintf(`name: four
data: {set: generated}
model: {name: synthetic, layers: [%s32768]}
train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {samples: 400}}
simulate: {workers: 4, network: {bandwidth: 23500000B}, server: {fold: 0B, commit: 0B}}
`, strings.Repeat("32768, ", 15))
		cfg, _, ds := configs.Parse("four", []byte(text), configs.Options{Set: set})
		if cfg == nil {
			t.Fatal(ds)
		}
		var params []workload.Param
		for l := range 16 {
			params = append(params, workload.Param{Name: fmt.Sprintf("layer%d.weight", l+1), Layer: l, Shape: []int{32768}})
		}
		plan, err := layout.Plan(cfg, params, 1, sim.Link(cfg))
		if err != nil {
			t.Fatal(err)
		}
		r, err := check.Run(sim.Options{Config: cfg, Plan: plan, Rows: 1000, CheckEvery: 64})
		if err != nil {
			t.Fatal(err)
		}
		return float64(r.Summary.Iterations) / float64(r.Summary.TrainS)
	}
	for _, sleep := range []string{"1us", "5ms", "20ms"} {
		slow := fmt.Sprintf(`faults=[{worker: "*", slow: {kind: exponential, sleep: %s}}]`, sleep)
		aligned, priority, fifo := speed(slow), speed(slow, "send.order=priority"), speed(slow, "send.order=fifo")
		t.Logf("sleeps of %s: aligned %.2f, priority %.2f, fifo %.2f steps per second", sleep, aligned, priority, fifo)
		if aligned < 0.98*priority || aligned < 1.02*fifo {
			t.Errorf("sleeps of %s: aligned makes %.2f steps per second, priority %.2f, fifo %.2f", sleep, aligned, priority, fifo)
		}
		if sleep != "1us" && aligned < 1.08*priority {
			t.Errorf("sleeps of %s: aligned makes %.2f steps per second, priority %.2f", sleep, aligned, priority)
		}
	}
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(b) }
