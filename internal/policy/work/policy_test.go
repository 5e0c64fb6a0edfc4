package work

import (
	"flag"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// cost is what a modelled worker takes for a batch.
type cost struct{ a, c float64 } // nanoseconds

func (c cost) of(batch int) time.Duration { return time.Duration(c.a + c.c*float64(batch)) }

// epoch is what workers of these costs measure under a plan.
func measure(p Plan, e Env, costs []cost) []Measured {
	rows := p.Rows(e.Rows)
	all := make([]Measured, len(costs))
	for i, b := range p.Batches {
		if b == 0 {
			continue
		}
		m := Measured{Iterations: p.Iterations, Median: costs[i].of(b)}
		for k := range p.Iterations {
			n := b
			if p.Epoch && k == p.Iterations-1 {
				n = rows[i] - int(p.Iterations-1)*b
			}
			m.Samples += int64(n)
			m.Took += costs[i].of(n)
		}
		all[i] = m
	}
	return all
}

func TestDBSByHand(t *testing.T) {
	e := Env{Workers: 4, Batch: 512, Max: 512, Rows: 5120}
	p, err := New(Spec{Policy: "dbs"}, e)
	if err != nil {
		t.Fatal(err)
	}
	first := p.Start()
	if !slices.Equal(first.Batches, []int{128, 128, 128, 128}) || first.Iterations != 10 || !first.Epoch {
		t.Errorf("the first plan is %+v", first)
	}
	costs := []cost{{0, 1e6}, {0, 1e6}, {0, 1e6}, {0, 3e6}}
	for range 3 { // one epoch suffices, and the next ones change nothing
		second := p.Step(measure(first, e, costs))
		if want := []int{154, 154, 153, 51}; !slices.Equal(second.Batches, want) {
			t.Errorf("dealt %v, want %v", second.Batches, want)
		}
		var least, most time.Duration
		for i, b := range second.Batches {
			if d := costs[i].of(b); i == 0 {
				least, most = d, d
			} else {
				least, most = min(least, d), max(most, d)
			}
		}
		if r := float64(most) / float64(least); r > 1.01 {
			t.Errorf("finish times differ by %.3f", r)
		}
		first = second
	}
}

// authors is the rule of the authors' code, r = (p/t) / sum of p/t for shares p and times t of an epoch, with true largest remainders.
func authors(e Env, p Plan, measured []Measured) []float64 {
	rows := p.Rows(e.Rows)
	y := make([]float64, len(measured))
	sum := 0.0
	for i, m := range measured {
		y[i] = float64(rows[i]) / float64(e.Rows) / m.Took.Seconds()
		sum += y[i]
	}
	for i := range y {
		y[i] *= float64(e.Batch) / sum
	}
	return y
}

func envOf(t *rapid.T) (Env, []cost) {
	e := Env{Workers: rapid.IntRange(1, 8).Draw(t, "workers")}
	e.Batch = rapid.IntRange(e.Workers, 60*e.Workers).Draw(t, "batch")
	e.Max = rapid.IntRange((e.Batch+e.Workers-1)/e.Workers, e.Batch).Draw(t, "max")
	e.Rows = rapid.IntRange(e.Workers, 30*e.Batch).Draw(t, "rows")
	costs := make([]cost, e.Workers)
	for i := range costs {
		costs[i] = cost{rapid.Float64Range(0, 1e7).Draw(t, "a"), rapid.Float64Range(1e4, 1e7).Draw(t, "c")}
	}
	return e, costs
}

// isPlan checks what every plan must be.
func isPlan(t *rapid.T, e Env, p Plan, left []bool) {
	sum, n := 0, 0
	for i, b := range p.Batches {
		if left != nil && left[i] {
			if b != 0 {
				t.Fatalf("worker %d has left, and gets %d samples", i, b)
			}
			continue
		}
		n++
		sum += b
		if b < 1 || b > e.Max {
			t.Fatalf("%+v: worker %d gets %d samples", e, i, b)
		}
	}
	if sum != min(e.Batch, n*e.Max) {
		t.Fatalf("%+v: %v adds up to %d", e, p.Batches, sum)
	}
}

func TestDBSIsTheAuthorsRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, costs := envOf(t)
		p := newDBS(Spec{}, e)
		plan := p.Start()
		isPlan(t, e, plan, nil)
		for range 4 {
			measured := measure(plan, e, costs)
			want := authors(e, plan, measured)
			next := p.Step(measured)
			isPlan(t, e, next, nil)
			for i, y := range want {
				if free := y >= 1 && y <= float64(e.Max); free && slices.Min(want) >= 1 && slices.Max(want) <= float64(e.Max) &&
					math.Abs(float64(next.Batches[i])-y) >= 1 {
					t.Fatalf("%+v: dealt %v, by the authors' rule %v", e, next.Batches, want)
				}
			}
			plan = next
		}
	})
}

