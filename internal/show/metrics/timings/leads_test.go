package timings

import (
	"testing"
	"time"
)

// A start is compared with the instants at which gradients began to leave: what others may do after a push is after these. Times within
// the error of two clocks count as completed.
func TestLeads(t *testing.T) {
	const ms = time.Millisecond
	of := [][]Iteration{
		{{Iter: 0, Compute: 10 * ms}, {Iter: 1, Start: 10 * ms, Compute: 10 * ms}, {Iter: 2, Start: 20 * ms, Compute: 10 * ms}},
		{{Iter: 0, Compute: 15 * ms, Push: 20 * ms}, {Iter: 1, Start: 35 * ms, Compute: 50 * ms}},
	}
	for _, c := range []struct {
		bound time.Duration
		want  [3]int64
	}{
		{0, [3]int64{0, 1, 1}},
		{2 * ms, [3]int64{0, 1, 1}}, // 15 ms is more than 4 ms after 10 ms
		{3 * ms, [3]int64{0, 0, 1}},
	} {
		leads := LeadsOf(of, c.bound)
		for i, want := range c.want {
			if got := leads.Of(&of[0][i]); got != want {
				t.Errorf("within %v, iteration %d: %d, want %d", c.bound, i, got, want)
			}
		}
		if got := leads.Of(&of[1][1]); got != 0 {
			t.Errorf("the slowest leads by %d", got)
		}
		if leads.Max(of) != 1 || leads.End() != 85*ms {
			t.Errorf("at most %d, until %v", leads.Max(of), leads.End())
		}
	}
	if none := LeadsOf(nil, 0); none.Max(nil) != 0 || none.End() != 0 {
		t.Error("no iterations have a lead or an end")
	}
}

// Starts are put on another clock, and none is before training began.
func TestStartsAreCorrected(t *testing.T) {
	r := Recorder{Max: 3}
	for i := range time.Duration(4) {
		r.Add(Iteration{Start: i})
	}
	r.Correct(func(at time.Duration) time.Duration { return 2*at - 2 })
	if got := string(r.Chunk(0, 0)); got != "0,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000000000,"+
		"0.000000000,0\n0,0,0.000000000,0.000000000,0.000000000,0.000000000,0.000000000,0.000000000,0\n"+
		"0,0,0.000000002,0.000000000,0.000000000,0.000000000,0.000000000,0.000000000,0\n" {
		t.Error(got)
	}
}
