package straggler

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

var update = flag.Bool("update", false, "write the goldens anew")

const ms = time.Millisecond

// spec returns the defaults of a kind, with a factor of 3 if it takes one.
func spec(kind string) Spec {
	s := Defaults()
	s.Kind = kind
	switch kind {
	case "fluentps":
		s.Sleep = 20 * ms
	case "dbs", "trace":
	default:
		s.Factor = 3
	}
	return s
}

// env is worker w of a run whose epochs have 10 iterations, and a trace of 4 iterations.
func env(seed uint64, place, w int) Env {
	return Env{Seed: seed, Place: place, Worker: w, PerEpoch: 10,
		Trace: Trace{{Own: 9 * ms}, {Own: 5 * ms, Push: ms}, {Own: 6 * ms}, {Own: 7 * ms}}}
}

func injector(t interface{ Fatal(args ...any) }, s Spec, e Env) Injector {
	i, err := New(s, e)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// The first iterations of each kind, of an iteration that computes for 10 ms by itself.
func TestScriptOfEachKind(t *testing.T) {
	var b strings.Builder
	b.WriteString("What each kind adds to iterations that compute for 10 ms, in ms; worker 0, seed 1, 10 iterations an epoch.\n\n")
	for _, e := range All {
		s := spec(e.Name)
		s.Enter, s.Leave, s.Chance, s.EpochsMax = 0.2, 0.3, 0.5, 5
		i := injector(t, s, env(1, 0, 0))
		fmt.Fprintf(&b, "%-12s", e.Name)
		for iter := range int64(24) {
			fmt.Fprintf(&b, " %.1f", float64(i.Draw(iter).Of(10*ms))/float64(ms))
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
		t.Errorf("got\n%s\nwant\n%s\ngo test ./internal/policy/straggler -update writes it anew", &b, want)
	}
}

// anySpec draws a spec of some kind.
func anySpec(t *rapid.T) Spec {
	s := spec(rapid.SampledFrom(All.Names()).Draw(t, "kind"))
	if s.Factor > 0 {
		if s.Factor = 1 + rapid.Float64Range(0.01, 20).Draw(t, "factor-1"); rapid.Bool().Draw(t, "sleeps") {
			s.Factor, s.Sleep = 0, time.Duration(rapid.Int64Range(1, 1e9).Draw(t, "sleep"))
		}
	}
	s.Spread = rapid.Float64Range(0.001, 10).Draw(t, "spread")
	s.Enter, s.Leave, s.Chance = rapid.Float64Range(0.001, 1).Draw(t, "enter"),
		rapid.Float64Range(0.001, 1).Draw(t, "leave"), rapid.Float64Range(0.001, 1).Draw(t, "chance")
	s.SleepMax = s.SleepMin + time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "more"))
	s.EpochsMax = s.EpochsMin + rapid.Int64Range(0, 30).Draw(t, "epochs")
	s.Every = rapid.IntRange(1, 4).Draw(t, "every")
	s.From = rapid.Int64Range(0, 20).Draw(t, "from")
	if rapid.Bool().Draw(t, "ends") {
		s.Until = s.From + rapid.Int64Range(1, 50).Draw(t, "length")
	}
	return s
}

// What is drawn for an iteration is never negative, follows from the arguments alone in whatever order iterations come, is nothing
// outside of from and until, and equals what the second implementation draws.
func TestLawsOfInjectors(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, e := anySpec(t), env(rapid.Uint64().Draw(t, "seed"), rapid.IntRange(0, 3).Draw(t, "place"), rapid.IntRange(0, 8).Draw(t, "worker"))
		e.PerEpoch = rapid.Int64Range(1, 12).Draw(t, "per epoch")
		i, again := injector(t, s, e), injector(t, s, e)
		if s.Kind == "fluentps" && e.Worker%s.Every != 0 {
			if i != nil {
				t.Fatalf("worker %d is slowed, every %d", e.Worker, s.Every)
			}
			return
		}
		own := time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "own"))
		for _, iter := range rapid.SliceOfN(rapid.Int64Range(0, 200), 1, 40).Draw(t, "iterations") {
			a := i.Draw(iter)
			if a.Times < 0 || a.Sleep < 0 || a.Least < 0 || a.Of(own) < 0 {
				t.Fatalf("iteration %d: %+v, and %v of %v", iter, a, a.Of(own), own)
			}
			in := iter >= s.From && (s.Until == 0 || iter < s.Until)
			if !in && a != (Amount{}) {
				t.Fatalf("iteration %d is not from %d until %d, and gets %+v", iter, s.From, s.Until, a)
			}
			if in {
				if want := plainly(s, e, iter, own); a.Of(own) != want {
					t.Fatalf("iteration %d: %v added, want %v", iter, a.Of(own), want)
				}
			}
		}
		for iter := range int64(60) { // in order, as in a run
			if in := injector(t, s, e); again.Draw(iter) != in.Draw(iter) {
				t.Fatalf("iteration %d depends on what was drawn before", iter)
			}
		}
	})
}

