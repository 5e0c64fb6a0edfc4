package train_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/station/stationtest"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// residualUpdates is how many iterations resnet20 trains: under the race detector each runs the same code, some 20 times slower.
func residualUpdates() int {
	if stationtest.UnderRace {
		return 2
	}
	return 4
}

// resnetConfig trains resnet20 on small generated images: 4 workers with batches of 3, for residualUpdates iterations.
func resnetConfig(t testing.TB, set ...string) *configs.Config {
	t.Helper()
	return load(t, append([]string{"data={set: generated, rows: 480, test_rows: 20, image: [1, 8, 8], classes: 3}", "model={name: resnet20}",
		"train.batch_per_worker=3", fmt.Sprintf("train.stop={updates: %d}", residualUpdates())}, set...)...)
}

// splitStatistics splits final parameters into the trained ones and the statistics.
func splitStatistics(t testing.TB, c *configs.Config, all []float32) (trained, statistics []float32) {
	t.Helper()
	for _, p := range paramsOfModel(t, c) {
		if p.Stat {
			statistics = append(statistics, all[:p.N()]...)
		} else {
			trained = append(trained, all[:p.N()]...)
		}
		all = all[p.N():]
	}
	if len(all) != 0 || len(statistics) == 0 {
		t.Fatalf("%d values behind the last parameter, %d statistics", len(all), len(statistics))
	}
	return trained, statistics
}

