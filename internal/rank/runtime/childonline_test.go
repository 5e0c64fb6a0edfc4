package runtime

import (
	"strings"
	"testing"

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
