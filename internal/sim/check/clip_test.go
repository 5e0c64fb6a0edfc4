package check

import (
	"fmt"
	"testing"

	"fluentps/internal/sim/simtest"
)

// Where servers wait for each other's norms, random clusters with faults, losses and workers that come back keep all laws, and end.
func TestLawsOfClippedMeansOverManySeeds(t *testing.T) {
	first, n := simtest.SeedsFrom(t)
	n = (n + 7) / 8
	ran, lost, joined, of := 0, 0, 0, int64(0)
	for k := range n {
		seed := uint64(first + k)
		o, ok := randomCluster(t, seed, []string{fmt.Sprintf("sync=[{match: '*', scheme: drop, contributors: step, required: %d}]", seed%5),
			"train.clip={norm: 1, of: mean}"})
		if !ok {
			continue
		}
		o.Replay = fmt.Sprintf("FLUENTPS_TEST_SIM_FIRST=%d FLUENTPS_TEST_SIM_SEEDS=1 go test ./internal/sim/check -run ClippedMeans", seed)
		r, err := Run(o)
		if err != nil {
			t.Fatal(err)
		}
		ran, lost, joined = ran+1, lost+r.Lost, joined+r.Joined
		of += r.Summary.Updates
	}
	t.Logf("%d runs, %d workers lost, %d back, %d versions", ran, lost, joined, of)
	if n > 100 && (ran < n/2 || lost < ran/4 || joined < ran/16) {
		t.Errorf("only %d of %d seeds made a run, with %d workers lost and %d back: the draw is too narrow", ran, n, lost, joined)
	}
}
