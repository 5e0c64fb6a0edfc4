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
		{"cosine start", Schedule{Name: "cosine", Over: 10}, 0, 1},
		{"cosine third", Schedule{Name: "cosine", Over: 9}, 3, 0.75}, // cos 60 degrees is 1/2
		{"cosine half", Schedule{Name: "cosine", Over: 10}, 5, 0.5},
		{"cosine half to a floor", Schedule{Name: "cosine", Over: 10, Floor: 0.2}, 5, 0.6},
		{"cosine end", Schedule{Name: "cosine", Over: 10, Floor: 0.2}, 10, 0.2},
		{"cosine long after", Schedule{Name: "cosine", Over: 10, Floor: 0.2}, 1e9, 0.2},
		{"cosine in warm-up", Schedule{Name: "cosine", Over: 10, WarmUp: 4}, 1, 0.5},
		{"cosine half after warm-up", Schedule{Name: "cosine", Over: 10, WarmUp: 4}, 9, 0.5},
		{"poly half", Schedule{Name: "poly", Over: 10, Power: 2}, 5, 0.25},
		{"poly between pushes", Schedule{Name: "poly", Over: 10, Power: 1}, 2.5, 0.75},
		{"poly half to a floor", Schedule{Name: "poly", Over: 10, Power: 2, Floor: 0.2}, 5, 0.4},
		{"poly end", Schedule{Name: "poly", Over: 10, Power: 2}, 10, 0},
		{"inv at once", Schedule{Name: "inv", Gamma: 1e-4, Power: 0.75}, 0, 1},
		{"inv after 10000 iterations of the LeNet solver", Schedule{Name: "inv", Gamma: 1e-4, Power: 0.75}, 10000, 0.5946035575013605},
		{"inv as 1/sqrt(t)", Schedule{Name: "inv", Gamma: 1, Power: 0.5}, 15, 0.25},
		{"inv in warm-up", Schedule{Name: "inv", Gamma: 1, Power: 0.5, WarmUp: 4}, 1, 0.5},
		{"inv after warm-up", Schedule{Name: "inv", Gamma: 1, Power: 0.5, WarmUp: 4}, 7, 0.5},
		// of torch.optim.lr_scheduler.OneCycleLR(max_lr=1, total_steps=20, div_factor=25, final_div_factor=1e4, cycle_momentum=False)
		{"one cycle start", oneCycleOf(20), 0, 0.04},
		{"one cycle rising", oneCycleOf(20), 2, 0.3716718427000252},
		{"one cycle top", oneCycleOf(20), 5, 1},
		{"one cycle falling", oneCycleOf(20), 9, 0.8117456539497631},
		{"one cycle half", oneCycleOf(20), 12, 0.500002},
		{"one cycle end", oneCycleOf(20), 19, 4e-6},
		{"one cycle long after", oneCycleOf(20), 1e9, 4e-6},
		{"one cycle without a rise", Schedule{Name: "one_cycle", Over: 3, Rise: 0.1, Start: 0.5}, 0, 1},
		{"poly half after warm-up", Schedule{Name: "poly", Over: 10, Power: 3, WarmUp: 7}, 12, 0.125},
	} {
		if got := c.s.Scale(c.iter); math.Abs(got-c.want) > 1e-15 {
			t.Errorf("%s: Scale(%v) = %v, want %v", c.what, c.iter, got, c.want)
		}
	}
}

func oneCycleOf(over int64) Schedule {
	return Schedule{Name: "one_cycle", Over: over, Rise: 0.3, Start: 0.04, Floor: 4e-6}
}

// A cycle rises to 1 and falls to its floor, and never leaves what is between them and its start.
func TestOneCycleRisesAndFalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule{Name: "one_cycle", Over: rapid.Int64Range(2, 5000).Draw(t, "over"), Rise: rapid.Float64Range(0.01, 0.99).Draw(t, "rise"),
			Start: rapid.Float64Range(0.001, 1).Draw(t, "start"), Floor: rapid.Float64Range(0, 0.9).Draw(t, "floor")}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		top, before := s.Rise*float64(s.Over)-1, 0.0
		for i := range s.Over + 3 {
			at := s.Scale(float64(i))
			switch rising := float64(i) <= top; {
			case at < min(s.Start, s.Floor)-1e-12 || at > 1+1e-12:
				t.Fatalf("iteration %d: %v", i, at)
			case i > 0 && rising && at < before-1e-12, i > 0 && float64(i-1) >= top && at > before+1e-12:
				t.Fatalf("iteration %d: %v after %v, and the top is %v", i, at, before, top)
			case i >= s.Over-1 && math.Abs(at-s.Floor) > 1e-12:
				t.Fatalf("iteration %d: %v, must be the floor %v", i, at, s.Floor)
			}
			before = at
		}
	})
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

