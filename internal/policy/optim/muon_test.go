package optim

import (
	"math"
	"math/rand/v2"
	"testing"
)

// orthogonalTwin is five iterations of Newton-Schulz by their definition, in float64.
func orthogonalTwin(g []float64, rows, cols int) []float64 {
	if rows > cols {
		return flip(orthogonalTwin(flip(g, rows, cols), cols, rows), cols, rows)
	}
	x, norm := make([]float64, len(g)), 0.0
	for _, v := range g {
		norm += v * v
	}
	for i, v := range g {
		x[i] = v / (math.Sqrt(norm) + 1e-7)
	}
	for range 5 {
		a := product(x, flip(x, rows, cols), rows, cols, rows)
		b, next := product(a, a, rows, rows, rows), make([]float64, len(x))
		for i := range b {
			b[i] = -4.7750*a[i] + 2.0315*b[i]
		}
		for i, v := range product(b, x, rows, rows, cols) {
			next[i] = 3.4445*x[i] + v
		}
		x = next
	}
	return x
}

func flip(x []float64, rows, cols int) []float64 {
	y := make([]float64, len(x))
	for i := range rows {
		for j := range cols {
			y[j*rows+i] = x[i*cols+j]
		}
	}
	return y
}

func product(a, b []float64, rows, inner, cols int) []float64 {
	c := make([]float64, rows*cols)
	for i := range rows {
		for j := range cols {
			for k := range inner {
				c[i*cols+j] += a[i*inner+k] * b[k*cols+j]
			}
		}
	}
	return c
}

// muonTwin takes a step of a matrix in float64, from its mean gradient.
func muonTwin(w, m, g []float64, rows, cols int, lr, mu, decay float64, nesterov, match bool) {
	u := make([]float64, len(g))
	for i := range g {
		m[i] = mu*m[i] + (1-mu)*g[i]
		u[i] = m[i]
		if nesterov {
			u[i] = (1-mu)*g[i] + mu*m[i]
		}
	}
	scale := math.Sqrt(math.Max(1, float64(rows)/float64(cols)))
	if match {
		scale = 0.2 * math.Sqrt(math.Max(float64(rows), float64(cols)))
	}
	for i, o := range orthogonalTwin(u, rows, cols) {
		w[i] = w[i]*(1-lr*decay) - lr*scale*o
	}
}

