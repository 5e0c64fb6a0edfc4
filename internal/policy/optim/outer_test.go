package optim

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// outerTwin applies what workers changed with plain loops in float64, one exchange after the other. d is the mean
// change with the sign of a gradient.
type outerTwin struct {
	o       Outer
	x       []float64
	u, acc  []float64 // momentum, and what delayed_nesterov collects
	commits int64
}

func (w *outerTwin) step(d []float64, gamma float64) {
	t := w.commits
	w.commits++
	n, beta, c := float64(w.o.Every), w.o.Momentum, w.o.Between
	for i := range w.x {
		switch w.o.Name {
		case "sgd": // averaging, where lr is 1
			w.x[i] -= w.o.LR * d[i]
		case "momentum": // Chen and Huo: change = momentum * change + lr * (mean - before)
			w.u[i] = beta*w.u[i] + d[i]
			w.x[i] -= w.o.LR * w.u[i]
		case "nesterov": // torch.optim.SGD(nesterov=True), as DiLoCo has it
			w.u[i] = beta*w.u[i] + d[i]
			w.x[i] -= w.o.LR * (d[i] + beta*w.u[i])
		case "slowmo": // Wang et al., Algorithm 1
			w.u[i] = beta*w.u[i] + d[i]/gamma
			w.x[i] -= w.o.LR * gamma * w.u[i]
		case "delayed_nesterov": // Liu et al., Algorithm 3; HALoS
			w.acc[i] += d[i]
			if (t+1)%w.o.Every == 0 {
				w.u[i] = beta*w.u[i] + w.acc[i]/n
				w.x[i] -= w.o.LR * ((1-c*n+c)*beta*w.u[i] + d[i]/n)
				w.acc[i] = 0
			} else {
				w.x[i] -= w.o.LR * (c*beta*w.u[i] + d[i]/n)
			}
		}
	}
}

// outerRun is a server whose workers take steps of their own, and its twin.
type outerRun struct {
	store *Store
	x     []float32
	twin  outerTwin
}

func newOuterRun(t *rapid.T, n int, o Outer) *outerRun {
	u, err := NewOuter(o)
	if err != nil {
		t.Fatal(err)
	}
	r := &outerRun{store: NewStore(n, []Run{{Hi: n}}, u, Follow), x: drawVector(t, n, "x"),
		twin: outerTwin{o: o, u: make([]float64, n), acc: make([]float64, n)}}
	for _, x := range r.x {
		r.twin.x = append(r.twin.x, float64(x))
	}
	return r
}

// exchange commits the changes of workers, of which each counts samples.
func (r *outerRun) exchange(changes [][]float32, samples []int64, step, gamma float64) {
	sum := int64(0)
	mean := make([]float64, len(r.x))
	for w, change := range changes {
		push := make([]float32, len(change))
		Scaled(push, change, float32(samples[w]))
		r.store.Fold(0, push, 1, 1)
		sum += samples[w]
		for i := range change {
			mean[i] -= float64(change[i]) * float64(samples[w])
		}
	}
	for i := range mean {
		mean[i] /= float64(sum)
	}
	r.store.After(step)
	next := make([]float32, len(r.x))
	r.store.Commit(next, r.x, 0, 1, 1/float64(sum))
	r.x = next
	r.twin.step(mean, gamma)
}

func (r *outerRun) compare(t *rapid.T, what string, of []float64) {
	t.Helper()
	for i, x := range r.x {
		if d := math.Abs(float64(x) - of[i]); !(d <= 3e-5*(1+math.Abs(of[i]))) {
			t.Fatalf("%s of %+v: element %d is %v, its twin %v", what, r.twin.o, i, x, of[i])
		}
	}
}

// rates changes with every exchange, as under a schedule.
func rates(step float64) float64 { return 0.4 / (1 + step/3) }

// Each rule of the servers is its paper's, exchange by exchange: SlowMo while the workers' rate changes, delayed
// Nesterov with a share of the momentum between, and the momentum rules of torch.optim.SGD.
func TestOuterRulesAreTheirDumbTwins(t *testing.T) {
	for _, name := range []string{"sgd", "momentum", "nesterov", "slowmo", "delayed_nesterov"} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				o := Outer{Name: name, LR: rapid.Float64Range(0.05, 1).Draw(t, "lr"),
					Momentum: rapid.Float64Range(0, 0.9).Draw(t, "momentum"), Every: rapid.Int64Range(1, 4).Draw(t, "every"),
					Between: rapid.Float64Range(0, 0.3).Draw(t, "between"), Inner: rates}
				if name == "sgd" {
					o.Momentum = 0
				}
				n := rapid.IntRange(1, 5).Draw(t, "n")
				r := newOuterRun(t, n, o)
				for k := range rapid.IntRange(1, 12).Draw(t, "exchanges") {
					workers := rapid.IntRange(1, 3).Draw(t, "workers")
					var changes [][]float32
					var samples []int64
					for range workers {
						changes, samples = append(changes, drawVector(t, n, "change")), append(samples, rapid.Int64Range(1, 9).Draw(t, "samples"))
					}
					r.exchange(changes, samples, float64(4*k), rates(float64(4*k)))
					r.compare(t, "the rule", r.twin.x)
				}
			})
		})
	}
}

