package runtime

import (
	"errors"
	"strings"
	"testing"
)

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