// plainly is the second implementation: what an iteration gets, made anew from the first iteration on.
func plainly(s Spec, e Env, iter int64, own time.Duration) time.Duration {
	of := func(x float64) time.Duration { // x parts
		if x < 0 {
			x = 0
		}
		if s.Sleep > 0 {
			return time.Duration(min(float64(s.Sleep)*x, 1e17))
		}
		times := (s.Factor - 1) * x
		return time.Duration(times * float64(own))
	}
	d := newDraws(e)
	switch s.Kind {
	case "constant":
		return of(1)
	case "exponential":
		return of(d.at(iter).ExpFloat64())
	case "normal":
		return of(1 + float64(s.Spread*d.at(iter).NormFloat64()))
	case "lognormal":
		return of(math.Exp(float64(s.Spread*d.at(iter).NormFloat64()) - s.Spread*s.Spread/2))
	case "two_state":
		slow := false
		for k := range iter + 1 {
			switch p := d.at(k).Float64(); {
			case slow && p < s.Leave:
				slow = false
			case !slow && p < s.Enter:
				slow = true
			}
		}
		if slow {
			return of(1)
		}
		return 0
	case "dbs":
		slowed := map[int64]time.Duration{}
		for epoch := int64(0); epoch <= iter/e.PerEpoch; epoch++ {
			if _, is := slowed[epoch]; is {
				continue
			}
			r := d.at(epoch)
			if r.Float64() >= s.Chance {
				continue
			}
			n := s.EpochsMin + r.Int64N(s.EpochsMax-s.EpochsMin+1)
			sleep := s.SleepMin + time.Duration(r.Int64N(int64(s.SleepMax-s.SleepMin)+1))
			for k := range n {
				slowed[epoch+k] = sleep
			}
		}
		return slowed[iter/e.PerEpoch] / time.Duration(e.PerEpoch)
	case "fluentps":
		return of(1+float64(s.Spread*d.at(iter).NormFloat64())) / ms * ms
	case "trace":
		all := slices.Clone(e.Trace)
		for int64(len(all)) <= iter {
			all = append(all, e.Trace[1:]...)
		}
		return max(0, all[iter].Own-all[iter].Push-own)
	}
	panic(s.Kind)
}

// Draws of workers, of places in the list of faults, of seeds and of iterations are apart.
func TestDrawsAreApart(t *testing.T) {
	seen := map[time.Duration]string{}
	for _, seed := range []uint64{1, 2} {
		for place := range 2 {
			for worker := range 3 {
				i := injector(t, Spec{Kind: "exponential", Sleep: time.Hour}, env(seed, place, worker))
				for iter := range int64(500) {
					d, who := i.Draw(iter).Sleep, fmt.Sprint(seed, place, worker, iter)
					if seen[d] != "" {
						t.Fatalf("%s draws %v, and so does %s", who, d, seen[d])
					}
					seen[d] = who
				}
			}
		}
	}
}

// The random kinds have the distributions that the table names (Kolmogorov and Smirnov's distance of 20,000 draws; chance makes it
// exceed 0.0138 once in 1,000 seeds).
func TestDistributionsAgainstTheirClosedForms(t *testing.T) {
	phi := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	const n, spread = 20_000, 0.5
	for kind, cdf := range map[string]func(x float64) float64{ // of parts, for x > 0
		"exponential": func(x float64) float64 { return 1 - math.Exp(-x) },
		"normal":      func(x float64) float64 { return phi((x - 1) / spread) },
		"lognormal":   func(x float64) float64 { return phi((math.Log(x) + spread*spread/2) / spread) },
	} {
		s := Spec{Kind: kind, Factor: 2, Spread: spread}
		i := injector(t, s, env(7, 0, 0))
		var x []float64
		zero := 0
		for iter := range int64(n) {
			if p := i.Draw(iter).Times; p > 0 {
				x = append(x, p)
			} else {
				zero++
			}
		}
		slices.Sort(x)
		gap := 0.0
		for k, v := range x {
			p := cdf(v)
			gap = max(gap, math.Abs(p-float64(zero+k)/n), math.Abs(p-float64(zero+k+1)/n))
		}
		t.Logf("%s: distance %.4f, %d zeros", kind, gap, zero)
		if gap > 0.0138 {
			t.Errorf("%s: %.4f from its distribution", kind, gap)
		}
		if want := n * phi(-1/spread); kind == "normal" && math.Abs(float64(zero)-want) > 4*math.Sqrt(want) {
			t.Errorf("normal: %d zeros, want %.0f", zero, want)
		}
	}
}