func muonUpdate(t testing.TB, nesterov bool, scale string) Update {
	s := spec("muon")
	s.LR, s.Momentum, s.Nesterov, s.Scale = 0.02, 0.95, nesterov, scale
	u, err := NewUpdate(s, Schedule{Name: "constant"})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// muonRuns are a wide matrix, a bias, a tall matrix, and filters of 3 x 3 for 4 channels.
var muonRuns = []Run{{Hi: 15 * 24, Decay: 0.1, Rows: 15}, {Lo: 360, Hi: 375, Decay: 0.05}, {Lo: 375, Hi: 375 + 30*11, Decay: 0, Rows: 30},
	{Lo: 705, Hi: 705 + 8*36, Decay: 0.1, Rows: 8}}

const muonElements = 705 + 8*36

// TestMuonFollowsTheFloat64Twin: 100 steps, to 1e-6 of each parameter, in the mean of gradients, too.
func TestMuonFollowsTheFloat64Twin(t *testing.T) {
	for _, nesterov := range []bool{true, false} {
		for _, scale := range []string{Original, MatchRMS} {
			rng := rand.New(rand.NewPCG(5, 6))
			s := NewStore(muonElements, muonRuns, muonUpdate(t, nesterov, scale), Optimize)
			w := gaussian(rng, muonElements)
			want, m, v := widen(w), make([]float64, muonElements), make([]float64, muonElements)
			for step := range int64(100) {
				a, b := gaussian(rng, muonElements), gaussian(rng, muonElements)
				g := make([]float64, muonElements)
				for i := range g {
					g[i] = (float64(a[i]) + float64(b[i])) / 32
				}
				s.Fold(0, a, 0, 1)
				s.Fold(0, b, 1, 1)
				s.Commit(w, w, float64(step), 1, 1.0/32)
				for _, q := range muonRuns {
					if q.Rows == 0 {
						twin("adamw", 0, want[q.Lo:q.Hi], g[q.Lo:q.Hi], m[q.Lo:q.Hi], v[q.Lo:q.Hi],
							Args{LR: 0.05, GradScale: 1, Decay: q.Decay, Step: step + 1})
						continue
					}
					muonTwin(want[q.Lo:q.Hi], m[q.Lo:q.Hi], g[q.Lo:q.Hi], q.Rows, (q.Hi-q.Lo)/q.Rows, 0.02, 0.95, float64(q.Decay), nesterov,
						scale == MatchRMS)
				}
			}
			for _, q := range muonRuns {
				tolerance := 1e-6
				if q.Rows == 0 { // adamw of gradients that change their signs
					tolerance = 1e-5
				}
				close32(t, "w", w[q.Lo:q.Hi], want[q.Lo:q.Hi], tolerance)
				close32(t, "state", s.state[0][q.Lo:q.Hi], m[q.Lo:q.Hi], 1e-6)
			}
		}
	}
}

// TestMuonTrainsOthersByAdamW: what is no matrix has the bits of a store of adamw with the rate of the others.
func TestMuonTrainsOthersByAdamW(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	s := NewStore(muonElements, muonRuns, muonUpdate(t, true, Original), Optimize)
	q := muonRuns[1]
	other := NewStore(q.Hi-q.Lo, []Run{{Hi: q.Hi - q.Lo, Decay: q.Decay}}, Update{Rule: mustNew(t, spec("adamw")), LR: 0.05,
		Sched: Schedule{Name: "constant"}}, Optimize)
	w := gaussian(rng, muonElements)
	x := append([]float32(nil), w[q.Lo:q.Hi]...)
	for range 10 {
		g := gaussian(rng, muonElements)
		s.Fold(0, g, 0, 1)
		s.Commit(w, w, 0, 0.5, 1.0/8)
		other.Fold(0, g[q.Lo:q.Hi], 0, 1)
		other.Commit(x, x, 0, 0.5, 1.0/8)
	}
	if i := bitsDiffer(w[q.Lo:q.Hi], x); i >= 0 {
		t.Errorf("element %d is %v, of adamw %v", i, w[q.Lo+i], x[i])
	}
}

// TestMuonDoesNotDependOnPieces: nor on whether folds wait for the commit, or on where the new version lies. State of matrices that a
// commit works in is zeros afterwards.
func TestMuonDoesNotDependOnPieces(t *testing.T) {
	const rows, cols, bias = 150, 90, 1000
	runs := []Run{{Hi: bias, Decay: 0.1}, {Lo: bias, Hi: bias + rows*cols, Decay: 0.1, Rows: rows}}
	n := bias + rows*cols
	rng := rand.New(rand.NewPCG(9, 10))
	start, pushes := gaussian(rng, n), [][]float32{gaussian(rng, n), gaussian(rng, n), gaussian(rng, n)}
	var want []float32
	for pieces := 1; pieces <= 4; pieces++ {
		for variant := range 3 {
			s := NewStore(n, runs, muonUpdate(t, true, Original), Optimize)
			spreadTests(s, pieces)
			w := append([]float32(nil), start...)
			for range 3 {
				for k, p := range pushes {
					s.Fold(0, p, float64(min(k, 1)), 1)
					if variant == 1 {
						s.Flush()
					}
				}
				next := w
				if variant == 2 {
					next = make([]float32, n)
				}
				s.Commit(next, w, 0, 1, 0.125)
				w = next
			}
			if want == nil {
				want = w
			}
			if i := bitsDiffer(w, want); i >= 0 {
				t.Fatalf("%d pieces, variant %d: element %d is %v, else %v", pieces, variant, i, w[i], want[i])
			}
			for i, x := range s.state[1][bias:] {
				if x != 0 {
					t.Fatalf("element %d of the second vector of a matrix is %v after a commit", i, x)
				}
			}
		}
	}
}

// TestMuonStepsDoNotGrowWithTheGradient: a gradient that is larger or smaller by a power of 2 moves matrices by the same step.
func TestMuonStepsDoNotGrowWithTheGradient(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	g, q := gaussian(rng, muonElements), muonRuns[2]
	step := func(scale float64) []float32 {
		s := NewStore(muonElements, muonRuns, muonUpdate(t, true, Original), Optimize)
		w := make([]float32, muonElements)
		s.Fold(0, g, 0, 1)
		s.Commit(w, w, 0, 1, scale)
		return w[q.Lo:q.Hi]
	}
	want := widen(step(1))
	for _, exponent := range []int{-9, -3, 4, 20} {
		close32(t, "w", step(math.Ldexp(1, exponent)), want, 1e-5)
	}
}

// TestMuonResumes: a store with the state and the count of another goes on as that one does.
func TestMuonResumes(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	first, second := NewStore(muonElements, muonRuns, muonUpdate(t, true, Original), Optimize),
		NewStore(muonElements, muonRuns, muonUpdate(t, true, Original), Optimize)
	w := gaussian(rng, muonElements)
	commit := func(s *Store, w, g []float32) {
		s.Fold(0, g, 0, 1)
		s.Commit(w, w, 0, 1, 0.5)
	}
	for range 3 {
		commit(first, w, gaussian(rng, muonElements))
	}
	state, steps := first.State()
	of, _ := second.State()
	for k := range state {
		copy(of[k], state[k])
	}
	second.Resume(steps)
	x := append([]float32(nil), w...)
	for range 3 {
		g := gaussian(rng, muonElements)
		commit(first, w, g)
		commit(second, x, g)
	}
	if i := bitsDiffer(w, x); i >= 0 {
		t.Errorf("element %d is %v, and %v after a resume", i, w[i], x[i])
	}
}

// TestMuonFindsWhatIsNotFinite: in a push, and in the step of a matrix.
func TestMuonFindsWhatIsNotFinite(t *testing.T) {
	s := NewStore(muonElements, muonRuns, muonUpdate(t, true, Original), Optimize)
	g, w, next := make([]float32, muonElements), make([]float32, muonElements), make([]float32, muonElements)
	g[400] = float32(math.Inf(1))
	s.Fold(0, g, 0, 1)
	s.Commit(next, w, 0, 1, 1)
	if f := s.Fault(); f == nil || f.Stage != InPush || f.At != 400 {
		t.Errorf("fault %+v, want that of element 400 of the push", f)
	}
	s = NewStore(muonElements, muonRuns, muonUpdate(t, true, Original), Optimize)
	g[400], w[400] = 1, -math.MaxFloat32
	s.Fold(0, g, 0, 1)
	s.Commit(next, w, 0, 1e38, 1)
	if f := s.Fault(); f == nil || f.Stage != InStep || f.LR != float32(0.02*1e38) {
		t.Errorf("fault %+v, want that of a step", f)
	}
}

// TestWorkersTakeStepsOfMatrices: the bits of a delta and of a worker's own step are those of a store's step, of each run.
func TestWorkersTakeStepsOfMatrices(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	store := NewStore(muonElements, muonRuns, muonUpdate(t, true, MatchRMS), Optimize)
	delta, inner := NewDelta(muonElements, muonUpdate(t, true, MatchRMS)), NewInner(muonElements, muonUpdate(t, true, MatchRMS))
	w := gaussian(rng, muonElements)
	own, local := append([]float32(nil), w...), append([]float32(nil), w...)
	for step := range int64(4) {
		g := gaussian(rng, muonElements)
		push := append([]float32(nil), g...)
		store.Fold(0, g, 0, 1)
		store.Commit(w, w, float64(step), 1, 1.0/8)
		inner.Begin()
		for _, q := range muonRuns {
			delta.Step(push, local, q, step, 8)
			inner.Step(own, g, q, step, 8)
		}
		AddDelta(local, push, 1.0/8)
		if i := bitsDiffer(own, w); i >= 0 {
			t.Fatalf("step %d: element %d of the worker is %v, of the server %v", step, i, own[i], w[i])
		}
		close32(t, "local", local, widen(w), 1e-6)
	}
	for k, of := range store.state {
		if i := bitsDiffer(inner.state[k], of); i >= 0 {
			t.Errorf("state %d differs at element %d", k, i)
		}
	}
}
