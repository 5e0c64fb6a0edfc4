package optim

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func drawVector(t *rapid.T, n int, name string) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rapid.Float64Range(-2, 2).Draw(t, name))
	}
	return v
}

// TestDeltasAddUpToTheServersStep: with plain SGD and one worker, adding the worker's delta equals the server's step with the
// gradient (sync-core 6.1: averaging of one step is the synchronous update).
func TestDeltasAddUpToTheServersStep(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 3*deltaBlock/2).Draw(t, "n")
		cut := rapid.IntRange(0, n).Draw(t, "cut")
		samples := rapid.Int64Range(1, 64).Draw(t, "samples")
		clock := rapid.Int64Range(0, 20).Draw(t, "clock")
		runs := []Run{{Lo: 0, Hi: cut, Decay: 0.01}, {Lo: cut, Hi: n}}
		u := Update{Rule: sgd{}, LR: 0.1, Sched: Schedule{Name: "step", Every: 7, Factor: 0.5, WarmUp: 4}}
		params := drawVector(t, n, "w")
		grads := drawVector(t, n, "g")
		for i := range grads {
			grads[i] *= float32(samples)
		}

		want := make([]float32, n)
		server := NewStore(n, runs, u, Optimize)
		server.Fold(0, grads, 0, 1)
		server.Commit(want, params, float64(clock), 1, 1/float64(samples))

		d := NewDelta(n, u)
		for _, q := range runs {
			d.Step(grads, params, q, clock, samples)
		}
		got := make([]float32, n)
		adder := NewStore(n, runs, u, Add)
		adder.Fold(0, grads, 0, 1)
		adder.Commit(got, params, float64(clock), 1, 1/float64(samples))
		for i := range got {
			if math.Abs(float64(got[i]-want[i])) > 1e-6 {
				t.Fatalf("element %d of %d: added delta gives %v, the optimizer's step %v", i, n, got[i], want[i])
			}
		}
	})
}

// TestStoreKeepsAccumulatorsApart: an accumulator starts as zeros and commits read only the pending sums.
func TestStoreKeepsAccumulatorsApart(t *testing.T) {
	s := NewStore(2, []Run{{Lo: 0, Hi: 2}}, Update{}, Add)
	s.Fold(3, []float32{8, 16}, 1, 1)
	s.Fold(0, []float32{1, 2}, 0, 1)
	dst := make([]float32, 2)
	s.Commit(dst, []float32{10, 20}, 0, 0.5, 0.5)
	if dst[0] != 10.25 || dst[1] != 20.5 || s.Sums(3)[1] != 16 || s.Sums(2)[0] != 0 {
		t.Fatalf("committed %v with accumulators %v and %v", dst, s.Sums(2), s.Sums(3))
	}
}

// TestDeltaKeepsMomentumOfItsOwn: of two steps with the same gradient the second is longer by the momentum.
func TestDeltaKeepsMomentumOfItsOwn(t *testing.T) {
	d := NewDelta(1, Update{Rule: momentum{mu: 0.5}, LR: 0.5, Sched: Schedule{Name: "constant"}})
	for i, want := range []float32{-8, -12} { // samples * -(lr * m): m is 4, then 0.5*4 + 4
		g := []float32{16} // a sum over 4 samples: mean 4
		d.Step(g, []float32{1}, Run{Lo: 0, Hi: 1}, int64(i), 4)
		if g[0] != want {
			t.Fatalf("step %d pushes %v, want %v", i, g[0], want)
		}
	}
}

// plainStore does every fold and every commit at once, with the plain passes. A Store equals it to the bit.
type plainStore struct {
	n     int
	runs  []Run
	u     Update
	way   Way
	sums  [][]float32
	state [][]float32
	steps int64
}

func (p *plainStore) fold(into int, from []float32, scale, weight float64) {
	dst, sc, wt := p.sums[into], float32(scale), float32(weight)
	for i := range dst {
		switch {
		case sc == 0:
			dst[i] = wt * from[i]
		case sc == 1:
			dst[i] += float32(wt * from[i])
		default:
			dst[i] = float32(sc*dst[i]) + float32(wt*from[i])
		}
	}
}