// With a fixed part of the cost, too, the batches settle where all finish together, as far as whole samples and limits allow.
func TestBatchesSettleAtEqualTimes(t *testing.T) {
	for name, rounds := range map[string]int{"dbs": 40, "r2sp_batch": 4} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				e, costs := envOf(t)
				e.Batch *= 20
				e.Max, e.Rows = e.Batch, 40*e.Batch
				for i := range costs {
					costs[i].a = min(costs[i].a, 5*costs[i].c) // a fixed part of many samples leaves a slow worker none
				}
				s := Defaults()
				s.Policy, s.Delta, s.Rounds = name, 1e-9, 1
				p, err := New(s, e)
				if err != nil {
					t.Fatal(err)
				}
				plan := p.Start()
				for range rounds {
					plan = p.Step(measure(plan, e, costs))
					isPlan(t, e, plan, nil)
				}
				least, most, grain := math.Inf(1), 0.0, 0.0
				for i, b := range plan.Batches {
					d := float64(costs[i].of(b))
					if b > 1 { // else the worker is as fast as it can be
						least, most = min(least, d), max(most, d)
					}
					grain = max(grain, costs[i].c)
				}
				if most-least > 4*grain+0.03*most {
					t.Fatalf("%+v, %v: after %d plans %v, times from %.0f to %.0f, a sample %.0f", e, costs, rounds, plan.Batches, least, most, grain)
				}
			})
		})
	}
}

// Batches that fit stay, and so do those that are unfit for fewer profiles than rounds.
func TestR2SPBatchHasHysteresis(t *testing.T) {
	e := Env{Workers: 3, Batch: 60, Max: 60, Rows: 6000}
	s := Defaults()
	p := newR2SPBatch(s, e)
	took := func(ms ...int) (all []Measured) {
		for _, d := range ms {
			all = append(all, Measured{Iterations: 20, Samples: 400, Took: time.Duration(20*d) * time.Millisecond,
				Median: time.Duration(d) * time.Millisecond})
		}
		return all
	}
	plan := p.Start()
	for i, step := range []struct {
		took []Measured
		want []int
	}{
		{took(10, 10, 20), []int{24, 24, 12}}, // the first profile deals at once
		{took(12, 12, 12), []int{24, 24, 12}},
		{took(12, 12, 24), []int{24, 24, 12}}, // unfit once
		{took(12, 12, 12), []int{24, 24, 12}}, // fits again
		{took(12, 12, 24), []int{24, 24, 12}}, // once, twice
		{took(12, 12, 24), []int{24, 24, 12}},
		// the line of the slow worker through (20, 20 ms) and (12, 24 ms) falls, so it counts as 1.8 ms a sample
		{took(12, 12, 24), []int{28, 28, 4}},
	} {
		if i == 6 {
			plan = p.Step(step.took)
			if plan.Batches[2] >= 12 || plan.Batches[0] != plan.Batches[1] {
				t.Errorf("after three unfit profiles %v", plan.Batches)
			}
			continue
		}
		if plan = p.Step(step.took); !slices.Equal(plan.Batches, step.want) || plan.Iterations != 20 || plan.Epoch {
			t.Errorf("step %d: %+v, want %v", i, plan, step.want)
		}
	}
}

