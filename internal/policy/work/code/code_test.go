package code_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"fluentps/internal/configs/configstest"
	"fluentps/internal/policy/work/code"
	"fluentps/kernels/cpu"
	"fluentps/ps/workload"
	"fluentps/tests/pagetest"
)

var update = flag.Bool("update", false, "rewrite the table of the page")

func made(t testing.TB, kind code.Kind, n, s int) *code.Code {
	t.Helper()
	c, err := code.New(code.Spec{Kind: kind, Workers: n, Stragglers: s, Draws: 100, ConditionMax: 1e4, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// without lists the sets of n workers that lack s of them.
func without(n, s int) (sets [][]int32) {
	for mask := range 1 << n {
		var alive []int32
		for w := range n {
			if mask>>w&1 == 1 {
				alive = append(alive, int32(w))
			}
		}
		if len(alive) == n-s {
			sets = append(sets, alive)
		}
	}
	return sets
}

// gradients are the sums of the gradients of n partitions of a batch, computed by a model on its initial parameters.
func gradients(t testing.TB, n int) (parts [][]float32) {
	t.Helper()
	const rows, cols, classes = 12, 20, 4
	spec, from := workload.ModelSpec{Name: "mlp", Layers: []int{16}}, workload.Samples{Cols: cols, Classes: classes}
	m, err := workload.NewModel(spec, from, cpu.New(1), rows)
	if err != nil {
		t.Fatal(err)
	}
	var params, grads [][]float32
	for _, p := range configstest.Params(t, spec, from) {
		params, grads = append(params, make([]float32, p.N())), append(grads, make([]float32, p.N()))
		workload.Fill(params[len(params)-1], 3, p, 0)
	}
	m.Bind(params, grads)
	r := rand.New(rand.NewPCG(4, 5))
	for range n {
		b := workload.Batch{X: make([]float32, rows*cols), Y: make([]int32, rows), N: rows, Cols: cols}
		for i := range b.X {
			b.X[i] = float32(r.NormFloat64())
		}
		for i := range b.Y {
			b.Y[i] = int32(r.IntN(classes))
		}
		m.Forward(b, nil)
		m.Backward(nil)
		parts = append(parts, slices.Concat(grads...))
	}
	return parts
}

type float interface{ ~float32 | ~float64 }

// decodeError encodes the gradients and decodes them from the codewords of the alive workers, both in F. It returns the 2-norm of the
// difference from the gradient of the whole batch.
func decodeError[F float](c *code.Code, parts [][]float32, alive []int32) float64 {
	weights := c.Weights(alive)
	got := make([]F, len(parts[0]))
	for k, w := range alive {
		word := make([]F, len(got))
		of, factors := c.Row(int(w))
		for i, j := range of {
			for x, g := range parts[j] {
				word[x] += F(factors[i]) * F(g)
			}
		}
		for x := range got {
			got[x] += F(weights[k]) * word[x]
		}
	}
	sum := 0.0
	for x := range got {
		want := 0.0
		for _, p := range parts {
			want += float64(p[x])
		}
		d := float64(got[x]) - want
		sum += d * d
	}
	return math.Sqrt(sum)
}

// norms are the 2-norm of the gradient of the whole batch, and the root of the sum of the squared norms of its parts.
func norms(parts [][]float32) (whole, root float64) {
	for x := range parts[0] {
		sum := 0.0
		for _, p := range parts {
			sum += float64(p[x])
			root += float64(p[x]) * float64(p[x])
		}
		whole += sum * sum
	}
	return math.Sqrt(whole), math.Sqrt(root)
}

// Of ten workers, every set of survivors gives the gradient of the whole batch.
func TestEverySurvivorSetDecodes(t *testing.T) {
	parts := gradients(t, 10)
	whole, root := norms(parts)
	table := "| code | s | largest weight | error, float64 | error, float32 |\n|---|---|---|---|---|\n"
	for _, k := range []struct {
		kind code.Kind
		s    []int
	}{{code.Cyclic, []int{0, 1, 2, 3, 4}}, {code.Fractional, []int{1, 4}}} {
		for _, s := range k.s {
			c := made(t, k.kind, 10, s)
			wide, narrow := 0.0, 0.0
			for _, alive := range without(10, s) {
				if !c.Decodes(alive) {
					t.Fatalf("%s, s = %d: %v do not decode", k.kind, s, alive)
				}
				wide = max(wide, decodeError[float64](c, parts, alive)/whole)
				narrow = max(narrow, decodeError[float32](c, parts, alive)/root)
			}
			w, sets := c.WeightMax()
			t.Logf("%s, n = 10, s = %d: max|a| %.4g over %d sets; error %.2g in float64, %.2g in float32", k.kind, s, w, sets, wide, narrow)
			if s > 0 {
				exact := fmt.Sprintf("%.0e", wide)
				if wide == 0 {
					exact = "0"
				}
				table += fmt.Sprintf("| %s | %d | %.3g | %s | %.1e |\n", k.kind, s, w, exact, narrow)
			}
			if wide > 1e-9 || narrow > 1e-3 {
				t.Errorf("%s, s = %d: error %.2g in float64 (at most 1e-9) and %.2g in float32 (at most 1e-3)", k.kind, s, wide, narrow)
			}
			if k.kind == code.Fractional && wide > 1e-15 {
				t.Errorf("fractional, s = %d: error %.2g, more than another order of additions makes", s, wide)
			}
		}
	}
	// Other kernels round the gradients otherwise, and so the last digits of the errors.
	pagetest.Table(t, *update, "internal/policy/work/CODED.md",
		"go test ./internal/policy/work/code -run TestEverySurvivorSetDecodes -update", table, 0.2)
}

// Private parts are as large as stragglers allow that take alpha times as long: they have done theirs when the others
// have done all, and with one sample more they would not. The share is that of the paper's (s+1)/(alpha-1) private
// partitions beside s+1 coded ones of n.
func TestPrivatePartsFitStragglers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, s, alpha := rapid.IntRange(1, 1000).Draw(t, "batch"), rapid.IntRange(1, 20).Draw(t, "s"), rapid.Float64Range(1.01, 50).Draw(t, "alpha")
		p := code.Private(b, s, alpha)
		late := func(p int) bool { return alpha*float64(p) > float64(p)+float64(s+1)*float64(b-p)+1e-6 }
		if p < 0 || p >= b || late(p) || !late(p+1) && alpha*float64(p+1) < float64(p+1)+float64(s+1)*float64(b-p-1)-1e-6 {
			t.Fatalf("of %d samples %d are private, s = %d, alpha = %g", b, p, s, alpha)
		}
		naive, coded := float64(s+1)/(alpha-1), 1.0 // partitions of a worker that no other has, and those of the coded ones that count for it
		if share := float64(b) * naive / (naive + coded); math.Abs(float64(p)+0.5-share) > 0.500001 {
			t.Fatalf("of %d samples %d are private, and the paper's share is %g; s = %d, alpha = %g", b, p, share, s, alpha)
		}
	})
}

