package sim_test

import (
	"strings"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/show/metrics"
	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
)

// switching is a rule that waits for stragglers both ways.
const switching = `sync=[{match: "*", schemes: [{scheme: bsp, until: {straggler: shows}}, {scheme: asp, until: {straggler: gone}}]}]`

func awaiting(workers int, set ...string) simtest.Setting {
	return simtest.Setting{Workers: workers, Servers: 2, Scheme: "bsp", Iterations: 300, Set: append([]string{switching}, set...)}
}

// One of four workers takes 5 times as long in 40 of its iterations. The run has asp about then, and bsp before and after. That saves
// time: the worker skips what it has not computed when the others change back. The fifth slow iteration is number 24,
// so iteration 25 announces and 26 is the first under asp.
func TestSchemesFollowAStraggler(t *testing.T) {
	const slow = "faults=[{worker: 3, slow: {factor: 5, from: 20, until: 60}}]"
	r := run(t, awaiting(4, slow))
	c := r.Summary.Changes
	if len(c) != 2 || c[0].Scheme != "asp" || c[0].Iteration != 26 || c[1].Scheme != "bsp" || c[1].Iteration < 60 || c[1].Iteration > 250 {
		t.Fatalf("changes %+v", c)
	}
	if want := "worker 3 takes 5.00 times the median, and took more than 1.5 times the median in 5 iterations in a row"; c[0].Why != want {
		t.Errorf("why %q, want %q", c[0].Why, want)
	}
	if want := "no worker takes more than 1.5 times the median in its last 5 iterations"; c[1].Why != want {
		t.Errorf("why %q, want %q", c[1].Why, want)
	}
	skipped := int64(0) // by the worker that was slow, at each shard, when the others had bsp again
	for _, sh := range r.Summary.PerShard {
		skipped += sh.Skipped
	}
	if skipped < 2*80 {
		t.Errorf("%d iterations skipped at 2 shards, so the others waited for worker 3 at the change", skipped)
	}
	bsp := run(t, simtest.Setting{Workers: 4, Servers: 2, Scheme: "bsp", Iterations: 300, Set: []string{slow}})
	if r.Duration > bsp.Duration*4/5 || r.Summary.MaxLead < 30 || bsp.Summary.MaxLead != 0 {
		t.Errorf("%v with a lead of %d, bsp alone takes %v with a lead of %d", r.Duration, r.Summary.MaxLead, bsp.Duration, bsp.Summary.MaxLead)
	}
	for _, with := range []string{"faults=[]", "faults=[{worker: 3, slow: {factor: 5, from: 20, until: 24}}]",
		`faults=[{worker: "*", slow: {factor: 5, from: 20, until: 60}}]`} {
		if got := run(t, awaiting(4, with)).Summary; len(got.Changes) > 0 || got.MaxLead != 0 {
			t.Errorf("%s: changes %+v, lead %d, though nobody straggles for long", with, got.Changes, got.MaxLead)
		}
	}
}

// Each rule that waits changes, whatever the lead shard's rule is, and the last scheme stays if it waits for nothing.
func TestTheLeadShardLooksForStragglersForAll(t *testing.T) {
	o := awaiting(5, "faults=[{worker: 0, slow: {factor: 4, from: 10, until: 20}}]").Options(t)
	cfg, _, ds := configs.Parse("test", []byte(`name: test
cluster: {servers: 2}
data: {set: generated}
model: {name: softmax}
train: {batch_per_worker: 1, optimizer: {name: sgd, lr: 0.1}, stop: {samples: 500}}
sync:
  - {match: "*", servers: [0], scheme: ssp}
  - {match: "*", schemes: [{scheme: bsp, until: {straggler: shows, factor: 2, rounds: 3}}, {scheme: asp}]}
faults: [{worker: 0, slow: {factor: 4, from: 10, until: 20}}]
simulate: {workers: 5, compute: 10ms}
`), configs.Options{})
	if cfg == nil {
		t.Fatal(ds)
	}
	o.Config = cfg
	for i := range o.Plan.Shards {
		o.Plan.Shards[i].Rule = int(o.Plan.Shards[i].Server)
	}
	r, err := check.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	if c := r.Summary.Changes; len(c) != 1 || c[0].Scheme != "asp" || c[0].Match != "*" {
		t.Errorf("changes %+v", c)
	}
	var b strings.Builder
	if err := metrics.WriteText(&b, r.Summary, 100); err != nil || !strings.Contains(b.String(), "  scheme   asp from iteration ") {
		t.Errorf("%v, summary:\n%s", err, b.String())
	}
}

// What would break the announcement is refused.
func TestRunsThatCannotAwaitStragglersAreRefused(t *testing.T) {
	if _, err := check.Run(awaiting(2).Options(t)); err == nil ||
		!strings.Contains(err.Error(), "which needs at least 3 of them, and the run has 2") {
		t.Errorf("2 workers: %v", err)
	}
	o := awaiting(3).Options(t)
	o.Losses, o.Joins = []sim.Loss{{Worker: 1, At: 1}}, []sim.Join{{Worker: 1, At: 2}}
	if _, err := check.Run(o); err == nil || !strings.Contains(err.Error(), "does not go with --join") {
		t.Errorf("a worker that comes back: %v", err)
	}
}