// TestDecaysFallFromFullRateToTheFloor: with warm-up the rate reaches lr in the last iteration of warm-up, keeps lr for the next
// one, never grows again, and is exactly the floor from Over iterations later on.
func TestDecaysFallFromFullRateToTheFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Schedule{
			Name:   rapid.SampledFrom([]string{"cosine", "poly"}).Draw(t, "name"),
			Over:   rapid.Int64Range(1, 1e6).Draw(t, "over"),
			Floor:  rapid.Float64Range(0, 0.999).Draw(t, "floor"),
			Power:  rapid.Float64Range(0.1, 5).Draw(t, "power"),
			WarmUp: rapid.Int64Range(0, 1000).Draw(t, "warm-up"),
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
		top, end := float64(s.WarmUp), float64(s.WarmUp+s.Over)
		for _, at := range []float64{max(0, top-1), top} {
			if got := s.Scale(at); math.Abs(got-1) > 1e-15 {
				t.Fatalf("Scale(%v) = %v, want 1", at, got)
			}
		}
		if a, b := s.Scale(end), s.Scale(end*2); a != s.Floor || b != s.Floor {
			t.Fatalf("Scale(%v) = %v, later %v, want the floor %v", end, a, b, s.Floor)
		}
		draw := func(lo, hi float64, falls bool) {
			a := rapid.Float64Range(lo, hi).Draw(t, "a")
			b := rapid.Float64Range(a, hi).Draw(t, "b")
			x, y := s.Scale(a), s.Scale(b)
			if falls {
				x, y = y, x
			}
			if x > y+1e-15 || x < 0 || y > 1+1e-15 {
				t.Fatalf("Scale(%v) = %v and Scale(%v) = %v, falling: %v", a, s.Scale(a), b, s.Scale(b), falls)
			}
		}
		draw(0, max(0, top-1), false)
		draw(top, end+1, true)
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
		{Schedule{Name: "cosin"}, `schedule name "cosin" is not known; use one of constant, step, cosine, poly`},
		{Schedule{Name: "constant", WarmUp: -1}, "warm_up -1 "},
		{Schedule{Name: "step", Every: 1}, "factor 0 "},
		{Schedule{Name: "step", Every: 1, Factor: math.NaN()}, "factor NaN "},
		{Schedule{Name: "step", Every: -5, Factor: 1}, "every -5 "},
		{Schedule{Name: "step", Factor: 1}, "every 0 and 0 values in at"},
		{Schedule{Name: "step", Every: 1, At: []int64{1}, Factor: 1}, "every 1 and 1 values in at"},
		{Schedule{Name: "step", At: []int64{4, 4}, Factor: 1}, "value 4 at place 1"},
		{Schedule{Name: "cosine"}, "over 0 "},
		{Schedule{Name: "cosine", Over: 1, Floor: 1}, "floor 1 "},
		{Schedule{Name: "poly", Over: 1, Power: 1, Floor: math.NaN()}, "floor NaN "},
		{Schedule{Name: "inv", Power: 1}, "gamma 0 "},
		{Schedule{Name: "inv", Gamma: math.NaN(), Power: 1}, "gamma NaN "},
		{Schedule{Name: "inv", Gamma: 1}, "power 0 "},
		{Schedule{Name: "inv", Gamma: 1, Power: math.Inf(1)}, "power +Inf "},
		{Schedule{Name: "poly", Over: 1}, "power 0 "},
		{Schedule{Name: "poly", Over: 1, Power: math.Inf(1)}, "power +Inf "},
		{Schedule{Name: "one_cycle", Over: 1, Rise: 0.3, Start: 0.1}, "over 1 is out of range"},
		{Schedule{Name: "one_cycle", Over: 5, Rise: 1, Start: 0.1}, "rise 1 is out of range"},
		{Schedule{Name: "one_cycle", Over: 5, Rise: 0.3}, "start 0 is out of range"},
		{Schedule{Name: "one_cycle", Over: 5, Rise: 0.3, Start: 0.1, Floor: 1}, "floor 1 is out of range"},
		{Schedule{Name: "one_cycle", Over: 5, Rise: 0.3, Start: 0.1, WarmUp: 2}, "leave warm_up out"},
	} {
		if err := c.s.Check(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want it to contain %q", c.s, err, c.want)
		}
	}
}

func TestTablesAndChecksAgree(t *testing.T) {
	for _, n := range Names() {
		if _, err := New(spec(n)); err != nil {
			t.Error(err)
		}
	}
	for _, n := range ScheduleNames() {
		s := Schedule{Name: n, Every: 1, Factor: 0.5, Over: 5, Power: 2, Gamma: 0.1, Start: 1, Rise: 0.3}
		if err := s.Check(); err != nil {
			t.Error(err)
		}
		if got := s.Scale(0); got != 1 {
			t.Errorf("%s: Scale(0) = %v, want 1", n, got)
		}
	}
}
