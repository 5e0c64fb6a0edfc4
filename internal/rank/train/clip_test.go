package train_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/plan/layout"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/ps/workload/dataset"
)

// clipped trains on one machine in the plainest way: the gradient of each worker is clipped in float64, as clip_grad_norm_ does, and the
// step goes along their mean; or that mean is clipped. Each of workers stands for ranks ranks that compute. It returns how many were
// clipped.
func clipped(t *testing.T, c *configs.Config, workers, ranks, steps int) (flat []float32, times int) {
	t.Helper()
	set, err := cached(layout.DataSpec(c))
	if err != nil {
		t.Fatal(err)
	}
	batch := c.Train.BatchPerWorker
	m, err := workload.NewModel(c.ModelSpec(), set.Samples(), cpu.New(1), batch*ranks)
	if err != nil {
		t.Fatal(err)
	}
	params := configstest.Params(t, c.ModelSpec(), set.Samples())
	w, g, mean := make([][]float32, len(params)), make([][]float32, len(params)), make([][]float64, len(params))
	step := make([]func(w []float32, g []float64, by float64), len(params))
	for k, p := range params {
		w[k], g[k], mean[k], step[k] = make([]float32, p.N()), make([]float32, p.N()), make([]float64, p.N()), mover(c.Train.Optimizer, p)
		workload.Fill(w[k], c.Seed, p, 0)
	}
	m.Bind(w, g)
	samplers := make([]*dataset.Sampler, workers*ranks)
	for j := range samplers {
		rows, err := dataset.Partition(c.Data.Partition, set.Train.Rows(), len(samplers), j, c.Seed)
		if err != nil {
			t.Fatal(err)
		}
		samplers[j] = dataset.NewSampler(rows, batch, c.Seed, j)
	}
	b := workload.NewBatch(c.Model.Name, set.Samples(), batch*ranks)
	for i := range steps {
		for k := range mean {
			clear(mean[k])
		}
		for j := range workers {
			var rows []int32
			for _, s := range samplers[j*ranks : (j+1)*ranks] {
				rows = append(rows, s.Batch(int64(i), nil)...)
			}
			b.Take(set.Train, rows)
			m.Forward(b, nil)
			m.Backward(nil)
			var squares float64
			for k := range g {
				for _, x := range g[k] {
					x := float64(x) / float64(b.N)
					squares += x * x
				}
			}
			by := c.Train.Clip.Norm / (math.Sqrt(squares) + 1e-6)
			if c.Train.Clip.OfMean() {
				by = 1
			} else if by < 1 {
				times++
			}
			for k := range g {
				for e, x := range g[k] {
					mean[k][e] += min(1, by) * float64(x) / float64(b.N) / float64(workers)
				}
			}
		}
		by := 1.0
		if c.Train.Clip.OfMean() {
			var squares float64
			for k := range mean {
				for _, x := range mean[k] {
					squares += x * x
				}
			}
			if by = min(1, c.Train.Clip.Norm/(math.Sqrt(squares)+1e-6)); by < 1 {
				times++
			}
		}
		for k := range w {
			step[k](w[k], mean[k], by)
		}
	}
	for _, v := range w {
		flat = append(flat, v...)
	}
	return flat, times
}

// mover takes the steps of a tensor along by * g, which it may overwrite: of muon by its definition in float64, without Nesterov and decay.
func mover(o configs.Optimizer, p workload.Param) func(w []float32, g []float64, by float64) {
	if o.Name != "muon" || len(p.Shape) != 2 {
		if o.Name == "muon" {
			o.LR, o.Beta1, o.Beta2, o.Epsilon = o.Others.LR, o.Others.Beta1, o.Others.Beta2, o.Others.Epsilon
		}
		step := stepper(o, p.N())
		return func(w []float32, g []float64, by float64) {
			for e := range w {
				w[e] -= float32(o.LR * step(e, by*g[e]))
			}
		}
	}
	rows, cols := p.Shape[0], p.Shape[1]
	m := make([]float64, p.N())
	lr := o.LR * math.Sqrt(max(1, float64(rows)/float64(cols)))
	return func(w []float32, g []float64, by float64) {
		for e := range m {
			m[e] = o.Momentum*m[e] + (1-o.Momentum)*by*g[e]
		}
		for e, v := range orthogonalized(m, rows, cols) {
			w[e] -= float32(lr * v)
		}
	}
}