func paramsOfModel(t testing.TB, c *configs.Config) []workload.Param {
	t.Helper()
	set, err := cached(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	return configstest.Params(t, c.ModelSpec(), set.Samples())
}

// averaged trains as BSP is defined, in one loop: all workers compute on the same parameters, trained parameters take a
// step of sgd along the mean gradient, and statistics become the mean of the workers' next ones.
func averaged(t testing.TB, c *configs.Config, workers, steps int) []float32 {
	t.Helper()
	set, err := cached(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	batch := c.Train.BatchPerWorker
	m, err := workload.NewModel(c.ModelSpec(), set.Samples(), cpu.New(1), batch)
	if err != nil {
		t.Fatal(err)
	}
	params := configstest.Params(t, c.ModelSpec(), set.Samples())
	w, g, sum := make([][]float32, len(params)), make([][]float32, len(params)), make([][]float64, len(params))
	for k, p := range params {
		w[k], g[k], sum[k] = make([]float32, p.N()), make([]float32, p.N()), make([]float64, p.N())
		workload.Fill(w[k], c.Seed, p, 0)
	}
	m.Bind(w, g)
	b := dataset.Batch{X: make([]float32, batch*set.Train.Cols()), Y: make([]int32, batch), N: batch, Cols: set.Train.Cols()}
	samplers := make([]*dataset.Sampler, workers)
	for j := range samplers {
		rows, err := dataset.Partition(c.Data.Partition, set.Train.Rows(), workers, j, c.Seed)
		if err != nil {
			t.Fatal(err)
		}
		samplers[j] = dataset.NewSampler(rows, batch, c.Seed, j)
	}
	for i := range steps {
		for k := range sum {
			clear(sum[k])
		}
		for _, s := range samplers {
			set.Train.Fill(b.X, b.Y, s.Batch(int64(i), nil))
			m.Forward(b, nil)
			m.Backward(nil)
			for k := range g {
				for e, v := range g[k] {
					sum[k][e] += float64(v) / float64(batch*workers)
				}
			}
		}
		for k, p := range params {
			for e, mean := range sum[k] {
				if p.Stat {
					w[k][e] = float32(mean)
				} else {
					w[k][e] -= float32(c.Train.Optimizer.LR * mean)
				}
			}
		}
	}
	return slices.Concat(w...)
}

// The law "statistics are averages under BSP". At a rate of 0.1 the parameters of such small batches move so far that
// rounding decides on a ReLU here and there, and the two computations diverge.
func TestStatisticsAreTheMeanOverTheWorkers(t *testing.T) {
	if stationtest.UnderRace {
		t.Skip("convolutions, and the same code as in TestStatisticsUnderOtherSchemes")
	}
	sgd := "train.optimizer={name: sgd, lr: 0.01}"
	c := resnetConfig(t, sgd)
	wantTrained, want := splitStatistics(t, c, averaged(t, c, 4, residualUpdates()))
	for name, c := range map[string]*configs.Config{
		"even":     c,
		"by layer": resnetConfig(t, sgd, "shards={slice: layer, max_bytes: 1KiB}", "cluster.servers=3"),
		"deltas":   resnetConfig(t, sgd, `sync=[{match: "*", scheme: bsp, push: delta}]`),
		"apart":    resnetConfig(t, sgd, `sync=[{match: "*.mean", scheme: ssp, staleness: 0, fold: rank}, {match: "*", scheme: bsp}]`),
		"ps-lite":  resnetConfig(t, sgd, "baseline=pslite"),
		"lists":    resnetConfig(t, sgd, "baseline={name: pslite, keys: list}"),
		"scalars":  resnetConfig(t, sgd, "baseline={name: pslite, keys: scalar}", "shards.slice=even"),
	} {
		t.Run(name, func(t *testing.T) {
			trained, got := splitStatistics(t, c, mustTrain(t, c, 4+c.Cluster.Servers).Parameters)
			if d := relative(got, want); !(d <= 1e-5) {
				t.Errorf("statistics are off by %.2g, relative in the norm", d)
			}
			if d := relative(trained, wantTrained); !(d <= 1e-5) {
				t.Errorf("trained parameters are off by %.2g, relative in the norm", d)
			}
		})
	}
	res := trainOn(t, "aabb", resnetConfig(t, sgd, "cluster={servers: 2, placement: colocate, hierarchy: node}"))
	if _, got := splitStatistics(t, c, res.Parameters); !(relative(got, want) <= 1e-5) {
		t.Errorf("with hierarchy statistics are off by %.2g, relative in the norm", relative(got, want))
	}
}

// The statistics after one iteration are those of the initial parameters, whatever happens to the gradients.
func TestNothingButTheMeanTouchesStatistics(t *testing.T) {
	if stationtest.UnderRace {
		t.Skip("convolutions, and the same code as in TestStatisticsUnderOtherSchemes")
	}
	once := "train.stop={updates: 1}"
	c := resnetConfig(t, once)
	plainTrained, want := splitStatistics(t, c, mustTrain(t, c, 6).Parameters)
	for name, set := range map[string][]string{
		"decay":     {"train.optimizer={name: momentum, lr: 0.1, weight_decay: 0.1, no_decay: []}"},
		"adam":      {"train.optimizer={name: adam, lr: 0.1}"},
		"lars":      {"train.optimizer={name: lars, lr: 3}", "shards.slice=layer"},
		"muon":      {"train.optimizer={name: muon, lr: 0.02}", "shards.slice=layer"},
		"schedule":  {"train.schedule={name: cosine, over: 10, warm_up: 5}"},
		"bfloat16":  {"payload.push=bfloat16"},
		"topk":      {"payload={push: topk, ratio: 0.01}"},
		"threshold": {"payload={push: threshold, ratio: 0.01, threshold: 100}", "shards={slice: layer, max_bytes: 1KiB}"},
		"deltas":    {`sync=[{match: "*", scheme: bsp, push: delta}]`},
	} {
		t.Run(name, func(t *testing.T) {
			c := resnetConfig(t, append(set, once)...)
			trained, got := splitStatistics(t, c, mustTrain(t, c, 6).Parameters)
			if !slices.Equal(got, want) {
				t.Errorf("statistics differ: they are off by %.2g, relative in the norm", relative(got, want))
			}
			if slices.Equal(trained, plainTrained) && name != "deltas" {
				t.Error("trained parameters are what they were: nothing was compared")
			}
		})
	}
}

// Under every scheme variances stay above 0 and means finite, also if each push is a version, or workers keep copies.
func TestStatisticsUnderOtherSchemes(t *testing.T) {
	// whose workers push deltas, are answered from copies, dropped, weighed, kept apart or put in turn; all others average as asp
	for _, rule := range []string{"asp", "ssp, push: delta, cache: true, staleness: 2", "essp, staleness: 1", "drop, required: 3",
		"softsync, q: 1, weight: 4", "r2sp", "vap", "rennala", "ringleader"} {
		if stationtest.UnderRace && rule != "asp" {
			continue
		}
		t.Run(rule, func(t *testing.T) {
			c := resnetConfig(t, "train.optimizer={name: sgd, lr: 0.05}",
				fmt.Sprintf("train.stop={updates: %d}", 3*residualUpdates()), fmt.Sprintf(`sync=[{match: "*", scheme: %s}]`, rule))
			all := mustTrain(t, c, 6).Parameters
			low, high := math.Inf(1), 0.0
			for _, p := range paramsOfModel(t, c) {
				for _, v := range all[:p.N()] {
					if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
						t.Fatalf("%s has the value %g", p.Name, v)
					}
					if p.Stat && p.Start == 1 {
						low, high = min(low, float64(v)), max(high, math.Abs(float64(v)-1))
					}
				}
				all = all[p.N():]
			}
			if low <= 0 || high < 0.01 {
				t.Errorf("the least variance is %g, and none is further from 1 than %g", low, high)
			}
		})
	}
}
