package steps

import (
	"cmp"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
	"fluentps/kernels/cpu"
)

// fatal is what tests and rapid have in common.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// run is a run of n workers and one synchronous server: what all drivers and twins are told.
type run struct {
	spec      local.Spec
	outer     optim.Outer
	workers   int
	samples   []int64 // by worker: of each of its steps
	budget    int64
	rule      string
	device    bool // kernels take the steps
	momentum  float32
	decay     float32 // of the first parameter
	plan      *shard.Plan
	fragments *shard.Fragments // nil: all shards are due
	grads     func(worker int, step int64, own, grads []float32)
}

func (r *run) update() optim.Update {
	rule, err := optim.New(optim.Spec{Name: cmp.Or(r.rule, "momentum"), LR: 0.125, Momentum: float64(r.momentum),
		Beta1: 0.9, Beta2: 0.99, Epsilon: 1e-6})
	if err != nil {
		panic(err)
	}
	return optim.Update{Rule: rule, LR: 0.125, Sched: optim.Schedule{Name: "step", Every: 5, Factor: 0.5}}
}

// innerRuns are the runs of a piece; none for a statistic.
func (r *run) innerRuns(p *shard.Piece) (runs []optim.Run) {
	s := &r.plan.Shards[p.Shard]
	if s.Stat {
		return nil
	}
	for _, g := range s.Segs {
		q := optim.Run{Lo: max(p.Lo, g.At), Hi: min(p.Hi, g.At+g.Hi-g.Lo)}
		if g.Param == 0 {
			q.Decay = r.decay
		}
		if q.Lo < q.Hi {
			runs = append(runs, q)
		}
	}
	return runs
}