// orthogonalized is five iterations of Newton-Schulz: x becomes a*x + b*(x x')x + c*(x x')(x x')x.
func orthogonalized(m []float64, rows, cols int) []float64 {
	var squares float64
	for _, v := range m {
		squares += v * v
	}
	x := make([]float64, len(m))
	for e, v := range m {
		x[e] = v / (math.Sqrt(squares) + 1e-7)
	}
	cubed := func(x, y []float64) []float64 { // (x x')y
		gram, out := make([]float64, rows*rows), make([]float64, len(x))
		for e := range gram {
			for k := range cols {
				gram[e] += x[e/rows*cols+k] * x[e%rows*cols+k]
			}
		}
		for e := range out {
			for k := range rows {
				out[e] += gram[e/cols*rows+k] * y[k*cols+e%cols]
			}
		}
		return out
	}
	for range 5 {
		third := cubed(x, x)
		fifth := cubed(x, third)
		for e := range x {
			x[e] = 3.4445*x[e] - 4.7750*third[e] + 2.0315*fifth[e]
		}
	}
	return x
}

// Each worker clips its own gradient, and the step goes along the mean of what is left: within float tolerance a run is the plain loop,
// however the parameters travel. Where the ranks of a host are one worker, that worker's gradient is clipped. Some gradients are
// clipped and some are not, and the run counts them.
func TestClippedRunsArePlainOnes(t *testing.T) {
	adam := "train.optimizer={name: adam, lr: 0.01, epsilon: 1e-4}"
	for name, c := range map[string]struct {
		hosts string
		ranks int // of a worker
		set   []string
	}{
		"2 servers": {"abcdef", 1, []string{"cluster.servers=2", "shards.max_bytes=128B"}},
		"3 servers": {"abcdefg", 1, []string{"cluster.servers=3", adam, "shards={slice: layer}"}},
		"one host":  {"aaaaaa", 1, []string{"cluster.servers=2"}},
		"colocate":  {"aabb", 1, []string{"cluster={servers: 4, placement: colocate}"}},
		"priority": {"abcdef", 1, []string{"cluster.servers=2", "shards={slice: layer, max_bytes: 128B}",
			"send={order: priority, window: 256B}"}},
		"deltas":         {"abcdef", 1, []string{"cluster.servers=2", `sync=[{match: "*", scheme: bsp, push: delta}]`}},
		"pslite":         {"abcdef", 1, []string{"cluster.servers=2", "baseline=pslite"}},
		"whole by steps": {"abcdef", 1, []string{"cluster.servers=2", "work={policy: dropcompute, time: 1h, micro: 3}"}},
		"one by one": {"abcdef", 1, []string{"cluster.servers=2", "local={policy: averaging, steps: 1}",
			"train.optimizer={name: sgd, lr: 0.1}"}},
		"teams": {"aaabbb", 2, []string{"cluster={servers: 2, hierarchy: node}"}},
		"teams, deltas": {"aaabbb", 2, []string{"cluster={servers: 2, hierarchy: node}",
			`sync=[{match: "*", scheme: bsp, push: delta}]`, "shards={slice: layer, max_bytes: 128B}"}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, append([]string{"model={name: mlp, layers: [16, 12]}", "train.stop.updates=30", "train.clip.norm=1.5"}, c.set...)...)
			workers := 4 / c.ranks
			got := trainOn(t, c.hosts, cfg)
			want, times := clipped(t, cfg, workers, c.ranks, 30)
			atMost(t, got.Parameters, want, 1e-5)
			if times < 20 || times > workers*30-10 {
				t.Errorf("%d of %d gradients are clipped: the norm is badly chosen", times, workers*30)
			}
			var counted, of int64
			for _, w := range got.Workers {
				counted, of = counted+w.Clipped, of+w.Gradients
			}
			if counted != int64(times) || of != int64(workers*30) {
				t.Errorf("the run counts %d of %d clipped gradients, want %d of %d", counted, of, times, workers*30)
			}
			without := trainOn(t, c.hosts, load(t, append([]string{"model={name: mlp, layers: [16, 12]}", "train.stop.updates=30"}, c.set...)...))
			if d := relative(without.Parameters, want); d < 1e-3 {
				t.Errorf("without clipping a run ends only %.3g away", d)
			}
		})
	}
}

// A step of muon is as long as it is, but its direction depends on how the gradients of workers and iterations are weighed: where these
// are clipped, or their means, a run is the plain loop in float64.
func TestMuonMovesAlongClippedGradients(t *testing.T) {
	const steps = 12
	set := []string{"cluster.servers=2", "model={name: mlp, layers: [16, 12]}", fmt.Sprintf("train.stop.updates=%d", steps),
		"train.optimizer={name: muon, lr: 0.02, momentum: 0.9, nesterov: false, others: {lr: 0.01, epsilon: 1e-4}}", "shards.slice=layer"}
	for name, c := range map[string]struct {
		of   int // gradients or means that could be clipped
		more []string
	}{
		"each worker's": {4 * steps, []string{"train.clip.norm=2.2"}},
		"the mean":      {steps, []string{"train.clip={norm: 2, of: mean}", `sync=[{match: "*", scheme: drop, contributors: step}]`}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, append(c.more, set...)...)
			want, times := clipped(t, cfg, 4, 1, steps)
			atMost(t, mustTrain(t, cfg, 6).Parameters, want, 1e-5)
			cfg.Train.Clip.Norm = 1e9
			without, _ := clipped(t, cfg, 4, 1, steps)
			if d := relative(without, want); times < 3 || times > c.of-3 || d < 1e-3 {
				t.Errorf("%d of %d are clipped, and without clipping the plain loop ends %.3g away: the norm is badly chosen", times, c.of, d)
			}
		})
	}
}

