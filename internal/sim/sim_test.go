package sim_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
)

// The formula for BSP on one server: all pushes collide, then all pulls: T = C + 2*N*x, where x is the time to move the model once.
// With 2 servers each moves half of the model through its own card, and the cards of the workers are not the limit.
func TestBSPTakesComputePlusTwoTransfersPerWorker(t *testing.T) {
	const bytes, bandwidth = 1_000_000, 100_000_000 // x = 10ms
	for _, c := range []struct{ workers, servers int }{{1, 1}, {2, 1}, {8, 1}, {20, 1}, {8, 2}, {16, 4}} {
		t.Run(fmt.Sprintf("workers=%d,servers=%d", c.workers, c.servers), func(t *testing.T) {
			r := run(t, simtest.Setting{Workers: c.workers, Servers: c.servers, Scheme: "bsp", Iterations: 50, Bytes: bytes, Compute: "1s",
				Set: []string{"simulate.network.bandwidth=100MB"}})
			x := float64(bytes) / bandwidth / float64(c.servers)
			simtest.Near(t, "seconds per iteration", simtest.PerIteration(r).Seconds(), 1+2*float64(c.workers)*x, 0.02)
			if want := int64(51*c.workers)*bytes + int64(50*c.workers)*bytes; r.Summary.BytesSent != want {
				t.Errorf("%d bytes sent, want %d: a reply to start with, then a push and a reply per worker and iteration", r.Summary.BytesSent, want)
			}
		})
	}
}

// The bytes and times of messages are those of their encoded form.
func TestTransfersHaveTheBytesOfTheirPayload(t *testing.T) {
	const elements, bandwidth, workers = 250_000, 100_000_000, 4
	for payload, sizes := range map[string][2]int64{"{push: bfloat16}": {2 * elements, 4 * elements},
		"{pull: float16}":           {4 * elements, 2 * elements},
		"{push: topk, ratio: 0.01}": {4 + 8*elements/100, 4 * elements},
		"{push: threshold, threshold: 1, ratio: 0.1, pull: bfloat16}": {4 + 8*elements/10, 2 * elements}} {
		r := run(t, simtest.Setting{Workers: workers, Servers: 1, Scheme: "bsp", Iterations: 50, Bytes: 4 * elements, Compute: "1s",
			Set: []string{"simulate.network.bandwidth=100MB", "payload=" + payload}})
		if want := workers * (50*sizes[0] + 51*sizes[1]); r.Summary.BytesSent != want {
			t.Errorf("%s: %d bytes sent, want %d", payload, r.Summary.BytesSent, want)
		}
		simtest.Near(t, payload+": seconds per iteration", simtest.PerIteration(r).Seconds(), 1+
			workers*float64(sizes[0]+sizes[1])/bandwidth, 0.02)
		if model := strings.Join(r.Summary.CostModel, "\n"); !strings.Contains(model, "payload  pushes ") || !r.Summary.Payload.Lossy {
			t.Errorf("%s: the summary has payload %+v and the model\n%s", payload, r.Summary.Payload, model)
		}
	}
}

// Without bandwidth and server costs the number of workers does not matter.
func TestBSPWithoutCostsDoesNotDependOnWorkers(t *testing.T) {
	for _, n := range []int{1, 4, 64} {
		r := run(t, simtest.Setting{Workers: n, Servers: 2, Scheme: "bsp", Iterations: 20, Set: []string{"simulate.network.latency=1ms"}})
		// The first pull costs two latencies, then each iteration its compute, a push and a reply.
		if want := 2*time.Millisecond + 20*12*time.Millisecond; r.Duration != want {
			t.Errorf("%d workers: %v, want %v", n, r.Duration, want)
		}
	}
}

