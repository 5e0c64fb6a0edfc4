package runtime

import (
	"errors"
	"strings"
	"testing"
)

// Schemes that equal bsp give its bits, whichever of them has which iterations.
func TestChangesBetweenSchemesThatAreBSPKeepTheBits(t *testing.T) {
	want := mustTrain(t, load(t), 6).Summary.ParametersSHA256
	for _, schemes := range []string{
		"[{scheme: bsp, until: 7}, {scheme: bsp}]",
		"[{scheme: bsp, until: {epochs: 0.5}}, {scheme: ssp, staleness: 0, fold: rank, until: {epochs: 1.5}}, {scheme: drop}]",
		"[{scheme: drop, until: 1}, {scheme: bounded_delay, tau: 0, fold: rank, until: 2}, {scheme: bsp}]",
	} {
		s := mustTrain(t, load(t, "sync=[{match: '*', schemes: "+schemes+"}]"), 6).Summary
		if s.ParametersSHA256 != want {
			t.Errorf("%s: other bits than bsp", schemes)
		}
		if strings.Count(s.PerShard[0].Scheme, ">") != strings.Count(schemes, "until") {
			t.Errorf("%s: the summary calls it %s", schemes, s.PerShard[0].Scheme)
		}
	}
}

// Each scheme rules its own iterations. With bsp first and asp later no worker leads at first, and any worker may lead
// later; in the other order the lead after the change is what it was before.
func TestTheLeadFollowsTheScheme(t *testing.T) {
	lead := func(schemes string) int64 {
		s := trainTogether(t, load(t, "sync=[{match: '*', schemes: "+schemes+"}]", straggler, "train.stop={samples: 1600}")).Summary
		if s.Finished != "ok" || s.Samples < 1600 {
			t.Errorf("%s: finished %q after %d samples", schemes, s.Finished, s.Samples)
		}
		return s.MaxLead
	}
	if n := lead("[{scheme: bsp, until: 40}, {scheme: asp}]"); n < 2 {
		t.Errorf("bsp then asp: a lead of %d", n)
	}
	if n := lead("[{scheme: asp, until: 4}, {scheme: bsp}]"); n < 1 || n > 3 {
		t.Errorf("asp until 4: a lead of %d, and nobody gets past 3 before all are there", n)
	}
	if n := lead("[{scheme: ssp, staleness: 2, until: 9}, {scheme: ssp, staleness: 2}]"); n != 2 {
		t.Errorf("ssp then ssp: a lead of %d, want 2", n)
	}
}

// Rules may change at different clocks, beside others that drop and skip.
func TestRulesThatChangeBesideEachOther(t *testing.T) {
	sync := "sync=[{match: '*.bias', schemes: [{scheme: drop, required: 3, until: 9}, {scheme: ssp, staleness: 1}]}," +
		" {match: '*', schemes: [{scheme: asp, until: 5}, {scheme: drop, required: 3, until: 30}, {scheme: softsync, q: 3}]}]"
	s := mustTrain(t, load(t, sync, straggler, "train.stop={samples: 3200}"), 6).Summary
	if s.Finished != "ok" || s.PerShard[0].Scheme != "drop>ssp" || s.PerShard[len(s.PerShard)-1].Scheme != "asp>drop>softsync" {
		t.Errorf("finished %q, shards %+v", s.Finished, s.PerShard)
	}
	for _, sh := range s.PerShard {
		if sh.Pushes != sumIterations(s) {
			t.Errorf("shard %d got %d pushes of %d", sh.Shard, sh.Pushes, sumIterations(s))
		}
	}
}

func TestChangesThatTheRunWouldTurnRoundAreRefused(t *testing.T) {
	// an epoch is 15 iterations
	c := load(t, "sync=[{match: '*', schemes: [{scheme: bsp, until: 15}, {scheme: asp, until: {epochs: 1}}, {scheme: bsp}]}]")
	res, errs := world(t, c, 6, nil)
	for i, err := range errs {
		var agreed *ExitError
		if !errors.As(err, &agreed) || res[i].Code != CodeUsage ||
			!strings.Contains(err.Error(), "which is iteration 15 here and not after iteration 15") {
			t.Fatalf("rank %d: code %d, %v", i, res[i].Code, err)
		}
	}
}