// The mean of an iteration is clipped by its norm over all servers, whatever parts of the model these have.
func TestClippedMeansArePlainOnes(t *testing.T) {
	for name, c := range map[string]struct {
		hosts string
		set   []string
	}{
		"1 server":  {"abcde", []string{"cluster.servers=1"}},
		"2 servers": {"abcdef", []string{"cluster.servers=2", "shards.max_bytes=128B"}},
		"by layer": {"abcdefg", []string{"cluster.servers=3", "train.optimizer={name: adam, lr: 0.01, epsilon: 1e-4}",
			"shards={slice: layer, max_bytes: 128B}", "send={order: priority, window: 256B}"}},
		"slices":   {"abcdef", []string{"cluster.servers=2", "shards={slice: slices, max_bytes: 128B}"}},
		"one host": {"aaaaaa", []string{"cluster.servers=2"}},
		"colocate": {"aabb", []string{"cluster={servers: 4, placement: colocate}", "shards.slice=layer"}},
		"all wait": {"aaaaaa", []string{"cluster.servers=2", `sync=[{match: "*", scheme: drop, contributors: step, required: 4}]`}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, append([]string{"model={name: mlp, layers: [16, 12]}", "train.stop.updates=30", "train.clip={norm: 1.4, of: mean}",
				`sync=[{match: "*", scheme: drop, contributors: step}]`}, c.set...)...)
			got := trainOn(t, c.hosts, cfg)
			want, times := clipped(t, cfg, 4, 1, 30)
			atMost(t, got.Parameters, want, 1e-5)
			if times < 5 || times > 25 {
				t.Errorf("%d of 30 means are clipped: the norm is badly chosen", times)
			}
			var counted, of int64
			for _, s := range got.Servers {
				counted, of = counted+s.Clipped.Clipped, of+s.Clipped.Of
			}
			if counted != int64(times) || of != 30 {
				t.Errorf("the run counts %d of %d clipped means, want %d of 30", counted, of, times)
			}
		})
	}
}

// Where devices have memory of their own, gradients are clipped with the bits of the host, also if MPI reaches that memory, and if workers
// take steps there.
func TestClippingOnDevices(t *testing.T) {
	for name, set := range map[string][]string{
		"pushes":    {"cluster.servers=2"},
		"own steps": {"local={policy: averaging, steps: 3}", "train.optimizer={name: adam, lr: 0.01}"},
	} {
		set = append([]string{"model={name: mlp, layers: [16, 12]}", "train.clip.norm=0.4"}, set...)
		want := mustTrain(t, load(t, set...), 6)
		for _, reached := range []bool{false, true} {
			if got, _ := trainDistant(t, "", 1, reached, set...); got.SHA256() != want.SHA256() {
				t.Errorf("%s, reached %v: parameters %.12s, on the host %.12s", name, reached, got.SHA256(), want.SHA256())
			}
		}
	}
}

// Where several workers compute a batch, each clips its gradient alike: so an iteration has the gradient of bsp, whoever computed it.
func TestCopiesAreClippedAlike(t *testing.T) {
	set := []string{"cluster={servers: 2}", "model={name: mlp, layers: [6]}", "shards.slice=layer", "train.stop={updates: 12}", withoutMemory,
		"train.clip.norm=0.8"}
	plain := mustTrain(t, load(t, set...), 6)
	for work, limit := range map[string]float64{
		"{policy: partial, load: 3, micro: 8}":                                     0,
		"{policy: partial, load: 2, micro: 2}":                                     1e-5,
		"{policy: coded, micro: 4, code: {stragglers: 1}}":                         1e-5,
		"{policy: coded, micro: 4, code: {kind: cyclic, stragglers: 2}}":           1e-3,
		"{policy: coded, micro: 8, code: {stragglers: 1, deadline: 1h, alpha: 0}}": 1e-5,
	} {
		scheme := "drop"
		if strings.Contains(work, "coded") {
			scheme = "coded"
		}
		got := mustTrain(t, load(t, append(set, "work="+work, "sync=[{match: '*', scheme: "+scheme+"}]",
			"faults=[{worker: 1, slow: {sleep: 3ms}}]")...), 6)
		if d := distance(plain.Parameters, got.Parameters); d > limit {
			t.Errorf("%s: a parameter is off by %g, want at most %g", work, d, limit)
		}
	}
}