// Slow phases take enter/(enter+leave) of the iterations, and 1/leave of them each. Slow epochs are
// L/(L + (1-p)/p) of all for a mean length L, since a coin with chance p is thrown after each.
func TestPhasesAgainstTheirClosedForms(t *testing.T) {
	phases := func(s Spec, n int64) (share, length float64) {
		i := injector(t, s, Env{Seed: 3, PerEpoch: 1})
		slow, runs, was := 0, 0, false
		for iter := range n {
			a := i.Draw(iter)
			is := a.Sleep > 0
			if is {
				slow++
				if !was {
					runs++
				}
			}
			was = is
		}
		return float64(slow) / float64(n), float64(slow) / float64(runs)
	}
	near := func(what string, got, want, share float64) {
		t.Helper()
		if math.Abs(got-want) > share*want {
			t.Errorf("%s: %.4g, want %.4g within %g %%", what, got, want, 100*share)
		}
	}
	two := Spec{Kind: "two_state", Sleep: ms, Enter: 0.05, Leave: 0.2}
	share, length := phases(two, 200_000)
	near("two_state, share of iterations", share, 0.2, 0.03)
	near("two_state, iterations of a phase", length, 5, 0.03)
	d := spec("dbs")
	share, _ = phases(d, 200_000)
	near("dbs, share of epochs", share, 12/(12+0.9/0.1), 0.03)
	i := injector(t, d, Env{Seed: 5, PerEpoch: 4})
	seen := map[time.Duration]bool{}
	for iter := range int64(40_000) {
		if s := i.Draw(iter).Sleep; s > 0 {
			if s*4 < 5*time.Second-4 || s*4 > 10*time.Second {
				t.Fatalf("iteration %d of 4 in an epoch: %v", iter, s)
			}
			seen[s] = true
		}
	}
	if len(seen) < 100 {
		t.Errorf("only %d lengths of slow epochs", len(seen))
	}
}

// Factors multiply each other, whatever their order, and sleeps are added. A replayed iteration is as long as recorded before factors.
func TestSlownessOfAWorkerAddsUp(t *testing.T) {
	specs := []Spec{{Kind: "constant", Factor: 3}, {Kind: "constant", Sleep: 4 * ms}, {Kind: "constant", Factor: 2},
		{Kind: "trace", Until: 2}, {Kind: "fluentps", Sleep: 20 * ms, Spread: 0.001, Every: 1}}
	for _, order := range [][]int{{0, 1, 2, 3, 4}, {4, 3, 2, 1, 0}, {1, 3, 0, 4, 2}} {
		var w Worker
		if !w.None() {
			t.Error("no slowness is some")
		}
		for _, k := range order {
			if err := w.Add(specs[k], env(1, k, 0)); err != nil {
				t.Fatal(err)
			}
		}
		for iter, want := range []time.Duration{6*9*ms + 4*ms - 2*ms, 6*4*ms + 4*ms - 2*ms, 5*2*ms + 4*ms} { // 2 ms of its own computing
			if got := w.Within(int64(iter)).Of(2 * ms); got != want {
				t.Errorf("order %v, iteration %d: %v, want %v", order, iter, got, want)
			}
			r, ok := w.Recorded(int64(iter))
			if ok != (iter < 2) || ok && r != env(1, 0, 0).Trace[iter] {
				t.Errorf("order %v, iteration %d replays %+v, %t", order, iter, r, ok)
			}
		}
		if b := w.Before(0); b != 0 {
			t.Errorf("%v before the first iteration, which follows no update", b)
		}
		if b := w.Before(1); b < 19*ms || b > 20*ms {
			t.Errorf("%v after an update, want 20ms or a little less", b)
		}
	}
}

func TestUnknownKindsAreRefused(t *testing.T) {
	if _, err := New(Spec{Kind: "gauss"}, Env{}); err == nil || !strings.Contains(err.Error(), "no kind \"gauss\"; there are: [constant") {
		t.Error(err)
	}
}
