package scheme_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// TestBoundedDelayTasks: OSDI'14 parameter server, consistency by task dependency [P]: task t starts once every
// task with an index below t - tau has finished. The tasks of a worker are its iterations, and one is finished
// when all workers have pushed it. Never more than tau+1 are outstanding (sync core, section 5.5).
func TestBoundedDelayTasks(t *testing.T) {
	for _, tau := range []int64{0, 1, 4} {
		v := setting(t, "bounded_delay", fmt.Sprintf("fold=arrival tau=%d release=soft", tau))
		most := int64(0)
		rapid.Check(t, func(rt *rapid.T) {
			plainRun(rt, v, func(ev scheme.Event, answered bool, all []scheme.Decision, b *pushCounts) {
				if ev.Kind == scheme.Wanted {
					task := ev.Iter
					finished := func(index int64) bool { return index < b.v }
					open := true
					for before := range max(0, task-tau) {
						open = open && finished(before)
					}
					if open != answered {
						rt.Fatalf("%v: answered %v, but all tasks before %d are finished is %v", ev, answered, task-tau, open)
					}
				}
				for _, d := range replies(all) {
					outstanding := d.Iter + 1 - b.v // tasks started by this worker, not finished by all
					most = max(most, outstanding)
					if outstanding > tau+1 {
						rt.Fatalf("%v: %d tasks of w%d are outstanding, tau is %d", ev, outstanding, d.Worker, tau)
					}
				}
			})
		})
		if most != tau+1 {
			t.Errorf("tau %d: at most %d tasks were outstanding, want tau+1", tau, most)
		}
	}
}

// TestBoundedDelayOffByOne: the two traps named with the clock convention. DSSP quotes the bound as "iteration t
// depends on t-k", which is tau = k-1 [P]. The earlier workshop paper's example (tau = 2, iteration 4 waits for
// everything before 3) [A] is one stricter than Algorithm 3, and with it tau = 0 could never start. We keep to
// Algorithm 3: iteration 4 waits for everything before 2.
func TestBoundedDelayOffByOne(t *testing.T) {
	s := shardOf(setting(t, "bounded_delay", "tau=2"), 2)
	push := func(w int32, i int64) {
		s.Step(scheme.Event{Kind: scheme.Pushed, Worker: w, Owner: w, Parts: 1, Iter: i, Samples: 1}, nil)
	}
	push(1, 0)
	for i := range int64(4) {
		push(0, i)
	}
	if got := s.Step(scheme.Event{Kind: scheme.Wanted, Worker: 0, Iter: 4}, nil); len(got) != 0 {
		t.Fatalf("iteration 4 started with only iteration 0 finished: %v; state: %v", got, s)
	}
	push(1, 1)
	if want := "bounded_delay v=2 clocks=4,2"; s.String() != want {
		t.Errorf("when everything before 2 is finished: %v, want %s", s, want)
	}
}

// TestBoundedDelayIsSSP: clock convention, table of equivalents: s = tau, with t = c.
func TestBoundedDelayIsSSP(t *testing.T) {
	for _, release := range releases {
		for _, fold := range []string{"rank", "arrival"} {
			for _, tau := range []int64{0, 1, 3} {
				law(t, setting(t, "ssp", fmt.Sprintf("fold=%s staleness=%d release=%s", fold, tau, release)),
					setting(t, "bounded_delay", fmt.Sprintf("fold=%s tau=%d release=%s", fold, tau, release)), false)
			}
		}
	}
}

// TestBoundedDelayExtremes: tau = 0 is sequential, the same as bsp; tau without limit is eventual, the same as
// asp [P].
func TestBoundedDelayExtremes(t *testing.T) {
	bsp := setting(t, "bsp", "fold=rank strict=true release=soft")
	for _, release := range releases {
		law(t, bsp, setting(t, "bounded_delay", "fold=rank tau=0 release="+release), false)
		law(t, bsp, setting(t, "bounded_delay", "fold=arrival tau=0 release="+release), true)
		law(t, setting(t, "asp", "fold=arrival"), setting(t, "bounded_delay", "fold=arrival tau=1000000000000 release="+release), false)
	}
}

// TestBoundedDelayNames: saved state of one name is refused under the other, for they are different rules in a
// configuration.
func TestBoundedDelayNames(t *testing.T) {
	env := scheme.Env{Workers: 2, Shards: []int32{schemetest.Shard}, Servers: 1}
	saved, err := setting(t, "ssp", "staleness=3").New(env).MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	if err := setting(t, "bounded_delay", "tau=3").New(env).UnmarshalBinary(saved); err == nil {
		t.Error("bounded_delay resumed from the state of ssp")
	}
}