func (p *plainStore) commit(dst, src []float32, clock, scale, weight float64) {
	p.steps++
	switch p.way {
	case Add:
		sumGo(dst, src, p.sums[0], float32(scale*weight))
	case Average:
		keep, share := float32(1-min(scale, 1)), float32(min(scale, 1)*weight)
		for i := range dst {
			dst[i] = float32(share * p.sums[0][i])
			if keep != 0 { // otherwise src does not matter, not even a NaN
				dst[i] = float32(keep*src[i]) + dst[i]
			}
		}
	case Optimize:
		local := p.localRate(src, weight)
		lr, k, rule := float32(p.u.LR*p.u.Sched.Scale(clock)*scale), float32(weight), p.u.Rule
		if r, ok := rule.(muon); ok { // without matrices
			lr, rule = float32(p.u.Others*p.u.Sched.Scale(clock)*scale), r.others
		}
		for _, q := range p.runs {
			switch r := rule.(type) {
			case sgd:
				sgdGo(dst[q.Lo:q.Hi], src[q.Lo:q.Hi], p.sums[0][q.Lo:q.Hi], lr, k, q.Decay)
			case momentum:
				momentumGo(dst[q.Lo:q.Hi], src[q.Lo:q.Hi], p.sums[0][q.Lo:q.Hi], p.state[0][q.Lo:q.Hi], lr, k, q.Decay, r.mu)
			case nesterov:
				nesterovGo(dst[q.Lo:q.Hi], src[q.Lo:q.Hi], p.sums[0][q.Lo:q.Hi], p.state[0][q.Lo:q.Hi], lr, k, q.Decay, r.mu)
			case lars:
				momentumGo(dst[q.Lo:q.Hi], src[q.Lo:q.Hi], p.sums[0][q.Lo:q.Hi], p.state[0][q.Lo:q.Hi], lr, float32(weight*local),
					q.Decay*float32(local), r.mu)
			case adamw:
				d, g := dst[q.Lo:q.Hi], p.sums[0][q.Lo:q.Hi]
				copy(d, src[q.Lo:q.Hi])
				if lost := float32(float64(lr) * float64(q.Decay)); lost != 0 {
					sgdGo(d, d, g, lost, 0, 1)
				}
				c := r.scalars(Args{LR: lr, GradScale: k, Step: p.steps})
				adamGo(d, d, g, p.state[0][q.Lo:q.Hi], p.state[1][q.Lo:q.Hi], &c)
			case adam:
				c := r.scalars(Args{LR: lr, GradScale: k, Decay: q.Decay, Step: p.steps})
				adamGo(dst[q.Lo:q.Hi], src[q.Lo:q.Hi], p.sums[0][q.Lo:q.Hi], p.state[0][q.Lo:q.Hi], p.state[1][q.Lo:q.Hi], &c)
			}
		}
	}
	clear(p.sums[0])
}

// localRate computes the norms in one pass, with the plain loop. Neighbours with the same decay are one run.
func (p *plainStore) localRate(src []float32, weight float64) float64 {
	r, ok := p.u.Rule.(lars)
	if !ok {
		return 1
	}
	var grad, params, decay float64
	for _, q := range merged(p.runs) {
		var l lanes
		normsGo(p.sums[0][q.Lo:q.Hi], src[q.Lo:q.Hi], &l)
		grad += total(&l.push)
		params += total(&l.params)
		decay += float64(float64(q.Decay) * float64(q.Decay) * total(&l.params))
	}
	return r.localRate(math.Abs(weight)*math.Sqrt(grad), math.Sqrt(params), math.Sqrt(decay))
}