// Under bsp the pulls of the fast worker wait for the push of the slow one, in both shards. Under drop all pushes of the slow worker
// but the first are late.
func TestWaitingAndDroppingAreCounted(t *testing.T) {
	slow := "faults=[{worker: 1, slow: {factor: 3}}]"
	r := run(t, simtest.Setting{Workers: 2, Servers: 2, Scheme: "bsp", Iterations: 20, Set: []string{slow}})
	for _, sh := range r.Summary.PerShard {
		if sh.DelayedPulls != 20 || float64(sh.DelayedS) != 0.4 || sh.LeadMax != 0 || sh.Lead.N() != 42 || len(sh.DroppedFor) > 0 {
			t.Errorf("bsp: %d delayed pulls waited %v s, lead %v of %d pulls, dropped %v; want 20, 0.4 s, 0 of 42, none",
				sh.DelayedPulls, sh.DelayedS, sh.LeadMax, sh.Lead.N(), sh.DroppedFor)
		}
	}
	r = run(t, simtest.Setting{Workers: 3, Servers: 1, Scheme: "drop, required: 2", Iterations: 20, Set: []string{slow}})
	sh := r.Summary.PerShard[0]
	if sh.Dropped == 0 || sh.DroppedFor["late"] != sh.Dropped || sh.Pushes != sh.Staleness.N()+sh.Dropped {
		t.Errorf("drop: %d pushes, %d committed, %d dropped, for %v; want all of them late", sh.Pushes, sh.Staleness.N(),
			sh.Dropped, sh.DroppedFor)
	}
}

// A server folds and commits one push after the other: N folds and one commit lie between push and reply.
func TestServerCostsAddUp(t *testing.T) {
	r := run(t, simtest.Setting{Workers: 4, Servers: 1, Scheme: "bsp", Iterations: 10, Bytes: 1_000_000,
		Set: []string{"simulate.server.fold=1GB", "simulate.server.commit=500MB"}})
	if want := 10 * (10 + 4*1 + 2) * time.Millisecond; r.Duration != want {
		t.Errorf("%v, want %v", r.Duration, want)
	}
	simtest.Near(t, "share of folding", float64(r.Summary.PerRole["server"]["fold"].Avg)/r.Duration.Seconds(), 6.0/16, 1e-9)
}

// Pushes that arrive at once are folded and committed one after the other, and each reply follows its own commit.
func TestAServerDoesOneThingAtATime(t *testing.T) {
	r := run(t, simtest.Setting{Workers: 4, Servers: 1, Scheme: "asp", Iterations: 100, Bytes: 1_000_000, Compute: "1ms",
		Set: []string{"simulate.server.fold=1GB", "simulate.server.commit=500MB"}})
	simtest.Near(t, "seconds per push", r.Duration.Seconds()/400, 0.003, 0.01)
	simtest.Near(t, "idle share of the server", float64(r.Summary.PerRole["server"]["idle"].Avg)/r.Duration.Seconds(), 0.001, 1)
}

func TestColocatedRanksDoNotUseTheNetwork(t *testing.T) {
	one := simtest.Setting{Workers: 1, Servers: 1, Scheme: "bsp", Iterations: 10, Bytes: 1_000_000,
		Set: []string{"simulate.network.bandwidth=1MB", "cluster.placement=colocate"}}
	if r := run(t, one); r.Duration != 100*time.Millisecond {
		t.Errorf("%v on the host of its server, want 100ms", r.Duration)
	}
	one.Set = append(one.Set, "simulate.network.memory=1GB")
	if r := run(t, one); r.Duration != 121*time.Millisecond { // 11 replies and 10 pushes of 1 ms
		t.Errorf("%v with memory of 1 GB/s, want 121ms", r.Duration)
	}
}

