package steps

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
)

// resumed is the worker that a checkpoint of d makes: what Save returned went through JSON, and the vectors were copied. forgets says that
// what was not pushed is dropped.
func (d *driver) resumed(t fatal, forgets bool) *driver {
	t.Helper()
	count, steps, vectors := d.w.Save()
	again := newDriver(t, d.r, d.me, true)
	text, err := json.Marshal(count)
	if err != nil {
		t.Fatalf("%v", err)
	}
	var back Count
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatalf("%v", err)
	}
	if forgets {
		back.Forget()
	}
	_, _, into := again.w.Save()
	if len(into) != len(vectors) {
		t.Fatalf("a worker saves %d vectors, and a new one has %d", len(vectors), len(into))
	}
	if err := again.w.Resume(&back, steps); err != nil {
		t.Fatalf("%+v cannot be resumed: %v", back, err)
	}
	for i := range vectors {
		copy(into[i], vectors[i])
	}
	again.w.Restored()
	again.steps = d.steps
	copy(again.global, d.global)
	return again
}

// ledger follows the samples of one worker. Step k has 1 << k of them, so a sum of samples says which steps are in it.
type ledger struct {
	computed         int64
	reported         []int64 // by fragment: in pushes
	dropped          []int64 // by fragment
	counted, without int64   // by the worker itself: counted, and dropped
}

// drops notes that what was not pushed is dropped.
func (l *ledger) drops(c *Count) {
	for f := range l.dropped {
		l.dropped[f] += c.Since[f].Samples
	}
	l.without += c.Samples
}

func (l *ledger) check(t fatal, d *driver) {
	t.Helper()
	for f, reported := range l.reported {
		pending, dropped := d.w.count.Since[f].Samples, l.dropped[f]
		if reported&pending != 0 || reported&dropped != 0 || pending&dropped != 0 || reported|pending|dropped != l.computed {
			t.Fatalf("%+v, fragment %d: of the steps %b pushes report %b, %b are to be pushed, and %b were dropped", d.r.spec,
				f, l.computed, reported, pending, dropped)
		}
	}
	if l.counted+d.w.count.Samples+l.without != l.computed {
		t.Fatalf("%+v: of the steps %b the worker has counted %b, is to count %b, and %b were dropped", d.r.spec,
			l.computed, l.counted, d.w.count.Samples, l.without)
	}
}

// Each sample that a step computed is reported by exactly one push of each fragment, and counted once by the worker,
// wherever a run is saved and resumes, whoever leaves, and however late answers are. What a run of other workers
// forgets, and what a worker that leaves drops, is in none.
func TestEachSampleIsReportedOnce(t *testing.T) {
	for _, policy := range local.All.Names()[1:] {
		t.Run(policy, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := drawRun(t, policy)
				d := newDriver(t, r, 0, true)
				l := ledger{reported: make([]int64, len(d.w.count.Since)), dropped: make([]int64, len(d.w.count.Since))}
				answer := make([]float32, r.plan.Arena)
				exchange, landed := int64(0), int64(-1)
				for range rapid.IntRange(1, 120).Draw(t, "events") {
					if d.steps >= 50 {
						return
					}
					boundary := !d.w.open // where no steps run ahead of answers, a checkpoint has whole rounds only
					switch rapid.IntRange(0, 12).Draw(t, "what") {
					case 0:
						if d.w.Runs() || boundary {
							d = d.resumed(t, false)
							d.granted = false
						}
					case 1:
						if d.w.Runs() || boundary {
							l.drops(&d.w.count)
							d = d.resumed(t, true)
							d.granted = false
						}
					case 2:
						l.drops(&d.w.count)
						d.w.Leave()
						d.granted = false
					case 3, 4, 5:
						if !d.granted {
							d.land(answer, exchange-1, wire.Progress{Loss: 1, Share: rapid.Float64Range(0.01, 1).Draw(t, "share")})
							landed = exchange
						}
					default:
						switch d.w.Next(d.granted) {
						case Await:
							if d.granted && !d.w.TakesNow() {
								t.Fatalf("%+v waits for answers that are there", r.spec)
							} else if d.granted {
								d.w.Taken()
							}
						case Step:
							r.samples[0] = 1 << d.steps
							d.step()
							l.computed |= r.samples[0]
						case Push:
							if landed != exchange {
								t.Fatalf("%+v pushes exchange %d before it has the answers to the last one", r.spec, exchange)
							}
							of := d.w.fragmentOf(exchange)
							for layer := range d.w.o.Layers {
								d.w.Make(layer, exchange)
							}
							sums := d.w.Pushes(exchange)
							if n := int64(ones(sums.Samples)); n == 0 || sums.Correct != n || sums.Loss != float64(n)/2 {
								t.Fatalf("%+v: exchange %d reports the steps %b as %d steps, loss %v", r.spec, exchange, sums.Samples, sums.Correct, sums.Loss)
							}
							l.reported[of] += sums.Samples
							l.counted += d.w.Pushed(exchange)
							exchange++
							d.granted = false
						}
					}
					l.check(t, d)
				}
			})
		})
	}
}