// TestQueuedFoldsEqualPlainOnes: any order of folds, commits, flushes and reads of the sums gives the bits of doing each at once,
// for every number of pieces and every order in which they run. No push is read after it has been given back.
func TestQueuedFoldsEqualPlainOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 7, 100, blockElements, blockElements + 1, 2*blockElements + 77}).Draw(t, "n")
		cuts := rapid.SliceOfN(rapid.IntRange(0, n), 0, 4).Draw(t, "cuts")
		slices.Sort(cuts)
		var runs []Run
		lo := 0
		for i, hi := range append(cuts, n) {
			runs = append(runs, Run{Lo: lo, Hi: hi, Decay: float32(i%2) * 0.01})
			lo = hi
		}
		rule, err := New(spec(rapid.SampledFrom(Names()).Draw(t, "rule")))
		if err != nil {
			t.Fatal(err)
		}
		u := Update{Rule: rule, LR: 0.1, Sched: Schedule{Name: "step", Every: 3, Factor: 0.5}, Others: 0.05}
		way := rapid.SampledFrom([]Way{Optimize, Add, Average}).Draw(t, "way")
		const accumulators = 3
		want := &plainStore{n: n, runs: runs, u: u, way: way, sums: vectors(accumulators, n), state: vectors(rule.State(), n)}
		got := NewStore(n, runs, u, way)
		spreadTests(got, rapid.IntRange(1, 3).Draw(t, "pieces"))

		version, next := anyVector(t, n, "version"), make([]float32, n)
		plain, plainNext := copyOf(version), make([]float32, n)
		var lent [][]float32
		giveBack := func() {
			for _, p := range lent {
				for i := range p {
					p[i] = float32(math.NaN())
				}
			}
			lent = nil
		}
		scales, weights := []float64{0, 0, 1, 1, -1, 0.3}, []float64{1, 1, 0.5, -1, 0}
		for range rapid.IntRange(1, 25).Draw(t, "steps") {
			into := rapid.IntRange(0, accumulators-1).Draw(t, "into")
			scale, weight := rapid.SampledFrom(scales).Draw(t, "scale"), rapid.SampledFrom(weights).Draw(t, "weight")
			switch rapid.SampledFrom([]string{"fold", "fold", "fold", "foldSums", "commit", "commit", "flush", "sums"}).Draw(t, "do") {
			case "fold":
				push := anyVector(t, n, "push")
				want.fold(into, push, scale, weight)
				got.Fold(into, push, scale, weight)
				lent = append(lent, push)
			case "foldSums":
				from := rapid.IntRange(0, accumulators-1).Draw(t, "from")
				want.fold(into, want.sums[from], scale, weight)
				got.FoldSums(into, from, scale, weight)
			case "commit":
				clock := rapid.Float64Range(0, 9).Draw(t, "clock")
				want.commit(plainNext, plain, clock, scale, weight)
				got.Commit(next, version, clock, scale, weight)
				giveBack()
				if i := bitsDiffer(next, plainNext); i >= 0 {
					t.Fatalf("element %d of %d of the new version is %v, folds done at once give %v", i, n, next[i], plainNext[i])
				}
				version, next, plain, plainNext = next, version, plainNext, plain
			case "flush":
				got.Flush()
				giveBack()
			case "sums":
				sums := got.Sums(into)
				giveBack()
				if i := bitsDiffer(sums, want.sums[into]); i >= 0 {
					t.Fatalf("element %d of accumulator %d is %v, folds done at once give %v", i, into, sums[i], want.sums[into][i])
				}
			}
		}
		for k := range accumulators {
			if i := bitsDiffer(got.Sums(k), want.sums[k]); i >= 0 {
				t.Fatalf("in the end element %d of accumulator %d is %v, folds done at once give %v", i, k, got.Sums(k)[i], want.sums[k][i])
			}
		}
		for k := range got.state {
			if i := bitsDiffer(got.state[k], want.state[k]); i >= 0 {
				t.Fatalf("state %d differs at element %d", k, i)
			}
		}
	})
}

// spreadTests cuts even small shards into k pieces, which run last first.
func spreadTests(s *Store, k int) {
	s.Spread(1, func(n int, piece func(i int)) {
		for i := n - 1; i >= 0; i-- {
			piece(i)
		}
	})
	for len(s.scratch) < k {
		s.scratch = append(s.scratch, pieceScratch{block: make([]float32, min(s.n, blockElements)), part: make([][]float32, len(s.state))})
	}
}

