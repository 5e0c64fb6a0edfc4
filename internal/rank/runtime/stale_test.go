package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
)

// rowsOf returns the records in a run folder.
func rowsOf(t *testing.T, dir string) (rows []map[string]float64) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		row := map[string]float64{}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		rows = append(rows, row)
	}
	return rows
}

// The records have the staleness of every rule, also of a rule whose shards are all on another server than the lead shard.
// The largest staleness of the run is in some record, and the delayed pulls at the end are those of all servers. That holds
// if the servers report during training, and if only their reports at the end count.
func TestRecordsHaveTheStalenessOfEveryRule(t *testing.T) {
	for _, c := range []struct {
		interval string
		updates  int // 12 are over before the first report, unless the machine is busy
	}{{"100ms", 80}, {"1h", 80}, {"1h", 12}} {
		t.Run(fmt.Sprintf("%s-%d", c.interval, c.updates), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			cfg := load(t, "model={name: mlp, layers: [6]}", "shards.slice=layer",
				`sync=[{match: "fc2.*", scheme: bsp}, {match: "*", scheme: ssp, staleness: 3}]`,
				"faults=[{worker: 3, slow: {sleep: 5ms}}, {worker: '*', slow: {sleep: 1ms}}]",
				fmt.Sprintf("train.stop={updates: %d}", c.updates), "evaluate.every_epochs=0", "metrics.interval="+c.interval)
			res, errs := world(t, cfg, 6, func(o *Options) {
				if o.Transport.Rank() == 0 {
					o.Lead.Folder = &metrics.FolderSpec{Out: dir}
				}
			})
			if err := errors.Join(errs...); err != nil {
				t.Fatal(err)
			}
			want, servers, delayed := map[string]int64{}, map[string]int{}, int64(0)
			for _, sh := range res[0].Summary.PerShard {
				rule := map[string]int{"fc2.*": 0, "*": 1}[sh.Name[:strings.LastIndexByte(sh.Name, '/')]]
				key := fmt.Sprintf("sync[%d]/staleness_max", rule)
				want[key], servers[key] = max(want[key], sh.StalenessMax), sh.Server
				delayed += sh.DelayedPulls
			}
			if servers["sync[0]/staleness_max"] == servers["sync[1]/staleness_max"] || want["sync[1]/staleness_max"] == 0 {
				t.Fatalf("servers %v, staleness %v: the test compares nothing", servers, want)
			}
			got, last, train := map[string]int64{}, 0.0, 0
			for _, row := range rowsOf(t, dir) {
				for key := range want {
					got[key] = max(got[key], int64(row[key]))
				}
				if _, trained := row["train/loss"]; trained {
					last = row["sync/delayed_pulls"]
					train++
				}
				if p99 := row["sync[1]/staleness_p99"]; p99 > row["sync[1]/staleness_max"] || row["sync[1]/staleness_max"] > row["sync/staleness_max"] {
					t.Errorf("record %v", row)
				}
			}
			most := 2 + int(float64(res[0].Summary.TrainS)/station.BeatEvery.Seconds())
			if fmt.Sprint(got) != fmt.Sprint(want) || int64(last) != delayed || train > most {
				t.Errorf("the records have %v and %v delayed pulls; the summary %v and %d, of %d records, at most %d", got, last,
					want, delayed, train, most)
			}
		})
	}
}
