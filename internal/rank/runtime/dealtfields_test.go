package runtime

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/policy/work"
)

// Fields about batches that no run wrote are named, and nothing is written or trained.
func TestInvalidFieldsOfBatchesAreNamed(t *testing.T) {
	const manifest, worker = "manifest.json", "worker-0001.bin"
	for _, c := range []struct{ file, pattern, by, says string }{
		{manifest, `"number": ?(\d+),\s*"from"`, "-7", "state.work.assignment.number is -7"},
		{manifest, `"number": ?(\d+),\s*"from"`, "9223372036854775807", "state.work.assignment.number is 9223372036854775807"},
		{manifest, `"until": ?(\d+)`, "3", "state.work.assignment.until is 3"},
		{manifest, `"until": ?(\d+)`, "1000000000000", "state.work.assignment.until is 1000000000000"},
		{manifest, `"batches": ?\[\s*(\d+)`, "0", "does not belong to a run of 4 workers and 40 samples"},
		{manifest, `"batches": ?\[\s*(\d+)`, "400", "does not belong to a run of 4 workers and 40 samples"},
		{manifest, `"batches": ?(\[[^]]*\])`, "[20, 20]", "does not belong to a run of 4 workers and 40 samples"},
		{manifest, `"memory": ?\[\s*(\d+)`, "0.5, 7, 7, 7", "that r2sp_batch remembers cannot be one of a run of 4 workers"},
		{manifest, `"memory": ?(\[[^]]*\])`, "[1e300]", "that r2sp_batch remembers cannot be one of a run of 4 workers"},
		{worker, `"took_ns":(\d+)`, "9223372036854775807", "tallies[0].took_ns is 9223372036854775807"},
		{worker, `"samples":(\d+)`, "-5", "tallies[0].samples is -5"},
		{worker, `"times_ns":\[(\d+)`, "-9223372036854775808", "tallies[0].times_ns[0] is -9223372036854775808"},
	} {
		t.Run(c.file+" "+c.by, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			set := slices.Concat(dealt,
				[]string{"sync=[{match: '*', scheme: bsp}]", "work={policy: r2sp_batch, profile: 4}", "model={name: softmax}", "faults=[]"})
			mustRunPart(t, load(t, append(set, "train.stop={updates: 6}")...), 5, dir, "")
			at := filepath.Join(dir, checkpoint.Folder, "000000000001")
			rewriteFile(t, at, c.file, replaceField(t, c.pattern, c.by))
			_, errs := runPart(t, load(t, append(set, "train.stop={updates: 12}")...), 5, dir, dir, nil)
			if err := errors.Join(errs...); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want %q", err, c.says)
			}
		})
	}
}

// The record of a run that resumes with other workers is kept under another name, and a new one begins.
func TestTheRecordOfOtherWorkersIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	set := slices.Concat(dealt, []string{"sync=[{match: '*', scheme: bsp}]", "model={name: softmax}", "faults=[]"})
	mustRunPart(t, load(t, append(set, "train.stop={updates: 14}")...), 5, dir, "")
	_, errs := runPart(t, load(t, append(set, "train.stop={updates: 40}")...), 4, dir, dir,
		func(o *Options) { o.AllowChanged = []string{"workers"} })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for name, workers := range map[string]int{"work-before-14.csv": 4, work.RecordName: 3} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := work.ParseRecord(text, workers); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
