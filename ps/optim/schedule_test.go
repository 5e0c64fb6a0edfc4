package optim

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestScale(t *testing.T) {
	for _, c := range []struct {
		what string
		s    Schedule
		iter float64
		want float64
	}{
		{"constant", Schedule{Name: "constant"}, 0, 1},
		{"constant", Schedule{Name: "constant"}, 1e9, 1},
		{"warm-up start", Schedule{Name: "constant", WarmUp: 4}, 0, 0.25},
		{"warm-up between pushes", Schedule{Name: "constant", WarmUp: 4}, 0.5, 0.375},
		{"warm-up last", Schedule{Name: "constant", WarmUp: 4}, 3, 1},
		{"warm-up over", Schedule{Name: "constant", WarmUp: 4}, 100, 1},
		{"every before", Schedule{Name: "step", Every: 10, Factor: 0.5}, 9.99, 1},
		{"every first", Schedule{Name: "step", Every: 10, Factor: 0.5}, 10, 0.5},
		{"every third", Schedule{Name: "step", Every: 10, Factor: 0.5}, 39, 0.125},
		{"at before", Schedule{Name: "step", At: []int64{5, 8}, Factor: 0.1}, 4, 1},
		{"at first", Schedule{Name: "step", At: []int64{5, 8}, Factor: 0.1}, 5, 0.1},
		{"at second", Schedule{Name: "step", At: []int64{5, 8}, Factor: 0.1}, 8, 0.01},
		{"both", Schedule{Name: "step", Every: 2, Factor: 0.5, WarmUp: 8}, 3, 0.25},
	} {
		if got := c.s.Scale(c.iter); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%s: Scale(%v) = %v, want %v", c.what, c.iter, got, c.want)
		}
	}
}

// A step schedule with a regular At is the schedule with Every.
func TestEveryEqualsAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		every := rapid.Int64Range(1, 50).Draw(t, "every")
		factor := rapid.Float64Range(0.01, 2).Draw(t, "factor")
		at := make([]int64, 20)
		for i := range at {
			at[i] = every * int64(i+1)
		}
		iter := rapid.Float64Range(0, float64(every*20)).Draw(t, "iter")
		a := Schedule{Name: "step", Every: every, Factor: factor}.Scale(iter)
		b := Schedule{Name: "step", At: at, Factor: factor}.Scale(iter)
		if a != b {
			t.Fatalf("Scale(%v): every %v, at %v", iter, a, b)
		}
	})
}

func TestScheduleCheck(t *testing.T) {
	for _, s := range []Schedule{
		{Name: "constant"}, {Name: "constant", WarmUp: 3}, {Name: "step", Every: 1, Factor: 0.1},
		{Name: "step", At: []int64{0, 3}, Factor: 0.1},
	} {
		if err := s.Check(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
	for _, c := range []struct {
		s    Schedule
		want string
	}{
		{Schedule{Name: "cosin"}, `schedule name "cosin" is not known; use one of constant, step`},
		{Schedule{Name: "constant", WarmUp: -1}, "warm_up -1 "},
		{Schedule{Name: "step", Every: 1}, "factor 0 "},
		{Schedule{Name: "step", Every: 1, Factor: math.NaN()}, "factor NaN "},
		{Schedule{Name: "step", Every: -5, Factor: 1}, "every -5 "},
		{Schedule{Name: "step", Factor: 1}, "every 0 and 0 values in at"},
		{Schedule{Name: "step", Every: 1, At: []int64{1}, Factor: 1}, "every 1 and 1 values in at"},
		{Schedule{Name: "step", At: []int64{4, 4}, Factor: 1}, "value 4 at place 1"},
	} {
		if err := c.s.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want it to contain %q", c.s, err, c.want)
		}
	}
}

func TestTablesAndChecksAgree(t *testing.T) {
	for _, n := range Names() {
		if _, err := New(Spec{Name: n, LR: 1, Momentum: 0.9}); err != nil {
			t.Error(err)
		}
	}
	for _, n := range ScheduleNames() {
		s := Schedule{Name: n, Every: 1, Factor: 0.5}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		if got := s.Scale(0); got != 1 {
			t.Errorf("%s: Scale(0) = %v, want 1", n, got)
		}
	}
}
