package local

import (
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// twin says once more what the next round is, from everything that the worker was ever told.
func twin(s Spec, e Env, heard []Now) Round {
	n := heard[len(heard)-1]
	cut := func(steps int64) int64 {
		for n.Left >= 0 && steps > n.Left && steps > 1 {
			steps = max(1, n.Left)
		}
		return max(1, steps)
	}
	switch s.Policy {
	case "averaging", "diloco", "slowmo", "bmuf":
		return withVotes(s, cut(periodTwin(s, e, heard)))
	case "post_local":
		i := slices.IndexFunc(heard, func(n Now) bool { return n.Step >= s.Switch })
		if i < 0 {
			return Round{Steps: 1}
		}
		return withVotes(s, cut(periodTwin(s, e, heard[i:])))
	case "hpsgd":
		if s.Steps == 0 {
			return Round{Steps: 1, Ahead: 1, Open: true}
		}
		return Round{Steps: cut(s.Steps), Ahead: cut(s.Steps)}
	case "easgd":
		return Round{Steps: cut(s.Steps), Ahead: cut(s.Steps)}
	case "streaming_diloco":
		steps := cut(s.Steps / s.Fragments)
		return Round{Steps: steps, Ahead: min(steps, s.Delay)}
	case "async_local":
		if !s.Dynamic {
			return Round{Steps: cut(s.Steps)}
		}
		steps := int64(0)
		for float64(steps)+0.5 <= n.Share*float64(s.Steps) && steps < s.Steps { // halves are rounded up
			steps++
		}
		return Round{Steps: cut(steps)}
	}
	panic(s.Policy)
}

func withVotes(s Spec, steps int64) Round {
	return Round{Steps: steps, Votes: s.Period.Name == "selsync" && steps > 1}
}

// votesTwin says whether a worker votes for an exchange after the last of these steps, whose gradients had these
// norms; close says that rounding decides.
func votesTwin(s Spec, norms []float64) (vote, close bool) {
	smoothed := norms[0]
	for _, norm := range norms[1:] {
		next := (1-s.Period.Smoothing)*smoothed + s.Period.Smoothing*norm
		beyond := math.Abs(next-smoothed) - s.Period.Threshold*smoothed
		vote, close = beyond >= 0, math.Abs(beyond) < 1e-9
		smoothed = next
	}
	return vote, close
}

// periodTwin walks through all rounds to find the steps of the last one.
func periodTwin(s Spec, e Env, heard []Now) int64 {
	n := heard[len(heard)-1]
	switch s.Period.Name {
	case "constant":
		return s.Steps
	case "qsr":
		rate := e.Rate(float64(n.Step))
		x := s.Period.Alpha / rate
		switch {
		case n.Step < e.WarmUp:
			return s.Steps
		case rate == 0 || x*x >= StepsMax:
			return StepsMax
		}
		return max(s.Steps, int64(x*x))
	case "selsync":
		if n.Step < s.Period.Warm {
			return 1
		}
		return s.Steps
	case "adacomm":
		steps, first, since := s.Steps, math.NaN(), int64(0)
		for _, n := range heard {
			known := !math.IsNaN(n.Loss) && !math.IsInf(n.Loss, 0)
			if math.IsNaN(first) && known && n.Loss > 0 {
				first, since = n.Loss, 0
			}
			if known && !math.IsNaN(first) && since >= s.Period.Interval {
				want := math.Ceil(float64(s.Steps) * math.Sqrt(n.Loss/first))
				if want < float64(steps) {
					steps = int64(max(1, want))
				} else {
					steps = max(1, steps/2)
				}
				since = 0
			}
			since++
		}
		return steps
	}
	panic(s.Period.Name)
}

// drawn is a policy and its run.
func drawn(t *rapid.T, policy string) (Spec, Env) {
	entry, _ := All.Lookup(policy)
	s := Defaults()
	s.Policy = policy
	s.Steps = rapid.Int64Range(1, 200).Draw(t, "steps")
	if entry.Periods {
		s.Period.Name = rapid.SampledFrom(Periods.Names()).Draw(t, "period")
	}
	s.Period.Alpha, s.Period.Interval = rapid.Float64Range(1e-3, 3).Draw(t, "alpha"), rapid.Int64Range(1, 5).Draw(t, "interval")
	s.Period.Threshold, s.Period.Smoothing, s.Period.Warm = rapid.Float64Range(0, 1).Draw(t, "threshold"),
		rapid.Float64Range(0.01, 1).Draw(t, "smoothing"), rapid.Int64Range(0, 30).Draw(t, "warm")
	s.Switch = rapid.Int64Range(1, 30).Draw(t, "switch")
	s.Dynamic = rapid.Bool().Draw(t, "dynamic")
	if policy == "hpsgd" && rapid.Bool().Draw(t, "open") {
		s.Steps = 0
	}
	if entry.Fragments {
		s.Fragments = rapid.Int64Range(1, 8).Draw(t, "fragments")
		s.Steps = s.Fragments * rapid.Int64Range(1, 30).Draw(t, "each")
		s.Delay = rapid.Int64Range(0, s.Steps/s.Fragments).Draw(t, "delay")
	}
	rates := rapid.SliceOfN(rapid.SampledFrom([]float64{0, 1e-9, 1e-3, 0.0137, 0.1, 0.37, 2}), 1, 6).Draw(t, "rates")
	e := Env{Workers: rapid.IntRange(1, 9).Draw(t, "workers"), WarmUp: rapid.Int64Range(0, 20).Draw(t, "warm up")}
	e.Rate = func(step float64) float64 { return rates[int(step)%len(rates)] }
	return s, e
}

// next is what a worker hears after a round.
func next(t *rapid.T, step int64) Now {
	n := Now{Step: step, Left: -1, Share: rapid.Float64Range(1e-6, 1).Draw(t, "share")}
	if rapid.Bool().Draw(t, "limited") {
		n.Left = rapid.Int64Range(0, 300).Draw(t, "left")
	}
	n.Loss = rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), 0, 1e-12, 0.3, 0.31, 1, 2.3, 2.9}).Draw(t, "loss")
	if rapid.Bool().Draw(t, "any loss") {
		n.Loss = rapid.Float64Range(0, 9).Draw(t, "value")
	}
	return n
}

