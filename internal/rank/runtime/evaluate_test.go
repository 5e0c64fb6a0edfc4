package runtime

import (
	"encoding/json"
	"testing"

	"fluentps/internal/show/metrics"
)

// An evaluation has the same bits whichever ranks compute it: any number of ranks after training, or rank 0 alone beside
// it. The test set is several batches, and the last one is not full.
func TestEvaluationsAreTheSameWhoeverLooks(t *testing.T) {
	set := []string{"data={set: generated, rows: 480, test_rows: 700, features: 37, classes: 5}",
		"model={name: mlp, layers: [19]}", updates(40)}
	evaluations := func(ranks int, change ...string) []metrics.Evaluation {
		t.Helper()
		return mustTrain(t, load(t, append(change, set...)...), ranks).Summary.Evaluations
	}
	want := evaluations(6)
	for _, c := range []struct {
		name  string
		ranks int
		set   []string
	}{
		{"one server", 5, []string{"cluster.servers=1"}},
		{"five servers", 9, []string{"cluster.servers=5"}},
		{"ranks that do both", 4, []string{"cluster.placement=colocate"}},
		{"beside training", 6, []string{"evaluate.where=online"}},
		{"beside training, one server", 5, []string{"evaluate.where=online", "cluster.servers=1"}},
	} {
		got := evaluations(c.ranks, c.set...)
		if len(got) != len(want) || len(got) != 3 {
			t.Fatalf("%s: %d evaluations, want %d", c.name, len(got), len(want))
		}
		for i := range got {
			if a, b := evaluationText(got[i]), evaluationText(want[i]); a != b {
				t.Errorf("%s: evaluation %d is %s; with two servers, when training was over, %s", c.name, i, a, b)
			}
		}
	}
}

// evaluationText is the result of an evaluation with all digits, without its time.
func evaluationText(e metrics.Evaluation) string {
	e.AtS = 0
	data, err := json.Marshal(e)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
