package slurm

import (
	"strings"
	"testing"
	"time"
)

// FuzzCounts: Counts never returns more nodes than the limit.
func FuzzCounts(f *testing.F) {
	for _, seed := range []string{"2(x4)", "4(x2),3", "1(x999999999)", "(x", "1(x2"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		counts, err := Counts(text)
		if err == nil && len(counts) > hostsMax {
			t.Fatalf("%d counts", len(counts))
		}
	})
}

// FuzzFromEnv: for any content of the variables, one a line, the job is read and has a text, or the error names the
// variables.
func FuzzFromEnv(f *testing.F) {
	f.Add("SLURM_JOB_ID=7\nSLURM_JOB_NODELIST=n[1-2]\nSLURM_TASKS_PER_NODE=2(x2)\nSLURM_STEP_ID=0\n" +
		"SLURM_ARRAY_JOB_ID=3\nSLURM_ARRAY_TASK_ID=2")
	f.Add("SLURM_JOB_ID=7\nSLURM_HET_SIZE=128\nSLURM_JOB_NODELIST_HET_GROUP_0=n[1-131072]\nSLURM_JOB_GPUS=0-99999999")
	f.Add("SLURM_JOB_ID=7\nSLURM_GPUS_ON_NODE=999999999999999999\nSLURM_JOB_END_TIME=999999999999999999\nSLURM_LOCALID=-1")
	f.Fuzz(func(t *testing.T, text string) {
		of := map[string]string{}
		for line := range strings.SplitSeq(text, "\n") {
			name, value, _ := strings.Cut(line, "=")
			of[name] = value
		}
		j, err := FromEnv(func(name string) string { return of[name] })
		if err != nil && !strings.Contains(err.Error(), "slurm: ") {
			t.Fatal(err)
		}
		if err == nil && j != nil {
			if j.Text(time.Unix(0, 0)) == "" || j.Tasks != nil && len(j.Tasks) != len(j.Nodes) || len(j.GPUs) > hostsMax {
				t.Fatalf("%+v", j)
			}
		}
	})
}
