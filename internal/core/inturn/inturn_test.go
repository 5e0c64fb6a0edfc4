package inturn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

// phase is a scheme with its defaults, up to a clock.
func phase(name string, until int64) scheme.Phase {
	e, _ := scheme.All.Lookup(name)
	return scheme.Phase{Scheme: name, Common: scheme.Common{Fold: e.Fold}, Params: e.Params(), Until: until}
}

func TestPhasesThatDoNotFollowEachOtherAreRefused(t *testing.T) {
	for _, until := range [][]int64{{0}, {3, 3}, {4, 2}} {
		phases := []scheme.Phase{phase("bsp", until[0])}
		for k := range until {
			phases = append(phases, phase("asp", append(until, 0)[k+1]))
		}
		_, err := NewShardSchemes(phases, scheme.Env{Workers: 2, Shards: []int32{0}}, 0)
		if err == nil || !strings.Contains(err.Error(), "needs an end, after that of the scheme before it") {
			t.Errorf("until %v: %v", until, err)
		}
	}
}

// The coin of a request is the same in each phase of the rule; another rule tosses other coins.
func TestPhasesTossTheCoinsOfTheirRequests(t *testing.T) {
	draws := func(k, of int) string {
		phases := []scheme.Phase{phase("pssp", 1), phase("pssp", 0)}
		ss, err := newPhase(phases, k, scheme.Env{Workers: 2, Shards: []int32{0}, Seed: 9, Rule: of})
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for i := range int64(40) {
			ss.Scheme.Step(scheme.Event{Kind: scheme.Pushed, Iter: i, Parts: 1, Samples: 1}, nil)
			out := ss.Scheme.Step(scheme.Event{Kind: scheme.Wanted, Iter: i + 1}, nil)
			text += fmt.Sprint(len(out))
			if len(out) == 0 {
				ss.Scheme.Step(scheme.Event{Kind: scheme.Left}, nil)
				ss.Scheme.Step(scheme.Event{Kind: scheme.Joined, Iter: i + 1}, nil)
			}
		}
		return text
	}
	if draws(0, 0) != draws(1, 0) || draws(0, 0) == draws(0, 1) {
		t.Errorf("draws of the phases: %s %s, of another rule: %s", draws(0, 0), draws(1, 0), draws(0, 1))
	}
}

func TestWhichSchemesMaySkip(t *testing.T) {
	for _, e := range scheme.All {
		if got := MaySkip([]scheme.Phase{{Scheme: e.Name}}); got != (e.Name == "drop" || e.Name == "coded") {
			t.Errorf("%s: %v", e.Name, got)
		}
	}
	if !MaySkip([]scheme.Phase{{Scheme: "bsp", Until: 2}, {Scheme: "asp"}}) {
		t.Error("the worker does not wait for a change of scheme")
	}
}

// One instance decides for all shards of a server that are under the scheme, under whichever rules; other shards have
// their own instance.
func TestShardsOfARotationAreTogether(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 4}, {Name: "b", N: 4}, {Name: "c", N: 4}},
		shard.Options{Slice: "even", MaxBytes: 64, Servers: 2, Rules: []string{"a", "b", "c"}})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"r2sp", "ssp", "r2sp"}
	for _, sh := range plan.Shards {
		var want []int32
		for _, other := range plan.Shards {
			if other.ID == sh.ID || sh.Rule != 1 && other.Rule != 1 && other.Server == sh.Server {
				want = append(want, other.ID)
			}
		}
		if got := Together(plan, sh.ID, func(rule int) string { return names[rule] }); !slices.Equal(got, want) {
			t.Errorf("shard %d of server %d, %s: together with %v, want %v", sh.ID, sh.Server, names[sh.Rule], got, want)
		}
	}
}

// A shard that resumes behind a change has the scheme of its clocks; for a scheme, a worker past the scheme's end has
// left.
func TestPhaseAtTheClocksOfACheckpoint(t *testing.T) {
	phases := []scheme.Phase{{Scheme: "bsp", Until: 5}, {Scheme: "ssp", Until: 9}, {Scheme: "asp"}}
	for _, c := range []struct {
		clocks []int64
		k      int
		told   []int64
	}{
		{nil, 0, nil},
		{[]int64{4, 4}, 0, []int64{4, 4}},
		{[]int64{5, 4}, 0, []int64{-1, 4}},
		{[]int64{5, 5}, 1, []int64{5, 5}},
		{[]int64{8, 9, 12}, 1, []int64{8, -1, -1}},
		{[]int64{9, 12, -1}, 2, []int64{9, 12, -1}},
		{[]int64{-1, -1}, 0, []int64{-1, -1}},
	} {
		if k, told := PhaseAt(phases, c.clocks, 0); k != c.k || !slices.Equal(told, c.told) {
			t.Errorf("at %v: phase %d told %v, want %d and %v", c.clocks, k, told, c.k, c.told)
		}
	}
}
