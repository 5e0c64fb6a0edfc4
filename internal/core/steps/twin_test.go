package steps

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
)

// twinRun is a whole run once more, in plain loops over the elements of the arena: no pieces, no layers, no blocks,
// and each policy by itself.
type twinRun struct {
	r       *run
	x, m    []float32 // the servers' parameters and momentum
	workers []twinWorker
}

type twinWorker struct {
	own, base, m, push []float32
	step               int64
	since              []int64 // by shard: samples since its last push
}

func newTwinRun(r *run, x []float32) *twinRun {
	w := &twinRun{r: r, x: append([]float32(nil), x...), m: make([]float32, len(x))}
	for range r.workers {
		one := twinWorker{own: append([]float32(nil), x...), base: append([]float32(nil), x...), m: make([]float32, len(x)),
			push: make([]float32, len(x)), since: make([]int64, len(r.plan.Shards))}
		w.workers = append(w.workers, one)
	}
	return w
}

// train takes a step of a worker.
func (w *twinRun) train(i int) {
	one, r := &w.workers[i], w.r
	grads := make([]float32, len(one.own))
	r.grads(i, one.step, one.own, grads)
	samples := float32(r.samples[i])
	rate := float32(0.125 * math.Pow(0.5, float64(one.step/5)))
	for j := range one.own {
		if r.isStat(j) {
			one.own[j] = float32(1/samples) * grads[j]
			continue
		}
		decay := float32(0)
		if w.inFirstParameter(j) {
			decay = r.decay
		}
		g := float32(float32(1/samples)*grads[j]) + float32(decay*one.own[j])
		one.m[j] = float32(r.momentum*one.m[j]) + g
		one.own[j] -= float32(rate * one.m[j])
	}
	one.step++
	for id := range one.since {
		one.since[id] += r.samples[i]
	}
}

func (w *twinRun) inFirstParameter(j int) bool {
	at := w.r.plan.At[0]
	return j >= at && j < at+w.r.plan.Params[0].N
}

// change is what a worker pushes of one element where it says what has changed.
func (w *twinRun) change(i, j int, weight float32) {
	one := &w.workers[i]
	one.push[j] = float32(weight * float32(one.own[j]-one.base[j]))
	if w.r.isStat(j) {
		one.push[j] = float32(float32(one.since[w.r.shardOf(j)]) * one.own[j])
	}
}

// exchange takes all steps of an exchange, and commits it. after is by worker in how many steps the answer to its last push is there.
func (w *twinRun) exchange(exchange int64, after []int64) {
	r := w.r
	for i := range w.workers {
		switch r.spec.Policy {
		case "averaging":
			copy(w.workers[i].own, w.x)
			copy(w.workers[i].base, w.x)
			for range r.spec.Steps {
				w.train(i)
			}
			for j := range w.x {
				w.change(i, j, float32(w.workers[i].since[0]))
			}
		case "hpsgd":
			w.hpsgd(i, exchange, after[i])
		case "easgd":
			w.easgd(i)
		case "streaming_diloco":
			w.streaming(i, exchange)
		}
	}
	w.commit(exchange)
}

func (w *twinRun) hpsgd(i int, exchange, after int64) {
	r, one := w.r, &w.workers[i]
	steps := r.spec.Steps
	if steps == 0 {
		if steps = max(1, after); exchange == 0 {
			steps = 1
		}
	}
	for range steps {
		w.train(i)
	}
	for j := range w.x {
		w.change(i, j, 1)
		if exchange > 0 && !r.isStat(j) && r.spec.Compensate > 0 {
			rate := 0.125 * math.Pow(0.5, float64((one.step-1)/5))
			p := one.push[j]
			one.push[j] = p - float32(float32(float32(float32(r.spec.Compensate/rate)*p)*p)*float32(w.x[j]-one.base[j]))
		}
		if exchange > 0 { // else there is no answer, and it goes on from where it is
			one.own[j] = w.x[j]
		}
		one.base[j] = one.own[j]
	}
}

