package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// otherRanks resumes in a copy of a run folder with other numbers of ranks or other shards.
func otherRanks(t *testing.T, from string, n int, allowed []string, set ...string) Result {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	res, errs := runPart(t, load(t, set...), n, dir, dir, func(o *Options) { o.AllowChanged = allowed })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return res[0]
}

// A run goes on with other ranks: under BSP other servers and other shards do not change the rest of the run, and other workers train on.
// internal/rank/resume compares what they read.
func TestARunGoesOnWithOtherRanks(t *testing.T) {
	same := []string{"train.optimizer={name: adam, lr: 0.01}", "model={name: mlp, layers: [24, 16]}",
		`sync=[{match: "*.bias", scheme: bsp}, {match: "*", scheme: ssp, staleness: 0, fold: rank}]`}
	with := func(set ...string) []string { return append(slices.Clone(same), set...) }
	dir := filepath.Join(t.TempDir(), "out")
	first := mustRunPart(t, load(t, with("train.stop={updates: 20}")...), 6, dir, "").Summary
	whole := mustTrain(t, load(t, with("train.stop={updates: 40}")...), 6).Summary
	var two string
	for _, c := range []struct {
		servers, workers int
		allowed, set     []string
	}{
		{2, 4, []string{"shards.max_bytes", "shards.slice", "cluster.placement"},
			[]string{"shards={slice: slices, max_bytes: 128B}", "cluster.placement=pack"}},
		{3, 2, []string{"cluster.servers", "workers"}, nil},
		{2, 2, []string{"workers"}, nil},
		{1, 8, []string{"cluster.servers", "workers"}, nil},
	} {
		set := append(with(fmt.Sprintf("cluster.servers=%d", c.servers)), c.set...)
		on := otherRanks(t, dir, c.servers+c.workers, c.allowed, append(set, "train.stop={updates: 40}")...).Summary
		if on.Iterations != 40 || on.Samples != first.Samples+int64(20*8*c.workers) {
			t.Errorf("%+v: %d iterations and %d samples", c, on.Iterations, on.Samples)
		}
		switch {
		case c.workers == 4 && on.ParametersSHA256 != whole.ParametersSHA256:
			t.Errorf("%+v: sha256 %.12s, want that of a run that was not interrupted, %.12s", c, on.ParametersSHA256, whole.ParametersSHA256)
		case c.workers == 2 && two == "":
			two = on.ParametersSHA256
		case c.workers == 2 && on.ParametersSHA256 != two:
			t.Errorf("%+v: sha256 %.12s, with other servers %.12s", c, on.ParametersSHA256, two)
		}
		if loss := float64(*on.TrainLoss); !(loss < float64(*first.TrainLoss)) {
			t.Errorf("%+v: the loss went from %v to %v", c, *first.TrainLoss, loss)
		}
	}
}

// Schemes whose shards are at different versions also resume with other ranks, and continue their counts.
func TestOtherSchemesGoOnWithOtherRanks(t *testing.T) {
	for _, scheme := range []string{"asp", "drop, required: 3", "r2sp", "essp"} {
		same := []string{"sync=[{match: '*', scheme: " + scheme + "}]", "model={name: mlp, layers: [24, 16]}", "data.partition=overlap_reshuffle"}
		dir := filepath.Join(t.TempDir(), "out")
		first := mustRunPart(t, load(t, append(same, "train.stop={epochs: 4}")...), 6, dir, "").Summary
		for _, n := range []struct{ servers, workers int }{{3, 2}, {1, 5}} {
			allowed := []string{"cluster.servers", "workers"}
			set := append(slices.Clone(same), fmt.Sprintf("cluster.servers=%d", n.servers))
			if scheme == "drop, required: 3" && n.workers < 3 {
				set, allowed = append(set, "sync=[{match: '*', scheme: drop, required: 1}]"), append(allowed, "sync[0].required")
			}
			on := otherRanks(t, dir, n.servers+n.workers, allowed, append(set, "train.stop={epochs: 12}")...).Summary
			if on.Samples < 12*480 || on.Samples > 13*480 || on.Resumed.Samples != first.Samples || on.Finished != "ok" {
				t.Errorf("%s with %+v: finished %q after %d samples, resumed %+v", scheme, n, on.Finished, on.Samples, on.Resumed)
			}
		}
	}
}
