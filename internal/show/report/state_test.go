package report

import (
	"strings"
	"testing"

	"fluentps/internal/show/metrics"
)

// A table of runs says how each ended in a few words, however long its reason is. No word is cut or quoted for its length.
func TestATableHasTheWordForTheEnd(t *testing.T) {
	for finished, want := range map[string]string{
		"ok": "ok",
		"diverged: the first value that is not finite, NaN, arose " +
			strings.Repeat("far ", 99): "diverged",
		"stopped by a signal to rank 3, host n1: job 7 has reached its time limit of 1h0m0s": "stopped by a signal to rank 3, host n1",
		"stopped by SIGUSR1; it has trained to the end, but the evaluation is not complete":  "stopped by SIGUSR1",
		"the test loss at the end, 9, is more than 10 times that of a constant prediction, 0.5: the run has diverged or " +
			"has learnt noth": "the test loss at the end, 9, is more than 10 times that of a constant prediction, 0.5",
	} {
		rows := RunsTable([]*Run{{Folder: "a", Summary: &metrics.Summary{Job: metrics.Job{Finished: finished}}}}).Rows
		if got := rows[0][1].Text; got != want {
			t.Errorf("%q is %q, want %q", finished, got, want)
		}
	}
}
