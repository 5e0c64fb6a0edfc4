package scheme_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// esspReader is the client side of SSPPush, in its own terms: a reader at clock c waits until the system clock is at
// least max(0, c-s), which it knows from the versions pushed to it.
type esspReader struct {
	staleness   int64
	clock, know []int64
	waits       []bool
}

func (r *esspReader) started(w int32) bool {
	if r.waits[w] && r.know[w] >= max(0, r.clock[w]-r.staleness) {
		r.waits[w] = false
		return true
	}
	return false
}

// step returns the workers that start an iteration at this event.
func (r *esspReader) step(ev scheme.Event, decisions []scheme.Decision) (started []int32) {
	switch ev.Kind {
	case scheme.Pushed:
		r.clock[ev.Worker], r.waits[ev.Worker] = ev.Iter+1, true
	case scheme.Left:
		r.waits[ev.Worker] = false
	}
	for _, d := range decisions {
		if d.Kind == scheme.Publish {
			r.know[d.Worker] = d.Iter
		}
	}
	for w := range r.waits {
		if r.started(int32(w)) {
			started = append(started, int32(w))
		}
	}
	return started
}

// TestESSPGate: Bösen, SSPPush [C]: the same bound as SSP, but another propagation. Where messages take no time, every
// worker starts every iteration at the very event at which ssp would have answered its pull.
func TestESSPGate(t *testing.T) {
	for _, staleness := range []int64{0, 1, 3} {
		essp := setting(t, "essp", "fold=arrival")
		essp.Params = &scheme.ESSPParams{Staleness: staleness}
		ssp := setting(t, "ssp", fmt.Sprintf("fold=arrival staleness=%d release=soft", staleness))
		rapid.Check(t, func(rt *rapid.T) {
			n := rapid.IntRange(1, 6).Draw(rt, "workers")
			env := scheme.Env{Workers: n, Shards: []int32{schemetest.Shard}, Servers: 1}
			reader := esspReader{staleness: staleness, clock: make([]int64, n), know: make([]int64, n), waits: make([]bool, n)}
			other := ssp.New(env)
			d := schemetest.Driver{Env: env, Plain: true, Subscribed: true, Bound: staleness,
				See: func(ev scheme.Event, decisions []scheme.Decision) {
					answers := other.Step(ev, nil)
					if ev.Kind == scheme.Wanted {
						return // the first pull of each, which both answer at once
					}
					if ev.Kind == scheme.Pushed {
						answers = other.Step(scheme.Event{Kind: scheme.Wanted, Worker: ev.Worker, Shard: ev.Shard, Iter: ev.Iter + 1}, answers)
					}
					var want []int32
					for _, r := range replies(answers) {
						want = append(want, r.Worker)
					}
					slices.Sort(want)
					if got := reader.step(ev, decisions); !slices.Equal(got, want) {
						rt.Fatalf("%v: %v start an iteration, under ssp %v", ev, got, want)
					}
				}}
			d.Run(rt, essp.New(env))
		})
	}
}

// TestESSPAnswersPullsAsSSP: Bösen, SSPPush [C]: the first read of a row is a request like any other of SSP. Here that
// holds for every pull, also for a second one.
func TestESSPAnswersPullsAsSSP(t *testing.T) {
	for _, staleness := range []int64{0, 1, 3} {
		essp := setting(t, "essp", "fold=arrival")
		essp.Params = &scheme.ESSPParams{Staleness: staleness}
		ssp := setting(t, "ssp", fmt.Sprintf("fold=arrival staleness=%d release=soft", staleness))
		law(t, ssp, essp, true)
	}
}

// TestESSPDepartures: differences from SSPPush. SSPPush sends only the rows that changed, and a worker's own clock
// message brings it nothing but the new clock. Here each step of v brings the whole shard to every worker, also to a
// worker that lacks nothing of it. SSPPush's system clock is over all servers. Here each shard has its own v, and a
// worker waits for the shard that is behind: that is the same minimum.
func TestESSPDepartures(t *testing.T) {
	s := setting(t, "essp", "fold=arrival").New(scheme.Env{Workers: 1, Shards: []int32{schemetest.Shard}, Servers: 1})
	s.Step(scheme.Event{Kind: scheme.Wanted, Shard: schemetest.Shard}, nil)
	for i := range int64(3) {
		out := s.Step(scheme.Event{Kind: scheme.Pushed, Shard: schemetest.Shard, Iter: i, Parts: 1, Samples: 1}, nil)
		want := scheme.Decision{Kind: scheme.Publish, Shard: schemetest.Shard, Iter: i + 1, Src: scheme.SlotParams}
		if got := out[len(out)-1]; got != want {
			t.Errorf("the only worker pushed %d: %v, want %v", i, got, want)
		}
	}
}