func ones(x int64) (n int) {
	for ; x > 0; x &= x - 1 {
		n++
	}
	return n
}

// A run that is saved and resumes anywhere ends as one that does not: to the bit, with the same rounds.
func TestARunThatResumesAnywhereIsTheSame(t *testing.T) {
	for _, policy := range local.All.Names()[1:] {
		t.Run(policy, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := drawRun(t, policy)
				r.workers, r.samples = 1, r.samples[:1]
				r.rule = rapid.SampledFrom([]string{"momentum", "adam"}).Draw(t, "rule")
				if policy == "averaging" && rapid.Bool().Draw(t, "adacomm") {
					r.spec.Period = local.Period{Name: "adacomm", Interval: 1}
				}
				a, b := newDriver(t, r, 0, true), newDriver(t, r, 0, true)
				s := newServer(t, r)
				for exchange := range rapid.Int64Range(1, 6).Draw(t, "exchanges") {
					after := rapid.Int64Range(0, 6).Draw(t, "after")
					p := wire.Progress{Loss: rapid.SampledFrom([]float64{2, 1, 0.5}).Draw(t, "loss"), Share: 1}
					want := a.exchange(t, exchange, s.x, after, p)
					from := b.steps
					got, pushed := Sums{}, false
					granted := false
					for !pushed {
						if rapid.IntRange(0, 3).Draw(t, "resumes") == 0 && (b.w.Runs() || !b.w.open) {
							b = b.resumed(t, false)
							if granted {
								b.land(s.x, exchange-1, p)
							}
						}
						if !granted && (b.steps-from >= after || !b.w.Runs()) {
							granted = true
							b.land(s.x, exchange-1, p)
						}
						switch b.w.Next(granted) {
						case Await:
							if !granted {
								granted = true
								b.land(s.x, exchange-1, p)
							} else {
								b.w.Taken()
							}
						case Step:
							b.step()
						case Push:
							got, pushed = b.w.Pushes(exchange), true
							for layer := range b.w.o.Layers {
								b.w.Make(layer, exchange)
							}
							b.w.Pushed(exchange)
						}
					}
					if got != want || a.steps != b.steps || !slices.Equal(a.push, b.push) || !slices.Equal(a.own, b.own) {
						t.Fatalf("%+v, exchange %d: %+v after %d steps, without a resume %+v after %d", r.spec, exchange, got, b.steps, want, a.steps)
					}
					s.commit(exchange, [][]float32{a.push}, want.Samples)
				}
			})
		})
	}
}

// A worker that only counts, as in a simulation without gradients, decides as one that computes.
func TestAWorkerWithoutMemoryDecidesAlike(t *testing.T) {
	for _, policy := range local.All.Names()[1:] {
		rapid.Check(t, func(t *rapid.T) {
			r := drawRun(t, policy)
			r.budget = rapid.Int64Range(0, 200).Draw(t, "budget")
			a, b := newDriver(t, r, 0, true), newDriver(t, r, 0, false)
			x := make([]float32, r.plan.Arena)
			samples := int64(0)
			for exchange := range int64(6) {
				after, p := rapid.Int64Range(0, 6).Draw(t, "after"), wire.Progress{Samples: samples, Loss: 1, Share: 0.5}
				want, got := a.exchange(t, exchange, x, after, p), b.exchange(t, exchange, x, after, p)
				if got != want || a.steps != b.steps {
					t.Fatalf("%+v, exchange %d: %+v, with memory %+v", r.spec, exchange, got, want)
				}
				samples += want.Samples * int64(r.workers)
			}
		})
	}
}

// Budgets count samples, and the last round is cut short: workers in step take as many steps as the budget has
// batches, and no more, though a worker that runs ahead knows only what the servers had before. What is in flight
// counts.
func TestTheLastRoundIsCutShort(t *testing.T) {
	for _, policy := range local.All.Names()[1:] {
		rapid.Check(t, func(t *rapid.T) {
			r := drawRun(t, policy)
			r.spec.Switch, r.spec.Dynamic = rapid.Int64Range(1, 9).Draw(t, "switch"), false
			if policy == "hpsgd" {
				r.spec.Steps = max(1, r.spec.Steps) // else nobody knows how long a round is
			}
			batch := int64(0)
			for _, s := range r.samples {
				batch += s
			}
			r.budget = rapid.Int64Range(1, 30*batch).Draw(t, "budget")
			var workers []*driver
			for i := range r.workers {
				workers = append(workers, newDriver(t, r, i, false))
			}
			want := (r.budget + batch - 1) / batch
			lead := int64(0) // samples in the newest version of the lead shard
			for exchange := int64(0); workers[0].steps < want; exchange++ {
				pushed, before, round := int64(0), workers[0].steps, r.spec.Constant()
				if policy == "post_local" {
					if round = r.spec.Steps; before < r.spec.Switch {
						round = 1
					}
				}
				for _, d := range workers {
					pushed += d.exchange(t, exchange, make([]float32, r.plan.Arena), rapid.Int64Range(0, 6).Draw(t, "after"),
						wire.Progress{Samples: lead, Share: 1}).Samples
				}
				if r.isDue(0, exchange) {
					lead += pushed
				}
				if got := workers[0].steps - before; got != min(round, want-before) {
					t.Fatalf("%+v: round %d has %d steps after %d, for a budget of %d samples, %d a step", r.spec, exchange, got, before, r.budget, batch)
				}
			}
		})
	}
}