// SlowMo with alpha 1 and no momentum is averaging, and at a constant rate it is BMUF's block momentum, whatever the
// rate is (Wang et al., section 3 [Q]).
func TestSpecialCasesOfSlowMo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, gamma := rapid.IntRange(1, 4).Draw(t, "n"), rapid.SampledFrom([]float64{1e-3, 0.1, 3}).Draw(t, "gamma")
		beta, alpha := rapid.SampledFrom([]float64{0, 0.5, 0.8}).Draw(t, "beta"), rapid.SampledFrom([]float64{0.5, 1}).Draw(t, "alpha")
		r := newOuterRun(t, n, Outer{Name: "slowmo", LR: alpha, Momentum: beta, Inner: func(float64) float64 { return gamma }})
		block, mean := slices.Clone(r.twin.x), slices.Clone(r.twin.x)
		moved := make([]float64, n)
		for k := range 8 {
			changes := [][]float32{drawVector(t, n, "change"), drawVector(t, n, "change")}
			r.exchange(changes, []int64{1, 1}, float64(k), gamma)
			for i := range block {
				g := (float64(changes[0][i]) + float64(changes[1][i])) / 2
				moved[i] = beta*moved[i] + alpha*g
				block[i] += moved[i]
				mean[i] += g
			}
		}
		r.compare(t, "BMUF", block)
		if alpha == 1 && beta == 0 {
			r.compare(t, "averaging", mean)
		}
	})
}

// Delayed Nesterov with N = 1 and c = 0 is the Nesterov momentum of DiLoCo, and with no momentum each push counts
// 1/N. By hand: three pushes of 1 with N = 2, beta 0.5, c 0.25 and the rate 1.
func TestSpecialCasesOfDelayedNesterov(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 4).Draw(t, "n")
		beta, every := rapid.SampledFrom([]float64{0, 0.9}).Draw(t, "beta"), rapid.Int64Range(1, 3).Draw(t, "every")
		r := newOuterRun(t, n, Outer{Name: "delayed_nesterov", LR: 0.7, Momentum: beta, Every: every})
		other := outerTwin{o: Outer{Name: "nesterov", LR: 0.7, Momentum: beta}, x: slices.Clone(r.twin.x), u: make([]float64, n)}
		if beta == 0 {
			other.o = Outer{Name: "sgd", LR: 0.7 / float64(every)}
		}
		for k := range 6 {
			change := drawVector(t, n, "change")
			r.exchange([][]float32{change}, []int64{3}, float64(k), 1)
			d := make([]float64, n)
			for i := range d {
				d[i] = -float64(change[i])
			}
			other.step(d, 1)
		}
		if beta == 0 || every == 1 {
			r.compare(t, other.o.Name, other.x)
		}
	})
	u, err := NewOuter(Outer{Name: "delayed_nesterov", LR: 1, Momentum: 0.5, Every: 2, Between: 0.25})
	if err != nil {
		t.Fatal(err)
	}
	s, x := NewStore(1, []Run{{Hi: 1}}, u, Follow), []float32{0}
	for k, want := range []float32{-0.5, -1.375, -2} { // m 0; m 1, and (1 - 0.5 + 0.25) * 0.5 * 1 + 0.5; 0.25 * 0.5 * 1 + 0.5
		s.Fold(0, []float32{-1}, 0, 1)
		s.Commit(x, x, 0, 1, 1)
		if x[0] != want {
			t.Errorf("push %d: %v, want %v", k+1, x[0], want)
		}
	}
}

// At a learning rate of 0 nothing that workers push counts, and the momentum waits.
func TestSlowMoAtTheEndOfASchedule(t *testing.T) {
	gamma := 0.5
	u, err := NewOuter(Outer{Name: "slowmo", LR: 1, Momentum: 0.5, Inner: func(float64) float64 { return gamma }})
	if err != nil {
		t.Fatal(err)
	}
	s, x := NewStore(1, []Run{{Hi: 1}}, u, Follow), []float32{8}
	for _, c := range []struct {
		gamma        float64
		change, want float32
	}{{0.5, -1, 7}, {0, 0, 7}, {0.25, -0.5, 6.25}} { // u 2; u stays; u 0.5 * 2 + 0.5 / 0.25 = 3
		gamma = c.gamma
		s.After(0)
		s.Fold(0, []float32{c.change}, 0, 1)
		s.Commit(x, x, 0, 1, 1)
		if x[0] != c.want {
			t.Errorf("rate %g, change %g: %v, want %v", c.gamma, c.change, x[0], c.want)
		}
	}
}

func TestOuterRulesThatAreNoneAreRefused(t *testing.T) {
	for _, o := range []Outer{{Name: "delayed_nesterov", LR: 1}, {Name: "slow", LR: 1}, {Name: "", LR: 1}, {Name: "sgd", LR: -1}} {
		if _, err := NewOuter(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
}
