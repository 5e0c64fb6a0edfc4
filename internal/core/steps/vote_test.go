package steps

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/policy/local"
)

// voted takes the steps of a round of all workers, who decide together when it ends, and returns their pushes and samples.
func voted(t *rapid.T, workers []*driver, exchange int64, x []float32) (pushes [][]float32, samples int64) {
	for _, d := range workers {
		d.land(x, exchange-1, wire.Progress{Share: 1})
	}
	for {
		votes, any := 0, false
		for _, d := range workers {
			next := d.w.Next(true)
			if next == Await {
				d.w.Taken()
				next = d.w.Next(true)
			}
			switch next {
			case Step:
				d.step()
			case Vote:
				votes++
				step, yes := d.w.Ballot()
				if any = any || yes; step != d.w.count.Done {
					t.Fatalf("a vote on step %d after %d", step, d.w.count.Done)
				}
			case Push:
				samples += d.w.Pushes(exchange).Samples
				for layer := range d.w.o.Layers {
					d.w.Make(layer, exchange)
				}
				d.w.Pushed(exchange)
				pushes = append(pushes, d.push)
			case Await:
				t.Fatal("a worker waits for answers that are there")
			}
		}
		switch {
		case len(pushes) == len(workers):
			return pushes, samples
		case len(pushes) > 0, votes > 0 && votes < len(workers):
			t.Fatalf("%d of %d workers vote, and %d push", votes, len(workers), len(pushes))
		case votes > 0:
			for _, d := range workers {
				d.w.Decided(any)
			}
		}
	}
}

// voter follows the norms of a worker's gradients once more.
type voter struct {
	smoothed float64
	known    bool
}

func (v *voter) vote(s *local.Period, norm float64) bool {
	before := v.smoothed
	if !v.known {
		v.smoothed, v.known = norm, true
		return false
	}
	v.smoothed = before + s.Smoothing*(norm-before)
	return math.Abs(v.smoothed-before) >= s.Threshold*before
}

// votes takes the steps of a round with votes, in plain loops.
func (w *twinRun) votes(voters []voter) {
	r := w.r
	most := r.spec.Steps
	if w.workers[0].step < r.spec.Period.Warm {
		most = 1
	}
	for i := range w.workers {
		copy(w.workers[i].own, w.x)
		copy(w.workers[i].base, w.x)
	}
	for range most {
		stop := false
		for i := range w.workers {
			grads, sum := make([]float32, len(w.x)), 0.0
			r.grads(i, w.workers[i].step, w.workers[i].own, grads)
			for j, g := range grads {
				if !r.isStat(j) {
					sum += float64(g) * float64(g)
				}
			}
			w.train(i)
			stop = voters[i].vote(&r.spec.Period, math.Sqrt(sum)) || stop
		}
		if stop {
			break
		}
	}
	for i := range w.workers {
		for j := range w.x {
			w.change(i, j, float32(w.workers[i].since[0]))
		}
	}
}

// Under selsync all workers end a round together, when the gradients of one of them have changed, and a whole run is
// what its dumb twin makes of it.
func TestRunsWithVotesAreTheirDumbTwins(t *testing.T) {
	early := 0
	rapid.Check(t, func(t *rapid.T) {
		r := drawRun(t, "averaging")
		r.spec.Steps = rapid.Int64Range(1, 9).Draw(t, "most")
		r.spec.Period = local.Period{Name: "selsync", Threshold: rapid.Float64Range(0.01, 0.5).Draw(t, "threshold"),
			Smoothing: rapid.Float64Range(0.1, 1).Draw(t, "smoothing"), Warm: rapid.Int64Range(0, 4).Draw(t, "warm")}
		s := newServer(t, r)
		twin := newTwinRun(r, s.x)
		var workers []*driver
		for i := range r.workers {
			workers = append(workers, newDriver(t, r, i, true))
		}
		voters := make([]voter, r.workers)
		for exchange := range rapid.Int64Range(1, 7).Draw(t, "exchanges") {
			before := workers[0].steps
			for i, d := range workers {
				if rapid.IntRange(0, 4).Draw(t, "resumes") == 0 {
					workers[i] = d.resumed(t, false)
				}
			}
			pushes, samples := voted(t, workers, exchange, s.x)
			s.commit(exchange, pushes, samples)
			twin.votes(voters)
			twin.commit(exchange)
			if n := workers[0].steps - before; n > 1 && n < r.spec.Steps {
				early++
			}
			for i, d := range workers {
				if d.w.Steps() != twin.workers[i].step {
					t.Fatalf("%+v, exchange %d: worker %d has taken %d steps, its twin %d", r.spec.Period, exchange, i, d.w.Steps(), twin.workers[i].step)
				}
				same(t, r, exchange, i, "parameters of its own", d.own, twin.workers[i].own)
			}
			same(t, r, exchange, -1, "parameters", s.x, twin.x)
		}
	})
	if early == 0 {
		t.Error("no round ended by a vote")
	}
}