// Workers leave at any time: they get nothing, and the others share what they can take.
func TestPoliciesDealToThoseThatAreLeft(t *testing.T) {
	for _, name := range All.NamesOf(Entry.Deals) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				e, costs := envOf(t)
				s := Defaults()
				s.Policy = name
				p, err := New(s, e)
				if err != nil {
					t.Fatal(err)
				}
				plan, left := p.Start(), make([]bool, e.Workers)
				for range rapid.IntRange(1, 6).Draw(t, "plans") {
					if w := rapid.IntRange(0, 2*e.Workers).Draw(t, "leaves"); w < e.Workers &&
						slices.Index(left, false) != slices.Index(left[w:], false)+w || w < e.Workers && count(left) < e.Workers-1 {
						left[w] = true
					}
					measured := measure(plan, e, costs)
					for w := range left {
						if left[w] {
							measured[w] = Measured{}
						} else if rapid.IntRange(0, 9).Draw(t, "still") == 0 {
							measured[w].Took, measured[w].Median = 0, 0 // a clock that did not move
						}
					}
					if count(left) == e.Workers {
						return
					}
					plan = p.Step(measured)
					isPlan(t, e, plan, left)
				}
			})
		})
	}
}

func count(left []bool) (n int) {
	for _, l := range left {
		if l {
			n++
		}
	}
	return n
}

// A policy that recalls the memory of another goes on as that one does, and refuses memories that are none.
func TestAPolicyResumes(t *testing.T) {
	for _, name := range All.NamesOf(Entry.Deals) {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				e, costs := envOf(t)
				s := Defaults()
				s.Policy, s.Rounds = name, rapid.IntRange(1, 3).Draw(t, "rounds")
				p, _ := New(s, e)
				plan := p.Start()
				for range rapid.IntRange(0, 5).Draw(t, "before") {
					plan = p.Step(measure(plan, e, costs))
				}
				again, _ := New(s, e)
				memory := p.Memory()
				if err := again.Recall(plan.Batches, memory); err != nil {
					t.Fatal(err)
				}
				for i := range costs {
					costs[i].c *= rapid.SampledFrom([]float64{0.5, 1, 3}).Draw(t, "change")
				}
				got := plan
				for range 5 {
					plan, got = p.Step(measure(plan, e, costs)), again.Step(measure(got, e, costs))
					if !slices.Equal(plan.Batches, got.Batches) {
						t.Fatalf("%v after a resume, %v without", got.Batches, plan.Batches)
					}
				}
				if len(memory) == 0 {
					return
				}
				memory[rapid.IntRange(0, len(memory)-1).Draw(t, "at")] = rapid.SampledFrom([]float64{-1, math.NaN(), math.Inf(1),
					1e30}).Draw(t, "value")
				if fresh, _ := New(s, e); fresh.Recall(plan.Batches, memory) == nil || fresh.Recall(plan.Batches, memory[1:]) == nil {
					t.Fatalf("%v was recalled", memory)
				}
			})
		})
	}
}

func TestWhatCannotBeDealtIsRefused(t *testing.T) {
	for _, e := range []Env{{Workers: 0, Batch: 1, Max: 1, Rows: 1}, {Workers: 4, Batch: 3, Max: 3, Rows: 9},
		{Workers: 4, Batch: 9, Max: 2, Rows: 9}, {Workers: 4, Batch: 8, Max: 8, Rows: 3}} {
		if _, err := New(Spec{Policy: "dbs"}, e); err == nil {
			t.Errorf("%+v was accepted", e)
		}
	}
	if _, err := New(Spec{Policy: "none"}, Env{Workers: 1, Batch: 1, Max: 1, Rows: 1}); err == nil {
		t.Error("an unknown policy was accepted")
	}
	if p, err := New(Defaults(), Env{Workers: 2, Batch: 2, Max: 1, Rows: 2}); p != nil || err != nil {
		t.Errorf("fixed: %v, %v", p, err)
	}
}

