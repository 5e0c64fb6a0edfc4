package scheme_test

import (
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// TestASPNeverDelays: FluentPS condition table, row ASP [C]: the pull condition is true. Bounded delay of the
// OSDI'14 parameter server with tau infinite, "eventual" [P].
func TestASPNeverDelays(t *testing.T) {
	v := setting(t, "asp", "fold=arrival")
	lead := int64(0)
	rapid.Check(t, func(rt *rapid.T) {
		plainRun(rt, v, func(ev scheme.Event, answered bool, all []scheme.Decision, b *pushCounts) {
			if ev.Kind == scheme.Wanted && (!answered || len(all) != 1) {
				rt.Fatalf("%v: decided %v", ev, all)
			}
			lead = max(lead, ev.Iter-b.v)
		})
	})
	if lead < 10 {
		t.Errorf("the largest lead tried is %d; the runs are too even to show anything", lead)
	}
}

// TestASPExamplesPerUpdate: MXNet kvstore, table of types [C]: dist_async applies each push at once, b examples per
// update. Departure: each at lr times 1/N, so that N pushes weigh as one BSP step.
func TestASPExamplesPerUpdate(t *testing.T) {
	v := setting(t, "asp", "fold=arrival")
	rapid.Check(t, func(rt *rapid.T) {
		env := scheme.Env{Workers: 4, Shards: []int32{schemetest.Shard}, Servers: 1}
		d := schemetest.Driver{Env: env, Plain: true, See: func(ev scheme.Event, ds []scheme.Decision) {
			if ev.Kind != scheme.Pushed {
				return
			}
			if len(ds) != 2 || ds[0].Kind != scheme.Fold || ds[1].Kind != scheme.Commit {
				rt.Fatalf("%v: decided %v, want a fold and a commit", ev, ds)
			}
			if c := ds[1]; c.Samples != 32 || c.Weight != 1.0/32 || c.Scale != 0.25 || c.Worker != ev.Worker || c.Iter != ev.Iter {
				rt.Fatalf("%v: commit %+v", ev, c)
			}
		}}
		d.Run(rt, v.New(env))
	})
}

// TestASPPushCondition: FluentPS condition table, row ASP [C]: V_train still advances, but delays nothing.
func TestASPPushCondition(t *testing.T) {
	s := shardOf(setting(t, "asp", "fold=arrival"), 2)
	for _, push := range []struct {
		w    int32
		i    int64
		want string
	}{
		{0, 0, "asp v=0 clocks=1,0"}, {0, 1, "asp v=0 clocks=2,0"},
		{1, 0, "asp v=1 clocks=2,1"}, {1, 1, "asp v=2 clocks=2,2"},
	} {
		s.Step(scheme.Event{Kind: scheme.Pushed, Worker: push.w, Owner: push.w, Parts: 1, Iter: push.i, Samples: 1}, nil)
		if s.String() != push.want {
			t.Errorf("after push w%d i%d: %v, want %s", push.w, push.i, s, push.want)
		}
	}
}
