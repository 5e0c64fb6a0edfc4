package runtime

import (
	"fmt"
	"path/filepath"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/station"
)

// A budget of samples lasts as many iterations as under bsp.
func TestCodedBudgets(t *testing.T) {
	got := mustTrain(t, load(t, "cluster={servers: 1}", "work={policy: coded, code: {stragglers: 1}}",
		"sync=[{match: '*', scheme: coded}]", "train.stop={samples: 640}", withoutMemory, "faults=[{worker: 1, slow: {sleep: 2ms}}]"), 5)
	if got.Summary.Samples != 640 {
		t.Errorf("%d samples, want the 640 of 20 iterations of 4 batches of 8", got.Summary.Samples)
	}
}

// With a fractional code of pairs a run has the bits of the same run in virtual time, whoever of each pair was first:
// a sum of two is the same in both orders. The train loss is that of other partitions.
func TestCodedGradientsHaveTheBitsOfASimulatedRun(t *testing.T) {
	for _, alpha := range []float64{0, 3} {
		c := load(t, withoutMemory, "evaluate.every_epochs=0",
			fmt.Sprintf("work={policy: coded, micro: 3, code: {stragglers: 1, alpha: %g}}", alpha), "sync=[{match: '*', scheme: coded}]",
			`faults=[{worker: "*", slow: {kind: exponential, sleep: 1ms}}]`)
		c.Simulate.Workers = 4
		want, got := mustTrain(t, c, c.Simulate.Workers+c.Cluster.Servers).Summary, simulated(t, c, station.Axes{})
		if got.ParametersSHA256 != want.ParametersSHA256 || got.Samples != want.Samples {
			t.Errorf("alpha %g: simulated %.12s after %d samples, the run %.12s, %d", alpha, got.ParametersSHA256, got.Samples,
				want.ParametersSHA256, want.Samples)
		}
	}
}

// A coded run that resumes, anywhere, ends with the same parameters, and has counted the same samples.
func TestACodedRunResumes(t *testing.T) {
	t.Run("all is coded", func(t *testing.T) { codedRunResumes(t, "stragglers: 1") })
	t.Run("private parts", func(t *testing.T) { codedRunResumes(t, "stragglers: 1, alpha: 2") })
}

func codedRunResumes(t *testing.T, code string) {
	set := []string{"work={policy: coded, micro: 3, code: {" + code + "}}", "sync=[{match: '*', scheme: coded}]",
		`faults=[{worker: "*", slow: {kind: exponential, sleep: 1ms}}]`,
		"train.stop={updates: 16}", "checkpoint={every_updates: 1, keep: 1000}"}
	dir := filepath.Join(t.TempDir(), "out")
	want := mustRunPart(t, load(t, set...), 6, dir, "").Summary
	dirs, err := checkpoint.List(filepath.Join(dir, checkpoint.Folder))
	if err != nil || len(dirs) < 2 {
		t.Fatalf("%d checkpoints: %v", len(dirs), err)
	}
	for _, at := range []string{dirs[0], dirs[len(dirs)/2], dirs[len(dirs)-2]} {
		if got := mustRunPart(t, load(t, set...), 6, dir, at).Summary; got.ParametersSHA256 != want.ParametersSHA256 ||
			got.Samples != want.Samples || got.Updates != 16 || got.Iterations != 16 {
			t.Errorf("resumed from %s: %d versions, %d samples, %.12s; want 16, %d, %.12s", filepath.Base(at), got.Updates,
				got.Samples, got.ParametersSHA256, want.Samples, want.ParametersSHA256)
		}
	}
}
