package scheme_test

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// sums is the arithmetic of one shard of one element, as a driver does it with update: add.
type sums struct {
	slots  map[scheme.Slot]float64
	params float64
}

// update is the delta that worker w pushes in iteration i.
func update(w int32, i int64) float64 { return math.Sin(float64(7*w)+float64(i)) + 0.1*float64(w) }

// obey follows decisions about pushes, each the sum over samples of the delta.
func (s *sums) obey(ds []scheme.Decision, samples int64) {
	if s.slots == nil {
		s.slots = map[scheme.Slot]float64{}
	}
	for _, d := range ds {
		switch d.Kind {
		case scheme.Fold:
			src := s.slots[d.Src]
			if d.Src == scheme.SlotPush {
				src = float64(samples) * update(d.Worker, d.Iter)
			}
			s.slots[d.Dst] = d.Scale*s.slots[d.Dst] + d.Weight*src
		case scheme.Commit:
			s.params += d.Scale * d.Weight * s.slots[scheme.SlotPending]
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*(1+math.Abs(b)) }

// TestConSGD: ConSGD [P, R]: W := W + lambda_g * u with lambda_g constant, 1/N by default [M]; the order of pushes does
// not matter, and no update moves the parameters by more than lambda_g * |u|. If all N workers push once from the same
// W, the parameters move by the mean. lambda_g = 1 is the sum of updates of the classic SSP.
func TestConSGD(t *testing.T) {
	for _, weight := range []float64{0, 1} {
		v := setting(t, "consgd", "fold=arrival staleness=1 release=soft")
		v.Common.Weight = weight
		rapid.Check(t, func(rt *rapid.T) {
			env := schemetest.DrawEnv(rt)
			lambda := weight
			if lambda == 0 {
				lambda = 1 / float64(env.Workers)
			}
			var s sums
			want := 0.0
			history, answers := record(rt, env, v.New(env), true)
			for k, ev := range history {
				before := s.params
				s.obey(answers[k], ev.Samples)
				if ev.Kind == scheme.Pushed {
					u := update(ev.Worker, ev.Iter)
					want += lambda * u
					if moved := math.Abs(s.params - before); moved > lambda*math.Abs(u)+1e-12 {
						rt.Fatalf("%v moves the parameters by %v, more than %v of %v", ev, moved, lambda, u)
					}
				}
			}
			if !near(s.params, want) {
				rt.Fatalf("parameters %v, the sum over all pushes is %v", s.params, want)
			}
		})
	}
}

// TestConSGDGateIsSSP: ConSGD [P]: the gate is that of SSP, with ASP and BSP as the ends: the same replies.
func TestConSGDGateIsSSP(t *testing.T) {
	for _, release := range releases {
		for _, s := range []int{0, 1, 3} {
			keys := fmt.Sprintf("fold=arrival staleness=%d release=%s", s, release)
			law(t, setting(t, "ssp", keys), setting(t, "consgd", keys), false)
			law(t, setting(t, "ssp", keys), setting(t, "dynsgd", "versions=single "+keys), true)
			law(t, setting(t, "ssp", keys), setting(t, "dynsgd", "versions=multi "+keys), true)
		}
		law(t, setting(t, "asp", "fold=arrival"), setting(t, "consgd", "fold=arrival staleness=-1 release="+release), false)
	}
}