// Each policy gives the rounds of its dumb twin, of one step or more, none of which goes beyond the budget. Another policy that recalls
// its memory at any time gives the same rounds from then on.
func TestPoliciesAreTheirDumbTwins(t *testing.T) {
	for _, name := range All.Names()[1:] {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s, e := drawn(t, name)
				p, err := New(s, e)
				if err != nil {
					t.Fatal(err)
				}
				var heard []Now
				var norms []float64
				step := int64(0)
				for range rapid.IntRange(1, 40).Draw(t, "rounds") {
					if rapid.IntRange(0, 4).Draw(t, "resumes") == 0 {
						memory := slices.Clone(p.Memory())
						if p, _ = New(s, e); p.Recall(memory) != nil {
							t.Fatalf("%+v cannot recall its own memory %v", s, memory)
						}
					}
					n := next(t, step)
					heard = append(heard, n)
					got, want := p.Round(n), twin(s, e, heard)
					if got != want {
						t.Fatalf("%+v after %+v: %+v, its twin %+v", s, heard, got, want)
					}
					if got.Steps < 1 || got.Ahead < 0 || got.Ahead > got.Steps || n.Left >= 0 && !got.Open && got.Steps > max(1, n.Left) {
						t.Fatalf("%+v after %+v: %+v", s, n, got)
					}
					step += min(got.Steps, 1000)
					for Votes(p) && rapid.Bool().Draw(t, "another step") {
						norms = append(norms, rapid.SampledFrom([]float64{0.5, 1, 1.1, 1.4, 7}).Draw(t, "norm"))
						vote := Observe(p, norms[len(norms)-1])
						if want, close := votesTwin(s, norms); vote != want && !close {
							t.Fatalf("%+v votes %t after gradients of the norms %v", s.Period, vote, norms)
						}
					}
				}
			})
		})
	}
}

