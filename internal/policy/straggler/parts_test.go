package straggler

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// plainPart is the second implementation of Part: it cuts the samples into pieces so small that no draw ends within one.
func plainPart(specs []Spec, e Env, iter, from, to, batch int64) (times, sleep float64) {
	fine := int64(1)
	for _, s := range specs {
		fine *= max(1, s.Draws)
	}
	for at := from * fine; at < to*fine; at++ { // in pieces of 1/(fine*batch) of the batch
		product, add := 1.0, 0.0
		for place, s := range specs {
			e.Place = place
			d := newDraws(e)
			k := at * max(1, s.Draws) / (fine * batch)
			if s.Draws < 2 {
				k = 0
			}
			r := d.of(iter, k)
			x := 1.0
			switch s.Kind {
			case "exponential":
				x = r.ExpFloat64()
			case "normal":
				x = max(0, 1+s.Spread*r.NormFloat64())
			case "lognormal":
				x = math.Exp(s.Spread*r.NormFloat64() - s.Spread*s.Spread/2)
			}
			if s.Sleep > 0 {
				add += float64(s.Sleep) * x
			} else {
				product *= 1 + (s.Factor-1)*x
			}
		}
		times += (product - 1) / float64(fine*(to-from))
		sleep += add / float64(fine*batch)
	}
	return times, sleep
}

// What parts of an iteration take is that of the second implementation, however it is cut, and adds up to what the iteration takes.
func TestPartsOfAnIterationAddUp(t *testing.T) {
	drawn := 0
	rapid.Check(t, func(t *rapid.T) {
		var w Worker
		var specs []Spec
		e := Env{Seed: rapid.Uint64().Draw(t, "seed"), Worker: rapid.IntRange(0, 5).Draw(t, "worker"), PerEpoch: 1}
		for place := range rapid.IntRange(1, 3).Draw(t, "specs") {
			s := Spec{Kind: rapid.SampledFrom([]string{"constant", "exponential", "normal", "lognormal"}).Draw(t, "kind"),
				Spread: rapid.Float64Range(0.01, 2).Draw(t, "spread")}
			if rapid.Bool().Draw(t, "sleeps") {
				s.Sleep = time.Duration(rapid.Int64Range(1e6, 1e9).Draw(t, "sleep"))
			} else {
				s.Factor = 1 + rapid.Float64Range(0.01, 5).Draw(t, "factor-1")
			}
			if s.Kind != "constant" {
				s.Draws = rapid.Int64Range(0, 8).Draw(t, "draws")
				drawn += int(s.Draws)
			}
			e.Place = place
			specs = append(specs, s)
			if err := w.Add(s, e); err != nil {
				t.Fatal(err)
			}
		}
		batch, iter := rapid.Int64Range(1, 20).Draw(t, "batch"), rapid.Int64Range(0, 99).Draw(t, "iteration")
		cuts := rapid.SliceOfN(rapid.Int64Range(0, batch), 0, 4).Draw(t, "cuts")
		cuts = append(cuts, 0, batch, batch+3) // the last part belongs to another worker
		slices.Sort(cuts)
		var times, sleep float64
		for i, to := range cuts[1:] {
			from := cuts[i]
			got := w.Part(iter, from, to, batch)
			if from == to {
				if got != (Amount{}) {
					t.Fatalf("no sample takes %+v", got)
				}
				continue
			}
			wantTimes, wantSleep := plainPart(specs, e, iter, from, to, batch)
			if math.Abs(got.Times-wantTimes) > 1e-9*(1+wantTimes) || math.Abs(float64(got.Sleep)-wantSleep) > 100 {
				t.Fatalf("[%d, %d) of %d takes %+v, want %v times and %v", from, to, batch, got, wantTimes, time.Duration(wantSleep))
			}
			if to <= batch {
				times, sleep = times+got.Times*float64(to-from)/float64(batch), sleep+float64(got.Sleep)
			}
		}
		if all := w.Within(iter); math.Abs(times-all.Times) > 1e-9*(1+times) || math.Abs(sleep-float64(all.Sleep)) > 500 {
			t.Fatalf("the parts take %v times and %v, the iteration %+v", times, time.Duration(sleep), all)
		}
	})
	if drawn == 0 {
		t.Error("no spec draws more than once")
	}
}

// Parts draw apart from each other and from other iterations, with the distribution of their kind; one draw is that
// of an iteration without parts.
func TestDrawsOfPartsAreApart(t *testing.T) {
	var whole, parts Worker
	s := Spec{Kind: "lognormal", Sleep: time.Hour, Spread: 0.5}
	for w, draws := range map[*Worker]int64{&whole: 1, &parts: 16} {
		if s.Draws = draws; w.Add(s, env(1, 0, 0)) != nil {
			t.Fatal("refused")
		}
	}
	seen := map[time.Duration]bool{}
	var sum, squares float64
	const iters = 2000
	for iter := range int64(iters) {
		for k := range int64(16) {
			d := parts.Part(iter, k, k+1, 16).Sleep
			if seen[d] {
				t.Fatalf("iteration %d part %d draws %v again", iter, k, d)
			}
			seen[d] = true
			z := math.Log(float64(16*d)/float64(time.Hour)) + s.Spread*s.Spread/2
			sum, squares = sum+z, squares+z*z
			if k == 0 && math.Abs(float64(16*d-whole.Within(iter).Sleep)) > 64 {
				t.Fatalf("iteration %d: the first part draws %v, the iteration %v", iter, 16*d, whole.Within(iter).Sleep)
			}
		}
	}
	const n = 16 * iters
	if mean, deviation := sum/n, math.Sqrt(squares/n); math.Abs(mean) > 4*0.5/math.Sqrt(n) || math.Abs(deviation-0.5) > 4*0.5/math.Sqrt(2*n) {
		t.Errorf("logarithms have mean %v and deviation %v, want 0 and 0.5", mean, deviation)
	}
}

// Numbers of draws that do not fit together are refused, since every part costs a draw.
func TestDrawsMustFitTogether(t *testing.T) {
	var w Worker
	s := Spec{Kind: "normal", Sleep: ms, Spread: 0.1, Draws: 997}
	if err := w.Add(s, env(1, 0, 0)); err != nil {
		t.Fatal(err)
	}
	s.Draws = 991
	if err := w.Add(s, env(1, 1, 0)); err == nil ||
		!strings.Contains(err.Error(), "988027 parts in all, must be at most 10000; let one number divide the other") {
		t.Error(err)
	}
}
