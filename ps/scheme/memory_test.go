package scheme_test

import (
	"strings"
	"testing"
	"time"

	"fluentps/ps/scheme"
)

const ms = time.Millisecond

// toldScheme is a scheme of one shard and two workers, which is told what happens.
type toldScheme struct {
	t *testing.T
	scheme.Scheme
}

func newTold(t *testing.T, name string, p scheme.Params, clock int64) toldScheme {
	t.Helper()
	e, ok := scheme.All.Lookup(name)
	if !ok {
		t.Fatalf("no scheme %s", name)
	}
	s, err := e.New(scheme.Env{Workers: 2, Shards: []int32{0}, Servers: 1, Clocks: []int64{clock, clock},
		Start: 2 * clock}, scheme.Common{}, p)
	if err != nil {
		t.Fatal(err)
	}
	return toldScheme{t, s}
}

func (s toldScheme) tell(kind scheme.EventKind, w int32, iter int64, at time.Duration) []scheme.Decision {
	return s.Step(scheme.Event{Kind: kind, Worker: w, Owner: w, Parts: 1, Samples: 8, Iter: iter, At: at}, nil)
}

// recalled makes a new instance at a clock, with the memory that this one has when both workers have left.
func (s toldScheme) recalled(name string, p scheme.Params, clock int64) toldScheme {
	s.t.Helper()
	s.tell(scheme.Left, 0, 0, time.Hour)
	s.tell(scheme.Left, 1, 0, time.Hour)
	next := newTold(s.t, name, p, clock)
	if err := next.Scheme.(scheme.Learning).Recall(s.Scheme.(scheme.Learning).Memory()); err != nil {
		s.t.Fatal(err)
	}
	return next
}

// dssp continues to give grants, by the intervals measured before; without them a worker waits.
func TestDSSPRemembersIntervals(t *testing.T) {
	p := &scheme.DSSPParams{SL: 0, SU: 4, Mode: scheme.DSSPBounded, Release: scheme.ReleaseSoft}
	s := newTold(t, "dssp", p, 0)
	for i := range int64(10) {
		s.tell(scheme.Pushed, 0, i, time.Duration(i)*10*ms)
		s.tell(scheme.Pushed, 1, i, max(0, 90*ms-time.Duration(9-i)*40*ms))
	}
	for name, next := range map[string]toldScheme{"recalled": s.recalled("dssp", p, 10), "new": newTold(t, "dssp", p, 10)} {
		next.tell(scheme.Pushed, 0, 10, 100*ms)
		if answered := len(next.tell(scheme.Wanted, 0, 11, 100*ms)) > 0; answered != (name == "recalled") {
			t.Errorf("%s: the faster worker is answered: %v; %v", name, answered, next)
		}
	}
}

// dsps keeps the bound that it had reached.
func TestDSPSRemembersItsBound(t *testing.T) {
	p := &scheme.DSPSParams{SMin: 1, SMax: 8, Window: 2, Smoothing: 1, Release: scheme.ReleaseSoft}
	s := newTold(t, "dsps", p, 0)
	for i := range int64(6) {
		for w, took := range []time.Duration{10 * ms, 30 * ms} {
			at := time.Duration(i) * 100 * ms
			s.tell(scheme.Wanted, int32(w), i, at)
			s.tell(scheme.Pushed, int32(w), i, at+took)
		}
	}
	if !strings.Contains(s.String(), " s=8") {
		t.Fatalf("%v has not reached s_max", s)
	}
	if next := s.recalled("dsps", p, 6); !strings.Contains(next.String(), " s=8") {
		t.Errorf("%v resumes with another bound than 8", next)
	}
}

// r2sp deals slots in the first round that begins, without measuring again.
func TestR2SPRemembersWhatTurnsTake(t *testing.T) {
	p := &scheme.R2SPParams{SkipAfter: 3, Profile: 3, Delta: 0.25, DeltaRounds: 3, Smoothing: 0.2}
	round := func(s toldScheme, i int64) {
		for w := range int32(2) {
			at := time.Duration(i)*100*ms + time.Duration(w)*20*ms
			s.tell(scheme.Wanted, w, i, at)
			s.tell(scheme.Ready, w, i, at+10*ms)
			s.tell(scheme.Pushed, w, i, at+12*ms)
			s.tell(scheme.Sent, w, i+1, at+13*ms)
		}
	}
	s := newTold(t, "r2sp", p, 0)
	for i := range int64(3) {
		round(s, i)
	}
	for name, next := range map[string]toldScheme{"recalled": s.recalled("r2sp", p, 3), "new": newTold(t, "r2sp", p, 3)} {
		round(next, 3)
		if dealt := strings.Contains(next.String(), " period="); dealt != (name == "recalled") {
			t.Errorf("%s: slots are dealt: %v; %v", name, dealt, next)
		}
	}
}
