package steps

import (
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/policy/local"
)

// A worker that runs ahead does not know after a resume what the budget leaves. It begins no round before the servers
// have told it, and that round is cut short.
func TestARoundAfterAResumeWaitsForWhatTheBudgetLeaves(t *testing.T) {
	spec := local.Defaults()
	spec.Policy, spec.Steps = "hpsgd", 5
	r := &run{spec: spec, workers: 1, samples: []int64{1}, budget: 7, plan: smallPlan(t, "even"),
		grads: func(int, int64, []float32, []float32) {}}
	fresh := func() *Worker { return newDriver(t, r, 0, true).w }
	w := fresh()
	w.Granted(wire.Progress{Share: 1})
	for exchange, done := int64(0), false; !done; {
		switch w.Next(true) {
		case Await:
			w.Taken()
		case Step:
			w.Computed(Sums{Samples: 1})
			w.Ended()
		case Push:
			w.Pushed(exchange)
			done = true
		case Vote:
			t.Fatal("a vote")
		}
	}
	count := w.count
	again := fresh()
	if err := again.Resume(&count, 5); err != nil {
		t.Fatal(err)
	}
	if next := again.Next(false); next != Await {
		t.Fatalf("after a resume: %v before the servers have answered, want a wait", next)
	}
	again.Granted(wire.Progress{Samples: 5, Share: 1})
	if next := again.Next(true); next != Step || again.Round() != 2 {
		t.Errorf("then: %v, a round of %d steps, want a step of 2", next, again.Round())
	}
}