// The private parts of all workers and what any n - s of them have coded give the gradient of the whole batch: every
// survivor set of small n.
func TestEverySurvivorSetDecodesBesidePrivateParts(t *testing.T) {
	const rows = 12
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 6).Draw(t, "n")
		s := rapid.IntRange(1, min(3, n-1)).Draw(t, "s")
		alpha := rapid.SampledFrom([]float64{1.2, 1.5, 2, 3, 6}).Draw(t, "alpha")
		seed := rapid.Uint64().Draw(t, "seed")
		c, err := code.New(code.Spec{Kind: rapid.SampledFrom([]code.Kind{code.Auto, code.Cyclic}).Draw(t, "kind"),
			Workers: n, Stragglers: s, Draws: 20, ConditionMax: math.Inf(1), Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		largest, _ := c.WeightMax()
		r := rand.New(rand.NewPCG(seed, 6))
		p := code.Private(rows, s, alpha)
		want, private, parts := make([]float64, 5), make([]float64, 5), make([][]float32, n)
		for j := range n {
			parts[j] = make([]float32, len(want))
			for row := range rows { // the gradient of each row
				for x := range want {
					g := float32(r.NormFloat64())
					if want[x] += float64(g); row < p {
						private[x] += float64(g)
					} else {
						parts[j][x] += g
					}
				}
			}
		}
		for _, alive := range without(n, s) {
			weights := c.Weights(alive)
			for x := range want {
				got := private[x]
				for k, w := range alive {
					of, factors := c.Row(int(w))
					for i, j := range of {
						got += weights[k] * factors[i] * float64(parts[j][x])
					}
				}
				if math.Abs(got-want[x]) > 1e-4+1e-11*largest*largest {
					t.Fatalf("n = %d, s = %d, alpha = %g, workers %v: %g, want %g", n, s, alpha, alive, got, want[x])
				}
			}
		}
	})
}

// Each partition is on s+1 workers, and each worker has s+1 of them, its own first.
func TestRowsHoldEachPartition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 14).Draw(t, "n")
		s := rapid.IntRange(0, min(3, n-1)).Draw(t, "s")
		c, err := code.New(code.Spec{Kind: code.Auto, Workers: n, Stragglers: s, Draws: 20, ConditionMax: math.Inf(1),
			Seed: rapid.Uint64().Draw(t, "seed")})
		if err != nil {
			t.Fatal(err)
		}
		if fits := n%(s+1) == 0; fits != (c.Kind() == code.Fractional) {
			t.Fatalf("auto is %s for n = %d, s = %d", c.Kind(), n, s)
		}
		copies := make([]int, n)
		for i := range n {
			of, factors := c.Row(i)
			if len(of) != s+1 || len(factors) != s+1 || of[0] != int32(i) {
				t.Fatalf("worker %d of %d has %v, s = %d", i, n, of, s)
			}
			for _, j := range of {
				copies[j]++
			}
		}
		for j, n := range copies {
			if n != s+1 {
				t.Fatalf("partition %d is on %d workers, s = %d", j, n, s)
			}
		}
		residual(t, c, n, s)
	})
}