// A policy of constant rounds has the rounds that Constant says, and the others have none.
func TestConstantIsWhatEveryRoundHas(t *testing.T) {
	constant := map[string]bool{}
	for _, name := range All.Names()[1:] {
		rapid.Check(t, func(t *rapid.T) {
			s, e := drawn(t, name)
			p, err := New(s, e)
			if err != nil {
				t.Fatal(err)
			}
			n := next(t, rapid.Int64Range(0, 90).Draw(t, "step"))
			n.Left = -1
			if r, c := p.Round(n), s.Constant(); c > 0 && (r.Steps != c || r.Open) || r.Steps < s.StepsMin() {
				t.Fatalf("%+v: %+v, but constant are %d and at least %d", s, r, c, s.StepsMin())
			} else if c > 0 {
				constant[name] = true
			}
		})
	}
	for _, name := range All.Names()[1:] {
		if constant[name] == (name == "post_local") {
			t.Errorf("%s: constant rounds %t", name, constant[name])
		}
	}
}

// A policy recalls no memory that is none of its own.
func TestMemoriesOfOthersAreRefused(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, e := range All[1:] {
		for _, period := range Periods.Names() {
			s := Defaults()
			s.Policy, s.Steps, s.Period.Name = e.Name, 8, period
			bad := [][]float64{{1}, {1, 2, 3, 4}, {nan}}
			if e.Periods && period == "adacomm" {
				bad = append(bad, nil, []float64{4, 1}, []float64{0, 1, 2}, []float64{1.5, 1, 2}, []float64{2e9, 1, 2},
					[]float64{nan, 1, 2}, []float64{4, -1, 2}, []float64{4, inf, 2}, []float64{4, 0.5, 2},
					[]float64{4, nan, 2}, []float64{4, 1, -1}, []float64{4, 1, nan}, []float64{4, 1, inf})
			} else {
				bad = append(bad, []float64{4, 1, 2})
			}
			if e.Periods && period == "selsync" {
				bad[0][0] = -1
				bad = append(bad, []float64{inf})
			}
			for _, memory := range bad {
				p, err := New(s, Env{Workers: 2, Rate: func(float64) float64 { return 1 }})
				if err != nil {
					t.Fatal(err)
				}
				if err := p.Recall(memory); err == nil || !strings.HasPrefix(err.Error(), "local: ") {
					t.Errorf("%s of period %s recalls %v: %v", e.Name, period, memory, err)
				}
			}
		}
	}
}

func TestWhatMakesNoPolicyIsRefused(t *testing.T) {
	rate := func(float64) float64 { return 1 }
	s := Defaults()
	if p, err := New(s, Env{}); p != nil || err != nil {
		t.Errorf("none: %v, %v", p, err)
	}
	s.Policy = "averging"
	if _, err := New(s, Env{Workers: 1, Rate: rate}); err == nil ||
		!strings.Contains(err.Error(), `no policy "averging"; there are: [none averaging`) {
		t.Errorf("an unknown policy: %v", err)
	}
	for _, name := range All.Names()[1:] {
		s.Policy = name
		for _, e := range []Env{{Workers: 0, Rate: rate}, {Workers: 2}} {
			if _, err := New(s, e); err == nil || !strings.Contains(err.Error(), "workers; a policy needs at least 1") {
				t.Errorf("%s with %d workers, rate %t: %v", name, e.Workers, e.Rate != nil, err)
			}
		}
	}
	s.Policy, s.Period.Name = "averaging", "qrs"
	defer func() {
		if got := recover(); !reflect.DeepEqual(got, "local: period qrs was not checked") {
			t.Errorf("an unknown period: %v", got)
		}
	}()
	_, _ = New(s, Env{Workers: 1, Rate: rate})
}
