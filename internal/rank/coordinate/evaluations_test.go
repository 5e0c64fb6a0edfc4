package coordinate_test

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"fluentps/internal/show/metrics"
)

// evaluationText is the result of an evaluation with all digits, without its time.
func evaluationText(t *testing.T, e metrics.Evaluation) string {
	t.Helper()
	e.AtS = 0
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// mustEqual fails unless two runs have so many evaluations, with the same results.
func mustEqual(t *testing.T, what string, got, want []metrics.Evaluation, n int) {
	t.Helper()
	if len(got) != len(want) || len(got) != n {
		t.Fatalf("%s: %d evaluations, want %d; the other run has %d", what, len(got), n, len(want))
	}
	for i := range got {
		if a, b := evaluationText(t, got[i]), evaluationText(t, want[i]); a != b {
			t.Errorf("%s: evaluation %d is %s, want %s", what, i, a, b)
		}
	}
}

// The evaluations beside training are those after it: of the same versions, with the same bits. internal/rank/evaluate computes each.
func TestEvaluationsBesideTrainingAreThoseAfterIt(t *testing.T) {
	set := []string{"data={set: generated, rows: 480, test_rows: 700, features: 37, classes: 5}",
		"model={name: mlp, layers: [19]}", updates(40)}
	want := mustTrain(t, load(t, set...), 6).Summary.Evaluations
	for name, c := range map[string]struct {
		ranks int
		set   []string
	}{
		"two servers": {6, nil}, "one server": {5, []string{"cluster.servers=1"}},
		"ranks that do both": {4, []string{"cluster.placement=colocate"}},
	} {
		got := mustTrain(t, load(t, append(append(c.set, set...), "evaluate.where=online")...), c.ranks).Summary.Evaluations
		mustEqual(t, name, got, want, 3)
	}
}

// A resumed run continues its evaluations beside training: earlier ones are kept, and each epoch is evaluated once.
func TestEvaluationsGoOn(t *testing.T) {
	for _, where := range []string{"online", "after"} {
		set := []string{"evaluate={every_epochs: 1, where: " + where + "}", "data.partition=overlap_reshuffle"}
		dir := filepath.Join(t.TempDir(), "out")
		mustRunPart(t, load(t, append(set, updates(30))...), 6, dir, "")
		got := mustRunPart(t, load(t, append(set, updates(75))...), 6, dir, dir).Summary.Evaluations
		mustEqual(t, where, got, mustTrain(t, load(t, append(set, updates(75))...), 6).Summary.Evaluations, 5)
	}
}