// TestSpreadCutsOnlyWhatIsLarge: a piece has 1 MiB or more, and the pieces cover the shard.
func TestSpreadCutsOnlyWhatIsLarge(t *testing.T) {
	for _, c := range []struct{ n, most, want int }{
		{100, 4, 1}, {pieceMin, 4, 1}, {2*pieceMin - 1, 4, 1}, {2 * pieceMin, 4, 2}, {5*pieceMin + 3, 4, 4},
		{5*pieceMin + 3, 2, 2}, {streamMin + 5, 1, 1},
	} {
		s := NewStore(c.n, nil, Update{}, Add)
		pieces := 0
		s.Spread(c.most, func(n int, piece func(i int)) {
			pieces = n
			for i := range n {
				piece(i)
			}
		})
		push, dst, src := make([]float32, c.n), make([]float32, c.n), make([]float32, c.n)
		for i := range push {
			push[i], src[i] = float32(i%7), 1
		}
		s.Fold(0, push, 0, 1)
		s.Commit(dst, src, 0, 1, 1)
		if max(pieces, 1) != c.want {
			t.Errorf("%d elements over up to %d: %d pieces, want %d", c.n, c.most, pieces, c.want)
		}
		for i, got := range dst {
			if got != 1+push[i] {
				t.Fatalf("%d elements over up to %d: element %d is %v, want %v", c.n, c.most, i, got, 1+push[i])
			}
		}
	}
}

// TestFoldsAndCommitsAllocateNothing: once their accumulators are allocated, folds and commits allocate nothing.
func TestFoldsAndCommitsAllocateNothing(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) { allocateNothing(t, mustNew(t, spec(name))) })
	}
}

func allocateNothing(t *testing.T, r Rule) {
	const n = 2*pieceMin + 100
	s := NewStore(n, []Run{{Hi: 1000, Decay: 0.1}, {Lo: 1000, Hi: n}}, Update{Rule: r, LR: 1, Sched: Schedule{Name: "constant"}}, Optimize)
	s.Spread(2, func(n int, piece func(i int)) {
		for i := range n {
			piece(i)
		}
	})
	push, dst, src := make([]float32, n), make([]float32, n), make([]float32, n)
	s.Sums(0)
	s.Sums(1)
	if got := testing.AllocsPerRun(5, func() {
		s.Fold(0, push, 0, 1)
		s.Flush()
		for range QueueMax + 2 {
			s.Fold(0, push, 1, 1)
		}
		s.FoldSums(1, 0, 0.5, 0.5)
		s.Commit(dst, src, 3, 0.5, 0.5)
	}); got != 0 {
		t.Errorf("%v allocations a round, want 0", got)
	}
}

func TestStoreRefusesOtherLengths(t *testing.T) {
	v := make([]float32, 4)
	for name, call := range map[string]func(s *Store){
		"fold": func(s *Store) { s.Fold(0, v[:3], 0, 1) },
		"from": func(s *Store) { s.Commit(v, v[:3], 0, 1, 1) },
		"to":   func(s *Store) { s.Commit(v[:3], v, 0, 1, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			call(NewStore(4, nil, Update{}, Add))
		}()
	}
}

// TestTheQueueIsBounded: the queue is bounded, however many folds precede a commit.
func TestTheQueueIsBounded(t *testing.T) {
	s := NewStore(1, nil, Update{}, Add)
	const pushes = 3*QueueMax + 1
	for i := range pushes {
		s.Fold(0, []float32{2}, float64(min(i, 1)), 1)
		if len(s.queue) > QueueMax {
			t.Fatalf("%d folds are queued after %d, at most %d may be", len(s.queue), i+1, QueueMax)
		}
	}
	dst := []float32{0}
	s.Commit(dst, []float32{1}, 0, 1, 1)
	if dst[0] != 1+2*pushes {
		t.Errorf("%v committed, want %v", dst[0], 1+2*pushes)
	}
}

// TestPendingSumsDoNotFollowTheAccumulatorTheyCameFrom: a later fold into that accumulator does not change the pending sums.
func TestPendingSumsDoNotFollowTheAccumulatorTheyCameFrom(t *testing.T) {
	s := NewStore(1, nil, Update{}, Add)
	s.Fold(1, []float32{8}, 0, 1)
	s.FoldSums(0, 1, 0, 1)
	s.Fold(1, []float32{100}, 1, 1)
	dst := []float32{0}
	s.Commit(dst, []float32{1}, 0, 1, 1)
	if dst[0] != 9 || s.Sums(1)[0] != 108 {
		t.Errorf("%v committed and %v kept, want 9 and 108", dst[0], s.Sums(1)[0])
	}
}