func (w *twinRun) easgd(i int) {
	one := &w.workers[i]
	for range w.r.spec.Steps {
		w.train(i)
	}
	for j := range w.x {
		if w.r.isStat(j) {
			w.change(i, j, 1)
			continue
		}
		one.push[j] = float32(float32(w.r.spec.Pull) * float32(one.own[j]-w.x[j]))
		one.own[j] -= one.push[j]
	}
}

func (w *twinRun) streaming(i int, exchange int64) {
	r, one := w.r, &w.workers[i]
	each := r.spec.Steps / r.spec.Fragments
	for k := range each + 1 {
		if k == r.spec.Delay && exchange > 0 {
			for j := range w.x {
				if r.isDue(r.shardOf(j), exchange-1) {
					one.base[j] = w.x[j]
					one.own[j] = w.x[j] + float32(float32(r.spec.Keep)*float32(one.own[j]-w.x[j]))
				}
			}
		}
		if k < each {
			w.train(i)
		}
	}
	for j := range w.x {
		w.change(i, j, float32(one.since[r.shardOf(j)]))
	}
}

func (w *twinRun) commit(exchange int64) {
	r := w.r
	samples := int64(0)
	for id := range r.plan.Shards {
		if !r.isDue(id, exchange) {
			continue
		}
		samples = 0
		for i := range w.workers {
			samples += w.workers[i].since[id]
			w.workers[i].since[id] = 0
		}
		weight := float32(1 / float64(samples))
		switch r.spec.Policy {
		case "hpsgd":
			weight = float32(1 / float64(r.workers))
		case "easgd":
			weight = 1
		}
		for j := r.plan.Shards[id].Lo; j < r.plan.Shards[id].Hi; j++ {
			sum := float32(0)
			for i := range w.workers {
				sum += w.workers[i].push[j]
			}
			switch {
			case r.isStat(j):
				w.x[j] = float32(1/float64(samples)) * sum
			case r.outer.Name == "sgd":
				w.x[j] += float32(weight * sum)
			default:
				g := float32(-weight * sum)
				w.m[j] = float32(float32(r.outer.Momentum)*w.m[j]) + g
				w.x[j] -= float32(float32(r.outer.LR) * (g + float32(float32(r.outer.Momentum)*w.m[j])))
			}
		}
	}
}

// A whole run of each kind of policy is, to the bit, what its dumb twin makes of it: the servers' parameters, those
// of every worker, and what it pushes. Workers have batches of their own, answers come after any number of steps, and
// some of the numbers are statistics.
func TestWholeRunsAreTheirDumbTwins(t *testing.T) {
	for _, policy := range []string{"averaging", "hpsgd", "easgd", "streaming_diloco"} {
		t.Run(policy, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := drawRun(t, policy)
				s := newServer(t, r)
				twin := newTwinRun(r, s.x)
				var workers []*driver
				for i := range r.workers {
					workers = append(workers, newDriver(t, r, i, true))
				}
				for exchange := range rapid.Int64Range(1, 7).Draw(t, "exchanges") {
					var pushes [][]float32
					var after []int64
					samples := int64(0)
					for _, d := range workers {
						after = append(after, rapid.Int64Range(0, 7).Draw(t, "after"))
						samples += d.exchange(t, exchange, s.x, after[len(after)-1], wire.Progress{Share: 1}).Samples
						pushes = append(pushes, d.push)
					}
					s.commit(exchange, pushes, samples)
					twin.exchange(exchange, after)
					for i, d := range workers {
						same(t, r, exchange, i, "parameters of its own", d.own, twin.workers[i].own)
						same(t, r, exchange, i, "push", d.push, twin.workers[i].push)
					}
					same(t, r, exchange, -1, "parameters", s.x, twin.x)
				}
			})
		})
	}
}

func same(t *rapid.T, r *run, exchange int64, worker int, what string, got, want []float32) {
	t.Helper()
	for j := range want {
		if sent := what != "push" || r.isDue(r.shardOf(j), exchange); sent && got[j] != want[j] {
			t.Fatalf("%+v, %d workers of %v samples, exchange %d, worker %d: element %d of its %s is %v, the twin's %v",
				r.spec, r.workers, r.samples, exchange, worker, j, what, got[j], want[j])
		}
	}
}
