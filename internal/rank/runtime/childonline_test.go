package runtime

import (
	"encoding/binary"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/ps/workload/external/externaltest"
)

// Only workers have the program of an external model. So the rank of worker 0 evaluates during training, also where rank 0 is a server:
// with the results that an evaluation after training has, and in time for a target to end the run.
func TestAProgramEvaluatesDuringTraining(t *testing.T) {
	shapes := shapesFile(t)
	stop := "train.stop={updates: 120}"
	after := mustTrain(t, withChild(t, shapes, externaltest.Well, stop), 3).Summary
	for _, placement := range []string{"spread", "colocate"} {
		set := []string{stop, "evaluate={every_epochs: 1, where: online}", "cluster.placement=" + placement}
		s := mustTrain(t, withChild(t, shapes, externaltest.Well, set...), map[string]int{"spread": 3, "colocate": 2}[placement]).Summary
		if s.ParametersSHA256 != after.ParametersSHA256 || len(s.Evaluations) != len(after.Evaluations) || len(s.Evaluations) < 4 {
			t.Fatalf("%s: sha256 %.12s and %d evaluations, want %.12s and %d", placement, s.ParametersSHA256, len(s.Evaluations),
				after.ParametersSHA256, len(after.Evaluations))
		}
		for i, e := range s.Evaluations {
			if want := after.Evaluations[i]; *e.TestLoss != *want.TestLoss || e.Samples != want.Samples {
				t.Errorf("%s: evaluation %d has loss %v at %d samples, want %v at %d", placement, i, *e.TestLoss, e.Samples,
					*want.TestLoss, want.Samples)
			}
		}
	}
	s := mustTrain(t, withChild(t, shapes, externaltest.Well, "train.stop={updates: 100000, target: 0.6}",
		"evaluate={every_epochs: 1, where: online}"), 3).Summary
	if s.TargetReachedS == nil || s.Iterations >= 100000 {
		t.Errorf("the target was reached at %v, after %d iterations", s.TargetReachedS, s.Iterations)
	}
}

// A program that fails while it evaluates ends a run that trains.
func TestAProgramThatFailsInAnEvaluationEndsTheRun(t *testing.T) {
	c := withChild(t, shapesFile(t), "nohits", "train.stop={updates: 100000}", "evaluate={every_epochs: 1, where: online}")
	_, errs := world(t, c, 3, nil)
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "has sent RESULT without the number of samples") {
		t.Errorf("rank 1, of worker 0, ends with %v", errs[1])
	}
}

// Each checkpoint of a run is judged by the program of worker 0: the best is the one whose parameters have the least loss, to the bit.
func TestAProgramJudgesCheckpoints(t *testing.T) {
	shapes := shapesFile(t)
	for _, placement := range []string{"spread", "colocate"} {
		dir, ranks := filepath.Join(t.TempDir(), "out"), map[string]int{"spread": 3, "colocate": 2}[placement]
		set := []string{"train.stop={updates: 160}", "train.optimizer={name: sgd, lr: 3}", "evaluate={every_epochs: 1, where: online}",
			"checkpoint={every_updates: 10, keep: 100, best: loss}", "faults=[{worker: '*', slow: {sleep: 2ms}}]", "cluster.placement=" + placement}
		mustRunPart(t, withChild(t, shapes, externaltest.Well, set...), ranks, dir, "")
		best, err := checkpoint.ReadBest(filepath.Join(dir, checkpoint.Folder))
		if err != nil || best == nil {
			t.Fatalf("%s: the best is %+v: %v", placement, best, err)
		}
		rows := make([]int32, 200)
		for i := range rows {
			rows[i] = int32(i)
		}
		least, at, found := math.Inf(1), "", 0
		for _, number := range checkpointsOf(t, dir) {
			loss, _, _ := externaltest.Compute(paramsOf(t, filepath.Join(dir, checkpoint.Folder, number)), rows, true, nil)
			if loss /= 200; loss < least {
				least, at = loss, number
			}
			found++
		}
		if at != best.Checkpoint || math.Abs(least-best.Value) > 1e-6*least || found < 3 {
			t.Errorf("%s: of %d checkpoints %s with loss %v is the best; the run says %+v", placement, found, at, least, best)
		}
	}
}

// paramsOf reads the parameters of a checkpoint, in model order.
func paramsOf(t *testing.T, dir string) (params [][]float32) {
	t.Helper()
	all, err := checkpoint.OpenTensors(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	for i, p := range externaltest.Shapes().Params() {
		v := make([]float32, p.N())
		if err := binary.Read(all.Reader(&all.Manifest.Parameters[i]), binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
		params = append(params, v)
	}
	return params
}