// HPSGD's invariants (Zhou et al., arXiv 2009.02701 [A], corrected): each gradient is counted once, in exactly one
// push. The servers have the sum of the pushes and nothing else, so no progress of a worker leaks, and after a merge
// every worker is where they are. A gradient is applied at most one merge late.
func TestHPSGDCountsEachGradientOnce(t *testing.T) {
	const steps = 40
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "workers") // 1/n is exact
		plan, err := shard.Cut([]shard.Param{{Name: "fc1.weight", N: n * steps}},
			shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 2, Rules: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		r := &run{spec: local.Defaults(), outer: optim.Outer{Name: "sgd", LR: 1}, workers: n, samples: slices.Repeat([]int64{1}, n), plan: plan}
		r.spec.Policy, r.spec.Steps = "hpsgd", rapid.Int64Range(0, 4).Draw(t, "steps")
		rate := r.update()
		r.grads = func(worker int, step int64, _, grads []float32) { // one element for each gradient, which moves it by 1
			clear(grads)
			grads[int64(worker)*steps+step] = float32(-1 / rate.Rate(float64(step)))
		}
		s := newServer(t, r)
		clear(s.x)
		var workers []*driver
		for i := range n {
			workers = append(workers, newDriver(t, r, i, true))
		}
		in := make([]int64, n*steps) // by gradient: the exchange that it is in, from 1
		for exchange := range int64(6) {
			before := slices.Clone(s.x)
			var pushes [][]float32
			for i, d := range workers {
				from := d.steps
				d.exchange(t, exchange, s.x, rapid.Int64Range(0, 5).Draw(t, "after"), wire.Progress{Share: 1})
				pushes = append(pushes, d.push)
				for g, x := range d.push {
					switch mine := int64(g) >= int64(i)*steps+from && int64(g) < int64(i)*steps+d.steps; {
					case x == 0 && !mine:
					case x != 1 || !mine || in[g] != 0:
						t.Fatalf("push %d of worker %d has gradient %d %v times; it took the steps %d to %d, and the gradient was in "+
							"push %d", exchange, i, g, x, from, d.steps, in[g]-1)
					default:
						in[g] = exchange + 1
					}
				}
				if exchange > 0 && !slices.Equal(d.own, before) {
					t.Fatalf("after its merge in exchange %d worker %d is not where the servers are", exchange, i)
				}
			}
			s.commit(exchange, pushes, 1)
			for g, x := range s.x {
				if counted := in[g] > 0; counted != (x == 1/float32(n)) || !counted && x != 0 {
					t.Fatalf("after exchange %d gradient %d, of push %d, is in the parameters %v times", exchange, g, in[g]-1, x*float32(n))
				}
			}
		}
	})
}

func TestCountsThatCannotBeAreRefused(t *testing.T) {
	r := &run{spec: local.Defaults(), workers: 2, samples: []int64{1, 1}, plan: smallPlan(t, "even")}
	r.spec.Policy, r.spec.Steps = "averaging", 3
	ok := func() *Count { return &Count{Step: 7, Pushed: 6, Last: 1, Since: make([]Sums, 1)} }
	if err := newDriver(t, r, 0, true).w.Resume(ok(), 7); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(c *Count){
		"other fragments":     func(c *Count) { c.Since = make([]Sums, 2) },
		"a negative step":     func(c *Count) { c.Step, c.Pushed = -1, -1 },
		"steps of the future": func(c *Count) { c.Pushed = 8 },
		"negative steps done": func(c *Count) { c.Done = -1 },
		"a negative round":    func(c *Count) { c.Round = -1 },
		"too far ahead":       func(c *Count) { c.Round, c.Ahead = 3, 4 },
		"a memory":            func(c *Count) { c.Policy = []float64{1} },
	} {
		c := ok()
		change(c)
		if err := newDriver(t, r, 0, true).w.Resume(c, 7); err == nil || !strings.Contains(err.Error(), ": ") {
			t.Errorf("%s: %+v was resumed: %v", name, c, err)
		}
	}
	r.spec.Policy = "averging"
	if _, err := New(Options{Spec: r.spec, Env: local.Env{Workers: 1}, Plan: r.plan}); err == nil {
		t.Error("an unknown policy makes a worker")
	}
}
