package bench

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	ps "fluentps/internal/rank/runtime"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/ps/workload"
)

func TestLayersCoverTheSize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 5000).Draw(t, "n")
		each := rapid.Int64Range(1, 6000).Draw(t, "each")
		servers := rapid.Int64Range(1, 9).Draw(t, "servers")
		layers := layersOf(n, each, servers)
		var sum int64
		for _, l := range layers {
			sum += l
			if l < 1 || l > each {
				t.Fatalf("%v: a layer of %d, must be 1 to %d", layers, l, each)
			}
		}
		if sum != n || n >= servers && int64(len(layers)) < servers || slices.Max(layers)-slices.Min(layers) > 1 {
			t.Fatalf("%d parameters for %d servers in layers of %v", n, servers, layers)
		}
	})
}

// A round lasts from start to start, and the last one until its parameters have arrived. The first rounds do not count.
func TestSlowestWorkerCounts(t *testing.T) {
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	fast := []timings.Iteration{{Start: 0}, {Start: ms(50)}, {Start: ms(51)}, {Start: ms(52), Push: ms(1), Blocked: ms(2), Pull: ms(3)}}
	slow := []timings.Iteration{{Start: 0}, {Start: ms(1)}, {Start: ms(11)}, {Start: ms(31), Compute: ms(4)}}
	if got := slowest([][]timings.Iteration{fast, slow}, 1); !slices.Equal(got, rounds{ms(10), ms(20), ms(4)}) {
		t.Errorf("%v, want the rounds of the second worker, which are longer in the mean", got)
	}
	if got := slowest([][]timings.Iteration{slow, fast}, 3); !slices.Equal(got, rounds{ms(6)}) {
		t.Errorf("%v, want the last round of the first list, with its wait", got)
	}
	if got := slowest([][]timings.Iteration{fast, fast[:1]}, 1); got != nil {
		t.Errorf("%v of a worker without a round", got)
	}
	r := rounds{5, 1, 4, 2, 3}
	if r.quantile(0.5) != 3 || r.quantile(0.99) != 5 || r.quantile(0.1) != 1 || r.total() != 15 {
		t.Errorf("quantiles of %v", r)
	}
}

// The check must find one push that did not count, and one parameter that is off by half a push.
func TestPushpullChecksValues(t *testing.T) {
	k := Case{scheme: "asp", bytes: 96, slice: "layer", layers: []int64{12, 12}}
	result := func(steps float64) ps.Result {
		none := k
		cfg, err := none.config(2, 4)
		if err != nil {
			t.Fatal(err)
		}
		s := &metrics.Summary{Job: metrics.Job{Workers: 2}, Seed: cfg.Seed, PerShard: []metrics.ShardSummary{{Pushes: 8}, {Pushes: 8}}}
		res := ps.Result{Summary: s}
		for l := range k.layers {
			res.Parameters = append(res.Parameters, moved(k.layers[l], l, cfg.Seed, steps)...)
		}
		return res
	}
	if err := k.check(result(4)); err != nil {
		t.Error(err)
	}
	for what, spoil := range map[string]func(*ps.Result){
		"3.500 steps, must be 4.000": func(r *ps.Result) { *r = result(3.5) },
		"parameter 7 of layer 2":     func(r *ps.Result) { r.Parameters[19] += 0.0005 },
		"shard  took 4 rounds":       func(r *ps.Result) { r.Summary.PerShard[1].Dropped = 1 },
		"24 parameters came back":    func(r *ps.Result) { k.layers = k.layers[:1]; r.Summary.PerShard = r.Summary.PerShard[:1] },
	} {
		r := result(4)
		spoil(&r)
		if err := k.check(r); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("want an error that says %q, got %v", what, err)
		}
		k.layers = []int64{12, 12}
	}
}

// moved returns the parameters of a layer after that many steps.
func moved(n int64, layer int, seed uint64, steps float64) []float32 {
	w := make([]float32, n)
	workload.Fill(w, seed, workload.Param{Name: fmt.Sprintf("layer%d.weight", layer+1), Fan: int(n)}, 0)
	for i := range w {
		w[i] -= float32(steps) * workload.SyntheticGradient(i)
	}
	return w
}
