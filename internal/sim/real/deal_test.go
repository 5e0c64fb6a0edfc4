package real

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/policy/work"
)

// Where batches come from a record, real gradients in virtual time end with the bits of a real run under bsp; so do fixed shares.
func TestDealtSameBitsAsARun(t *testing.T) {
	for name, set := range map[string][]string{
		"dbs":        {"work={policy: dbs, replay: %s}"},
		"r2sp_batch": {"work={policy: r2sp_batch, profile: 10, rounds: 1, replay: %s}", "cluster.servers=2"},
		"shares":     {"work.shares=[3, 1, 2, 2]", "cluster.servers=2"},
		"rounds":     {"work={policy: dbs, replay: %s}", "baseline=pslite"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), work.RecordName)
			o := realOptions(t, append(slices.Clone(set[1:]), strings.Replace(set[0], "%s", path, 1))...)
			workers, rows := o.Config.Simulate.Workers, o.Rows
			text := work.RecordHeader()
			for k := range int64(40) {
				a := work.Assignment{Until: (k + 1) * work.EpochIterations(rows, o.Config.Batch(workers), workers), Batches: make([]int, workers)}
				if name == "r2sp_batch" {
					a.Until = 10 * (k + 1)
				}
				var m []work.Measured
				for w := range workers {
					took := time.Duration(1+(k+int64(w))%3) * time.Millisecond
					m = append(m, work.Measured{Iterations: 1, Samples: 10, Took: took, Median: took})
				}
				text = work.AppendRecord(text, &a, m)
			}
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
			var err error
			if o.Record, err = o.Config.ReadReplay(workers); err != nil {
				t.Fatal(err)
			}
			changes := 0
			o.Dealt = func(a work.Assignment) {
				if slices.Max(a.Batches) > slices.Min(a.Batches)+1 {
					changes++
				}
			}
			got, want := runReal(t, o).Summary, measured(t, o)
			if got.ParametersSHA256 != want.ParametersSHA256 || got.Samples != want.Samples || name != "shares" && changes < 2 {
				t.Errorf("simulated %.12s after %d samples and %d unequal plans, the run %.12s after %d", got.ParametersSHA256,
					got.Samples, changes, want.ParametersSHA256, want.Samples)
			}
		})
	}
}
