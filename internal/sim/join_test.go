package sim_test

import (
	"strings"
	"testing"
	"time"

	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
)

// A worker that is absent in the middle of a run computes before and after that, and the others wait for it only while it is
// present.
func TestAWorkerThatRejoinsComputesAgain(t *testing.T) {
	o := simtest.Setting{Workers: 3, Servers: 2, Scheme: "bsp", Iterations: 100,
		Set: []string{"faults=[{worker: 2, slow: {factor: 3}}]", "simulate.network.latency=1ms"}}.Options(t)
	o.Losses = []sim.Loss{{Worker: 2, At: 500 * time.Millisecond}}
	o.Joins = []sim.Join{{Worker: 2, At: time.Second}}
	var starts []time.Duration
	o.Computed = func(worker int, _ int64, from, _ time.Duration) {
		if worker == 2 {
			starts = append(starts, from)
		}
	}
	r, err := check.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Lost != 1 || r.Joined != 1 || r.Summary.Samples < 300 {
		t.Errorf("lost %d, joined %d, %d samples", r.Lost, r.Joined, r.Summary.Samples)
	}
	before, after := 0, 0
	for _, at := range starts {
		switch {
		case at < 500*time.Millisecond:
			before++
		case at < time.Second:
			t.Errorf("the dead worker began an iteration at %v", at)
		default:
			after++
		}
	}
	if before < 10 || after < 10 {
		t.Errorf("%d iterations before and %d after, want at least a dozen each", before, after)
	}
	if n := r.Summary.PerWorker[2].Iterations; n < int64(before+after) || n > int64(before+after+1) {
		t.Errorf("the summary counts %d iterations in both lives, it computed %d", n, before+after)
	}
}

// All messages in flight when a worker dies are lost, even if the worker has rejoined before they arrive: replies, pieces and
// messages of the old life, over a network that is slow enough for that.
func TestNothingOfAnEarlierLifeArrives(t *testing.T) {
	for ms := range 60 {
		o := simtest.Setting{Workers: 3, Servers: 2, Scheme: "ssp, staleness: 1", Iterations: 20, Bytes: 4000,
			Set: []string{"simulate.network={bandwidth: 1MB, latency: 5ms}", "simulate.server={fold: 1MB, commit: 1MB}"}}.Options(t)
		for k := range 3 {
			at := time.Duration(ms+40*k) * time.Millisecond
			o.Losses = append(o.Losses, sim.Loss{Worker: 1, At: at})
			o.Joins = append(o.Joins, sim.Join{Worker: 1, At: at})
		}
		r, err := check.Run(o)
		if err != nil {
			t.Fatal(err)
		}
		if r.Joined != r.Lost || r.Joined < 2 || r.Summary.BytesSent <= r.Summary.BytesReceived {
			t.Fatalf("lost at %d ms: joined %d of %d, %d bytes sent and %d received", ms, r.Joined, r.Lost,
				r.Summary.BytesSent, r.Summary.BytesReceived)
		}
	}
}

// The run waits for a worker that will rejoin, even if all are dead.
func TestARunContinuesWhenTheLastWorkerRejoins(t *testing.T) {
	// softsync has pending pushes both times that the worker leaves.
	o := simtest.Setting{Workers: 1, Servers: 2, Scheme: "softsync, q: 4", Iterations: 10,
		Set: []string{"train.stop={time: 1095ms}"}}.Options(t)
	o.Losses = []sim.Loss{{Worker: 0, At: 35 * time.Millisecond}}
	o.Joins = []sim.Join{{Worker: 0, At: time.Second}}
	r, err := check.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Summary.Samples != 13 || r.Duration < time.Second || r.Joined != 1 {
		t.Errorf("%d samples in %v, want the 3 before and the 10 after", r.Summary.Samples, r.Duration)
	}
	o.Joins[0].At = 35 * time.Millisecond // before the servers know of its death
	if r, err = check.Run(o); err != nil || r.Summary.Samples != 109 || r.Joined != 1 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestJoinsThatCannotBeAreRefused(t *testing.T) {
	for _, c := range []struct {
		join sim.Join
		want string
	}{
		{sim.Join{Worker: 2, At: time.Second}, "join of worker 2 at 1s, but the workers are 0 to 1"},
		{sim.Join{Worker: 0, At: time.Second}, "join of worker 0 at 1s, but this worker is not lost before; let it die first"},
		{sim.Join{Worker: 1, At: time.Millisecond}, "this worker is not lost before"},
	} {
		o := simtest.Setting{Workers: 2, Servers: 1, Scheme: "asp", Iterations: 3}.Options(t)
		o.Losses = []sim.Loss{{Worker: 1, At: 5 * time.Millisecond}}
		o.Joins = []sim.Join{c.join}
		if _, err := check.Run(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.join, err, c.want)
		}
	}
}