// One straggler has 4 times the compute time, and nothing else costs time: only the wait of a pull matters.
func TestStragglerBySchemeIsWhatTheRulesSay(t *testing.T) {
	steps := func(scheme string) (perS float64, r *sim.Result) {
		r = run(t, simtest.Setting{Workers: 8, Servers: 1, Scheme: scheme, Iterations: 1000,
			Set: []string{"faults=[{worker: 3, slow: {factor: 4}}]"}})
		return float64(r.Summary.Samples) / r.Duration.Seconds(), r
	}
	bsp, r := steps("bsp")
	simtest.Near(t, "bsp", bsp, 8/0.04, 0.01)
	simtest.Near(t, "bsp: blocked share of a fast worker", float64(r.Summary.PerWorker[0].BlockedS)/r.Duration.Seconds(), 0.75, 0.01)
	if r.Summary.MaxLead != 0 {
		t.Errorf("bsp lets a worker lead by %d", r.Summary.MaxLead)
	}
	ssp, r := steps("ssp, staleness: 3")
	simtest.Near(t, "ssp: in the long run all go as fast as the straggler", ssp, 8/0.04, 0.03)
	if r.Summary.MaxLead != 3 {
		t.Errorf("max lead %d under ssp with s = 3", r.Summary.MaxLead)
	}
	asp, r := steps("asp")
	simtest.Near(t, "asp: nobody waits", asp, 7/0.01+1/0.04, 0.01)
	if r.Delayed != 0 || r.Summary.PerWorker[0].BlockedS != 0 {
		t.Errorf("asp delays %d pulls and blocks worker 0 for %v s", r.Delayed, r.Summary.PerWorker[0].BlockedS)
	}
	// 7 fast workers push for 0.04 s while the straggler computes once: 28 versions, the straggler's own comes 29th.
	if got := r.Stale[0].Max(); got != 28 {
		t.Errorf("largest staleness under asp is %d, want 28", got)
	}
}

// One straggler, the others rho times faster. Soft: one delayed pull per fast worker and straggler iteration.
// Lazy: one per s*rho/(rho-1) of them, plus the half step that releases overshoot by on average.
func TestSoftOverLazyDelayedPulls(t *testing.T) {
	const iterations = 1000
	for _, s := range []int{1, 3, 5} {
		for _, rho := range []float64{1.5, 2, 3} {
			delayed := func(release string) float64 {
				r := run(t, simtest.Setting{Workers: 16, Servers: 1, Seed: 1, Iterations: iterations,
					Scheme: fmt.Sprintf("ssp, staleness: %d, release: %s", s, release),
					Set:    simtest.Noisy(10*time.Millisecond, 0.1, fmt.Sprintf("{worker: 0, slow: {factor: %g}}", rho))})
				return float64(r.Delayed)
			}
			soft, lazy := delayed("soft"), delayed("lazy")
			simtest.Near(t, fmt.Sprintf("s=%d rho=%g: soft per fast worker and iteration", s, rho), soft/15/iterations, 1, 0.05)
			want := float64(s)*rho/(rho-1) + 0.5
			t.Logf("s=%d rho=%g: soft %.0f, lazy %.0f delayed pulls, ratio %.2f, formula %.2f", s, rho, soft, lazy, soft/lazy, want)
			simtest.Near(t, fmt.Sprintf("s=%d rho=%g: soft over lazy", s, rho), soft/lazy, want, 0.10)
		}
	}
}

func TestSlownessHasTheMeanThatItSays(t *testing.T) {
	for _, c := range []struct {
		slow string
		mean float64
	}{
		{"{kind: normal, factor: 3, spread: 0.1}", 3},
		{"{kind: lognormal, factor: 3, spread: 1}", 3},
		{"{kind: exponential, factor: 1.5}", 1.5},
		{"{kind: exponential, sleep: 20ms}", 3},
		{"{kind: two_state, factor: 5, enter: 0.1, leave: 0.3}", 1 + 4*0.25},   // slow for enter/(enter+leave) of the iterations
		{"{kind: fluentps, every: 2, sleep: 20ms, spread: 0.2}", 1 + 0.5*1.95}, // whole ms: half of one is cut off on average
	} {
		r := run(t, simtest.Setting{Workers: 16, Servers: 1, Scheme: "bsp", Iterations: 2000,
			Set: []string{`faults=[{worker: "*", slow: ` + c.slow + "}]"}})
		sum, n := 0.0, int64(0)
		for _, w := range r.Summary.PerWorker {
			sum += float64(w.ComputeS)
			n += w.Iterations
		}
		simtest.Near(t, c.slow, sum/float64(n), 0.01*c.mean, 0.03)
	}
}