var update = flag.Bool("update", false, "write the goldens anew")

// What each policy deals, plan by plan, to four workers, one of which is slow from the third plan to the fifth, and
// one of which is lost after the seventh.
func TestScript(t *testing.T) {
	var b strings.Builder
	b.WriteString("Batches of four workers: 2 ms and 1 ms a sample; worker 3 takes 3 ms a sample in plans 3 to 5, and " +
		"worker 1 is lost after plan 7.\n")
	e := Env{Workers: 4, Batch: 96, Max: 60, Rows: 1000}
	for _, entry := range All {
		name := entry.Name
		if !entry.Deals() {
			continue
		}
		s := Defaults()
		s.Policy, s.Rounds = name, 2
		p, err := New(s, e)
		if err != nil {
			t.Fatal(err)
		}
		plan := p.Start()
		for k := 1; ; k++ {
			costs := []cost{{2e6, 1e6}, {2e6, 1e6}, {2e6, 1e6}, {2e6, 1e6}}
			if k >= 3 && k <= 5 {
				costs[3].c = 3e6
			}
			measured := measure(plan, e, costs)
			fmt.Fprintf(&b, "\n%-10s plan %d, %d iterations: ", name, k, plan.Iterations)
			for w, m := range measured {
				if m.Iterations > 0 {
					fmt.Fprintf(&b, "  %2d in %5.1f ms", plan.Batches[w], float64(m.Median)/1e6)
				} else {
					fmt.Fprint(&b, "  lost           ")
				}
			}
			if k == 9 {
				break
			}
			if k >= 7 {
				measured[1] = Measured{}
			}
			plan = p.Step(measured)
		}
		b.WriteByte('\n')
	}
	const file = "testdata/script.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%s\nwant\n%s\ngo test ./internal/policy/work -update writes it anew", &b, want)
	}
}

// greedy deals one sample after the other to the worker that would end first with it: a second implementation of R2SP's batches.
func greedy(e Env, costs []cost) []int {
	batches := slices.Repeat([]int{1}, len(costs))
	for left := e.Batch - len(costs); left > 0; left-- {
		best := -1
		for i, c := range costs {
			if batches[i] < e.Max && (best < 0 || c.a+c.c*float64(batches[i]+1) < costs[best].a+costs[best].c*float64(batches[best]+1)) {
				best = i
			}
		}
		batches[best]++
	}
	return batches
}

// Once it knows the line of every worker, r2sp_batch deals as one who gives each sample to the worker that would end
// first, to within a sample a worker.
func TestR2SPBatchIsItsTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e, costs := envOf(t)
		s := Defaults()
		s.Policy, s.Rounds, s.Delta = "r2sp_batch", 1, 1e-12
		p, err := New(s, e)
		if err != nil {
			t.Fatal(err)
		}
		r := p.(*r2spBatch)
		r.Start()
		for i, c := range costs { // two points of the line of each
			r.points[i] = []point{{1, c.a + c.c}, {9, c.a + 9*c.c}}
			if c.a < 1 || c.c < 1e-2*(c.a+9*c.c) { // as good as no cost of a sample, or no fixed cost: another line is assumed
				return
			}
		}
		got, want := r.deal(slices.Repeat([]float64{1}, e.Workers)), greedy(e, costs)
		for i := range got {
			if d := got[i] - want[i]; d < -1 || d > 1 {
				t.Fatalf("%+v, %v: dealt %v, one by one %v", e, costs, got, want)
			}
		}
	})
}