// smallPlan has two layers, a statistic, pieces of some elements, and several shards.
func smallPlan(t fatal, slice string) *shard.Plan {
	t.Helper()
	p, err := shard.Cut([]shard.Param{{Name: "fc1.weight", N: 7}, {Name: "fc1.mean", N: 3, Stat: true},
		{Name: "fc1.bias", N: 2}, {Name: "fc2.weight", Layer: 1, N: 5}},
		shard.Options{Slice: slice, MaxBytes: 12, Servers: 2, Rules: []string{"*"}})
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

// noise is a number in [-1, 1) that depends on its indices alone.
func noise(worker int, step int64, j int) float32 {
	seed := uint64(worker)<<40 ^ uint64(step)<<20 ^ uint64(j)
	for range 3 {
		seed = (seed ^ seed>>29) * 0xbf58476d1ce4e5b9
	}
	return float32(int64(seed)>>40) / (1 << 23)
}

// sums writes the gradients of a quadratic loss with noise, and the values of statistics, each summed over samples.
func (r *run) sums(worker int, step int64, own, grads []float32) {
	for j := range grads {
		x := noise(worker, step, j)
		if !r.isStat(j) {
			x += float32(0.25 * own[j])
		}
		grads[j] = float32(float32(r.samples[worker]) * x)
	}
}

func (r *run) shardOf(j int) int {
	for id := range r.plan.Shards {
		if s := &r.plan.Shards[id]; j >= s.Lo && j < s.Hi {
			return id
		}
	}
	panic(j)
}

func (r *run) isStat(j int) bool { return r.plan.Shards[r.shardOf(j)].Stat }

func (r *run) isDue(id int, exchange int64) bool {
	return r.fragments == nil || r.fragments.Due(int32(id), exchange)
}

// driver is a worker as the runtime and the simulator drive it.
type driver struct {
	r            *run
	me           int
	w            *Worker
	own, grads   []float32 // nil: it only counts
	global, push []float32
	granted      bool // the answers to the last push are there
	steps        int64
}

func newDriver(t fatal, r *run, me int, real bool) *driver {
	t.Helper()
	d := &driver{r: r, me: me, global: make([]float32, r.plan.Arena), push: make([]float32, r.plan.Arena)}
	layers := make([][]int32, 2)
	for i := range r.plan.Pieces {
		p := &r.plan.Pieces[i]
		layers[p.Layer] = append(layers[p.Layer], p.ID)
	}
	batch := int64(0)
	for _, s := range r.samples {
		batch += s
	}
	u := r.update()
	o := &Options{Spec: r.spec, Env: local.Env{Workers: r.workers, Rate: u.Rate}, Plan: r.plan, Layers: layers,
		Runs: r.innerRuns, Update: u, Batch: batch, Budget: r.budget, Fragments: r.fragments}
	switch {
	case real && r.device && FitsDevice(o):
		v, err := OnDevice(o, cpu.New(1), d.global, d.push)
		if err != nil {
			t.Fatalf("%v", err)
		}
		d.own, d.grads, o.Vectors = v.v[Own].Host, v.v[Grads].Host, v
	case real:
		d.own, d.grads = make([]float32, r.plan.Arena), make([]float32, r.plan.Arena)
		o.Vectors = OnHost(o, d.own, d.grads, d.global, d.push)
	}
	w, err := New(*o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	d.w = w
	return d
}

// land is the answer to the last push, and what it tells.
func (d *driver) land(answer []float32, exchange int64, p wire.Progress) {
	for id := range d.r.plan.Shards {
		if s := &d.r.plan.Shards[id]; exchange < 0 || d.r.isDue(id, exchange) {
			copy(d.global[s.Lo:s.Hi], answer[s.Lo:s.Hi])
		}
	}
	d.granted = true
	d.w.Granted(p)
}

// step takes a step.
func (d *driver) step() {
	w := d.w
	if d.own != nil {
		d.r.grads(d.me, w.Steps(), d.own, d.grads)
		w.Begin()
		for layer := range w.o.Layers {
			w.Move(layer, d.r.samples[d.me])
		}
	}
	w.Computed(Sums{Samples: d.r.samples[d.me], Correct: 1, Loss: 0.5})
	w.Ended()
	d.steps++
}

// exchange goes on until the worker has made its push of an exchange. answer is there after so many steps, and no
// later than the worker waits for it. It returns what the push reports.
func (d *driver) exchange(t fatal, exchange int64, answer []float32, after int64, p wire.Progress) Sums {
	t.Helper()
	d.granted = false
	from := d.steps
	for range 10_000 {
		if !d.granted && (d.steps-from >= after || !d.w.Runs()) {
			d.land(answer, exchange-1, p)
		}
		switch d.w.Next(d.granted) {
		case Await:
			if !d.granted {
				d.land(answer, exchange-1, p)
			} else if d.w.TakesNow() {
				d.w.Taken()
			} else {
				t.Fatalf("worker %d waits for answers that are there, at exchange %d", d.me, exchange)
			}
		case Step:
			d.step()
		case Push:
			sums := d.w.Pushes(exchange)
			if d.own != nil {
				for layer := range d.w.o.Layers {
					d.w.Make(layer, exchange)
				}
			}
			d.w.Pushed(exchange)
			return sums
		}
	}
	t.Fatalf("worker %d never pushes exchange %d", d.me, exchange)
	return Sums{}
}

// server commits the pushes of all workers, with the stores of real servers.
type server struct {
	r      *run
	stores []*optim.Store
	x      []float32
}

func newServer(t fatal, r *run) *server {
	t.Helper()
	u, err := optim.NewOuter(r.outer)
	if err != nil {
		t.Fatalf("%v", err)
	}
	s := &server{r: r}
	for id := range r.plan.Shards {
		sh, way := &r.plan.Shards[id], optim.Follow
		if sh.Stat {
			way = optim.Average
		}
		s.stores = append(s.stores, optim.NewStore(sh.Hi-sh.Lo, []optim.Run{{Hi: sh.Hi - sh.Lo}}, u, way))
	}
	for j := range r.plan.Arena {
		s.x = append(s.x, noise(99, 0, j))
	}
	return s
}

func (s *server) commit(exchange int64, pushes [][]float32, samples int64) {
	entry, _ := local.All.Lookup(s.r.spec.Policy)
	for id := range s.stores {
		sh := &s.r.plan.Shards[id]
		if !s.r.isDue(id, exchange) {
			continue
		}
		for _, p := range pushes {
			s.stores[id].Fold(0, p[sh.Lo:sh.Hi], 1, 1)
		}
		weight := 1 / float64(samples)
		switch {
		case sh.Stat, entry.Weigh == local.BySamples:
		case entry.Weigh == local.Equally:
			weight = 1 / float64(len(pushes))
		default:
			weight = 1
		}
		s.stores[id].Commit(s.x[sh.Lo:sh.Hi], s.x[sh.Lo:sh.Hi], 0, 1, weight)
	}
}

// drawRun draws a run of a policy.
func drawRun(t *rapid.T, policy string) *run {
	entry, _ := local.All.Lookup(policy)
	r := &run{spec: local.Defaults(), workers: rapid.IntRange(1, 3).Draw(t, "workers"),
		momentum: rapid.SampledFrom([]float32{0, 0.75}).Draw(t, "momentum"), decay: 0.0625,
		plan: smallPlan(t, rapid.SampledFrom([]string{"even", "layer", "slices"}).Draw(t, "slice")), outer: optim.Outer{Name: "sgd", LR: 1}}
	r.grads = r.sums
	r.device = rapid.Bool().Draw(t, "device")
	r.spec.Policy, r.spec.Steps = policy, rapid.Int64Range(1, 5).Draw(t, "steps")
	if rapid.Bool().Draw(t, "momentum of the servers") {
		r.outer = optim.Outer{Name: "nesterov", LR: 0.5, Momentum: 0.75}
	}
	for range r.workers {
		r.samples = append(r.samples, rapid.Int64Range(1, 6).Draw(t, "samples"))
	}
	if policy == "hpsgd" {
		r.spec.Compensate = rapid.SampledFrom([]float64{0, 0.04}).Draw(t, "compensate")
		r.spec.Steps *= rapid.Int64Range(0, 1).Draw(t, "fixed")
	}
	r.spec.Pull = rapid.SampledFrom([]float64{0.1, 0.3}).Draw(t, "pull")
	if entry.Fragments {
		r.spec.Fragments = rapid.Int64Range(1, int64(len(r.plan.Shards))).Draw(t, "fragments")
		r.spec.Delay = rapid.Int64Range(0, r.spec.Steps).Draw(t, "delay")
		r.spec.Keep = rapid.SampledFrom([]float64{0, 0.25}).Draw(t, "keep")
		r.spec.Steps *= r.spec.Fragments
		f, err := shard.NewFragments(r.plan, r.spec.Fragments)
		if err != nil {
			t.Fatal(err)
		}
		r.fragments = f
	}
	return r
}

var _ fatal = (*testing.T)(nil)