func TestPauseDelaysByExactlyItsTime(t *testing.T) {
	o := simtest.Setting{Workers: 2, Servers: 1, Scheme: "bsp", Iterations: 10}.Options(t)
	o.Pauses = []sim.Pause{{Worker: 1, At: 25 * time.Millisecond, For: 70 * time.Millisecond}}
	r, err := check.Run(o)
	if err != nil || r.Duration != 170*time.Millisecond {
		t.Errorf("%v, %v; want 170ms", r.Duration, err)
	}
}

func TestLossOfAWorkerEndsNoOtherWorker(t *testing.T) {
	for _, scheme := range []string{"bsp", "asp", "ssp, staleness: 2, release: lazy", "ssp, fold: rank"} {
		o := simtest.Setting{Workers: 4, Servers: 2, Scheme: scheme, Iterations: 40, Bytes: 1_000_000,
			Set: []string{"simulate.network={bandwidth: 100MB, latency: 1ms}"}}.Options(t)
		o.Losses = []sim.Loss{{Worker: 2, At: 123 * time.Millisecond}, {Worker: 0, At: 457 * time.Millisecond}}
		r, err := check.Run(o)
		if err != nil {
			t.Fatalf("%s: %v", scheme, err)
		}
		if s := r.Summary; r.Lost != 2 || s.Samples < 160 || s.BytesSent <= s.BytesReceived {
			t.Errorf("%s: %d lost, %d samples of 160, %d bytes sent and %d received: some were lost with the workers", scheme,
				r.Lost, s.Samples, s.BytesSent, s.BytesReceived)
		}
	}
}

func TestSameSeedSameRun(t *testing.T) {
	run := func(seed uint64) *sim.Result {
		return run(t, simtest.Setting{Workers: 6, Servers: 2, Scheme: "ssp, staleness: 2", Iterations: 50, Seed: seed, Bytes: 100_000,
			Set: []string{"faults=[" + simtest.Exponential(0.5) + "]", "simulate.network={bandwidth: 10MB, latency: 50us}"}})
	}
	a, b, c := run(7), run(7), run(8)
	if a.Trace != b.Trace || a.Duration != b.Duration || a.Steps != b.Steps {
		t.Errorf("seed 7 twice: traces %x and %x, %v and %v", a.Trace, b.Trace, a.Duration, b.Duration)
	}
	if a.Trace == c.Trace || a.Duration == c.Duration {
		t.Errorf("seeds 7 and 8 give the same run: trace %x, %v", a.Trace, a.Duration)
	}
}

func TestTimeBudgetStops(t *testing.T) {
	r := run(t, simtest.Setting{Workers: 3, Servers: 1, Scheme: "bsp", Iterations: 1000, Set: []string{"train.stop.time=95ms"}})
	if r.Duration != 100*time.Millisecond || r.Summary.Iterations != 10 {
		t.Errorf("%d iterations in %v, want 10 in 100ms: the running one is finished", r.Summary.Iterations, r.Duration)
	}
}

func TestOptionsThatCannotBeSimulatedAreRefused(t *testing.T) {
	for _, c := range []struct {
		want  string
		spoil func(o *sim.Options)
	}{
		{"without gradients there is no accuracy", func(o *sim.Options) { o.Config.Train.Stop.Samples = 0 }},
		{"faults[0].worker is 2, but the workers are 0 to 1", func(o *sim.Options) { o.Config.Faults = []configs.Fault{{Worker: 2}} }},
		{"loss of worker -1 at 1s", func(o *sim.Options) { o.Losses = []sim.Loss{{-1, time.Second}} }},
		{"pause of worker 0 at 1s for -1s", func(o *sim.Options) { o.Pauses = []sim.Pause{{0, time.Second, -time.Second}} }},
		{"train.batch_global is 1, but there are 2 workers", func(o *sim.Options) { o.Config.Train.BatchGlobal = 1 }},
		{"fold: rank needs a finite bound", func(o *sim.Options) { o.Config.Sync[0].Common.Fold = "rank" }},
	} {
		o := simtest.Setting{Workers: 2, Servers: 1, Scheme: "asp", Iterations: 5}.Options(t)
		c.spoil(&o)
		if _, err := check.Run(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want: %s", err, c.want)
		}
	}
}
