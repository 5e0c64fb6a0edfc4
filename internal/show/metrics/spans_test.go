package metrics

import (
	"testing"
	"time"
)

func TestSpansRest(t *testing.T) {
	s := Spans{Wall: 10 * time.Second}
	s.Add(Compute, 3*time.Second)
	s.Add(Compute, 2*time.Second)
	s.Add(Blocked, time.Second)
	if s.Times[Compute] != 5*time.Second || s.Rest() != 4*time.Second {
		t.Errorf("compute %v, rest %v; want 5s and 4s", s.Times[Compute], s.Rest())
	}
}

func TestOverRanks(t *testing.T) {
	a, b := Spans{Wall: 10 * time.Second}, Spans{Wall: 10 * time.Second}
	a.Add(Push, time.Second)
	b.Add(Push, 4*time.Second)
	got := OverRanks([]Spans{a, b})
	if want := (Range{Min: 1, Avg: 2.5, Max: 4}); got["push"] != want {
		t.Errorf("push: %v, want %v", got["push"], want)
	}
	if want := (Range{Min: 6, Avg: 7.5, Max: 9}); got[Rest] != want {
		t.Errorf("rest: %v, want %v", got[Rest], want)
	}
	if len(got) != int(SpanCount)+1 {
		t.Errorf("%d keys, want %d", len(got), SpanCount+1)
	}
	if none := OverRanks(nil); none["compute"] != (Range{}) || len(none) != int(SpanCount)+1 {
		t.Errorf("no ranks: %v, want zeros for every span", none)
	}
}