// residual checks a B = 1 for a random survivor set, and that no other weights are nearer for a smaller set.
func residual(t *rapid.T, c *code.Code, n, s int) {
	order := rapid.Permutation(numbers(n)).Draw(t, "order")
	arrived := order[:n-s]
	off, a := distance(c, n, arrived, nil)
	largest := 1.0
	for _, x := range a {
		largest = max(largest, math.Abs(x))
	}
	if !c.Decodes(arrived) || off > 1e-10*largest*largest {
		t.Fatalf("%s, n = %d, s = %d: %v give a B that is off 1 by %g, with weights up to %g", c.Kind(), n, s, arrived, off, largest)
	}
	few := order[:rapid.IntRange(1, n).Draw(t, "few")]
	near, _ := distance(c, n, few, nil)
	other, _ := distance(c, n, few, func() float64 { return rapid.Float64Range(-0.1, 0.1).Draw(t, "moved") })
	if near > other+1e-6 {
		t.Fatalf("%s, n = %d, s = %d: weights of %v are off by %g, others by %g", c.Kind(), n, s, few, near, other)
	}
}

// distance is the 2-norm of a B - 1, with weights that are moved.
func distance(c *code.Code, n int, arrived []int32, moved func() float64) (float64, []float64) {
	a := c.Weights(arrived)
	sum := slices.Repeat([]float64{-1}, n)
	for k, w := range arrived {
		if moved != nil {
			a[k] += moved()
		}
		of, factors := c.Row(int(w))
		for i, j := range of {
			sum[j] += a[k] * factors[i]
		}
	}
	d := 0.0
	for _, x := range sum {
		d += x * x
	}
	return math.Sqrt(d), a
}

func numbers(n int) (all []int32) {
	for i := range n {
		all = append(all, int32(i))
	}
	return all
}

// Equal seeds give equal codes, and another seed another one. The fastest of each group counts.
func TestCodesAreDeterministic(t *testing.T) {
	text := func(seed uint64) string {
		c, err := code.New(code.Spec{Kind: code.Cyclic, Workers: 6, Stragglers: 2, Draws: 10, ConditionMax: 1e6, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		b := ""
		for i := range 6 {
			_, f := c.Row(i)
			b += fmt.Sprint(f)
		}
		return b
	}
	if one := text(1); one != text(1) || one == text(2) {
		t.Error("codes do not follow from their seeds")
	}
	if w := made(t, code.Fractional, 6, 1).Weights([]int32{5, 0, 4, 1, 2}); !slices.Equal(w, []float64{1, 1, 0, 0, 1}) {
		t.Errorf("weights %v; the first of each group counts", w)
	}
}

// Many workers: only some survivor sets are tested, and the code is found in time.
func TestManyWorkers(t *testing.T) {
	c, err := code.New(code.Spec{Kind: code.Cyclic, Workers: 40, Stragglers: 2, Draws: 30, ConditionMax: 1e9, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	w, sets := c.WeightMax()
	t.Logf("n = 40, s = 2: max|a| %.3g over %d sets", w, sets)
	off, _ := distance(c, 40, numbers(40)[2:], nil)
	if off > 1e-6 {
		t.Errorf("a B is off 1 by %g", off)
	}
}

// What cannot be decoded is refused, with the way out.
func TestRefusals(t *testing.T) {
	for _, k := range []struct {
		spec code.Spec
		want string
	}{
		{code.Spec{Kind: code.Cyclic, Workers: 3, Stragglers: 3},
			"3 stragglers of 3 workers; at least one worker must answer: set stragglers to 0 to 2"},
		{code.Spec{Kind: code.Fractional, Workers: 5, Stragglers: 1}, "groups of stragglers + 1 = 2 workers, which does not divide 5 workers"},
		{code.Spec{Kind: code.Cyclic, Workers: 20, Stragglers: 3, Draws: 3, ConditionMax: 5}, "for 20 workers and 3 stragglers has a weight of"},
		{code.Spec{Kind: code.Cyclic, Workers: 20, Stragglers: 3, Draws: 3, ConditionMax: 5},
			"above condition_max 5, so rounding errors would grow as much; take the fractional code"},
		{code.Spec{Kind: code.Cyclic, Workers: 11, Stragglers: 3, Draws: 3, ConditionMax: 5},
			"set fewer stragglers, more draws or a larger condition_max"},
	} {
		if _, err := code.New(k.spec); err == nil || !strings.Contains(err.Error(), k.want) {
			t.Errorf("%+v: %v, want %q", k.spec, err, k.want)
		}
	}
}
