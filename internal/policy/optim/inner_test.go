package optim

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// innerCase is a rule with penalties, and its runs.
func innerCase(t *rapid.T) (u Update, n int, runs []Run) {
	name := rapid.SampledFrom([]string{"sgd", "momentum", "nesterov", "adam"}).Draw(t, "rule")
	u = Update{Rule: mustNewRapid(t, name), LR: 0.1, Sched: Schedule{Name: "step", Every: 3, Factor: 0.5, WarmUp: 2}}
	n = rapid.IntRange(1, 2*deltaBlock+40).Draw(t, "n")
	lo := 0
	for lo < n {
		q := Run{Lo: lo, Hi: rapid.IntRange(lo+1, n).Draw(t, "hi"), Decay: rapid.SampledFrom([]float32{0, 0.01}).Draw(t, "decay")}
		if name == "sgd" {
			q.L1 = rapid.SampledFrom([]float32{0, 0.3}).Draw(t, "l1")
		}
		runs = append(runs, q)
		lo = q.Hi
	}
	return u, n, runs
}

// scrambled is a vector that depends on a seed alone: drawing thousands of elements would take rapid too long.
func scrambled(seed uint64, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		seed = seed*6364136223846793005 + 1442695040888963407
		v[i] = float32(int64(seed)>>40) / (1 << 22)
	}
	return v
}

// A worker's own steps are those of a server with one worker, to the bit: the rule, its state, penalties, and the
// clock of the rate. They do not depend on how the arena is cut.
func TestInnerStepsAreTheServersSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, n, runs := innerCase(t)
		seed := rapid.Uint64().Draw(t, "seed")
		server, inner := NewStore(n, runs, u, Optimize), NewInner(n, u)
		want := scrambled(seed, n)
		got := slices.Clone(want)
		for step := range rapid.Int64Range(1, 7).Draw(t, "steps") {
			samples := rapid.Int64Range(1, 40).Draw(t, "samples")
			grads := scrambled(seed+uint64(step)+1, n)
			server.Fold(0, grads, 0, 1)
			server.Commit(want, want, float64(step), 1, 1/float64(samples))
			inner.Begin()
			for _, q := range runs {
				inner.Step(got, grads, q, step, samples)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("step %d in runs %v: the worker's parameters are not the server's", step, runs)
			}
		}
		mine, steps := inner.State()
		theirs, commits := server.State()
		for i := range theirs {
			if steps != commits || !slices.Equal(mine[i], theirs[i]) {
				t.Fatalf("after %d steps the state is not the server's after %d", steps, commits)
			}
		}
	})
}

// One step and what changed is the delta that a worker pushes under push: delta, to the bit.
func TestOneInnerStepIsADelta(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, n, runs := innerCase(t)
		for i := range runs {
			runs[i].L1 = 0 // a delta knows no penalty on magnitudes
		}
		seed := rapid.Uint64().Draw(t, "seed")
		delta, inner := NewDelta(n, u), NewInner(n, u)
		params := scrambled(seed, n)
		for step := range int64(3) {
			samples := rapid.Int64Range(1, 40).Draw(t, "samples")
			grads := scrambled(seed+uint64(step)+1, n)
			own, push := slices.Clone(params), make([]float32, n)
			inner.Begin()
			for _, q := range runs {
				inner.Step(own, grads, q, step, samples)
				delta.Step(grads, params, q, step, samples) // grads becomes the push
			}
			for _, q := range runs {
				inner.Change(push[q.Lo:q.Hi], own[q.Lo:q.Hi], params[q.Lo:q.Hi], float32(samples))
			}
			if !slices.Equal(push, grads) {
				t.Fatalf("step %d: what changed is not the delta", step)
			}
			params = own
		}
	})
}

// A resumed worker takes the steps that it would have taken.
func TestInnerStepsResume(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		u, n, runs := innerCase(t)
		seed := rapid.Uint64().Draw(t, "seed")
		a := NewInner(n, u)
		x := scrambled(seed, n)
		take := func(d *Inner, x []float32, step int64) {
			d.Begin()
			for _, q := range runs {
				d.Step(x, scrambled(seed+uint64(step), n), q, step, 3)
			}
		}
		cut := rapid.Int64Range(0, 4).Draw(t, "cut")
		for step := range cut {
			take(a, x, step)
		}
		b, y := NewInner(n, u), slices.Clone(x)
		state, steps := a.State()
		into, _ := b.State()
		for i := range state {
			copy(into[i], state[i])
		}
		b.Resume(steps)
		for step := cut; step < 6; step++ {
			take(a, x, step)
			take(b, y, step)
		}
		if !slices.Equal(x, y) {
			t.Fatalf("a worker that resumed after %d steps ends elsewhere", cut)
		}
	})
}

// Changes, mixing and DC-ASGD's correction are what plain loops make of them, over any length.
func TestChangesAreTheirDumbTwins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, seed := rapid.IntRange(1, deltaBlock+40).Draw(t, "n"), rapid.Uint64().Draw(t, "seed")
		after, before, now := scrambled(seed, n), scrambled(seed+1, n), scrambled(seed+2, n)
		weight := rapid.SampledFrom([]float32{1, 3, 0.2, 32}).Draw(t, "weight")
		keep, strength := rapid.SampledFrom([]float32{0, 0.25, 1}).Draw(t, "keep"), rapid.SampledFrom([]float32{0.04, 4}).Draw(t, "strength")
		push := make([]float32, n)
		NewInner(n, Update{Rule: sgd{}}).Change(push, after, before, weight)
		for i := range push {
			if want := float32(weight * float32(after[i]-before[i])); push[i] != want {
				t.Fatalf("change %d of %d: %v, want %v", i, n, push[i], want)
			}
		}
		corrected := slices.Clone(push)
		Compensate(corrected, now, before, strength, weight)
		mixed := slices.Clone(after)
		Mix(mixed, now, keep)
		for i := range push {
			d := float64(after[i]) - float64(before[i])
			want := float64(weight) * (d - float64(strength)*d*d*(float64(now[i])-float64(before[i])))
			if math.Abs(float64(corrected[i])-want) > 1e-5*float64(weight*(1+strength)) {
				t.Fatalf("element %d of %d corrected: %v, want %v", i, n, corrected[i], want)
			}
			if want := float64(now[i]) +
				float64(keep)*(float64(after[i])-float64(now[i])); math.Abs(float64(mixed[i])-want) > 1e-6 || keep == 0 && mixed[i] != now[i] {
				t.Fatalf("element %d of %d mixed: %v, want %v", i, n, mixed[i], want)
			}
		}
	})
}

// LARS needs the norms of layers, and a worker's own steps go along their pieces.
func TestLARSTakesNoInnerSteps(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("lars was accepted")
		}
	}()
	NewInner(1, Update{Rule: mustNew(t, spec("lars"))})
}
