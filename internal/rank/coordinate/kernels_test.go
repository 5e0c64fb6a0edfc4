package coordinate_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/rank/coordinate"
	"fluentps/internal/show/metrics"
	"fluentps/kernels"
	"fluentps/kernels/cpu"
)

// elsewhere is the processor under the name of another kernel set.
type elsewhere struct{ kernels.Device }

func (elsewhere) KernelSet() string { return "kernels of another machine" }
func (elsewhere) Weak() string      { return "" }

// run.json has the kernel set of each rank, a checkpoint those of all ranks. A run that resumes with other kernels gets a
// warning.
func TestKernelSetsAreRecorded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	part := func(n int64, resume string, other bool) string {
		var out strings.Builder
		p := &part{config: load(t, updates(n)), ranks: 3, dir: dir, resume: resume, device: func(int) kernels.Device {
			if other {
				return elsewhere{cpu.New(1)}
			}
			return cpu.New(1)
		}}
		p.lead = func(o *coordinate.LeadOptions) { o.Out = &out }
		p.must(t)
		return out.String()
	}
	part(2, "", false)
	ours := cpu.Backend()
	var info struct{ Ranks []coordinate.RankInfo }
	if text, err := os.ReadFile(filepath.Join(dir, metrics.RunInfoName)); err != nil {
		t.Fatal(err)
	} else if err := json.Unmarshal(text, &info); err != nil {
		t.Fatal(err)
	}
	if len(info.Ranks) != 3 {
		t.Errorf("run.json names %d ranks, want 3", len(info.Ranks))
	}
	for _, r := range info.Ranks {
		if r.KernelSet != ours {
			t.Errorf("run.json: rank %d, %s, has kernel set %q, want %q", r.Rank, r.Role, r.KernelSet, ours)
		}
	}
	if out := part(4, dir, false); strings.Contains(out, "the checkpoint was computed with") {
		t.Errorf("a warning about a run that resumes with the same kernels:\n%s", out)
	}
	if out, want := part(6, dir, true), "WARNING: the checkpoint was computed with "+ours+
		", this run computes with kernels of another machine"; !strings.Contains(out, want) {
		t.Errorf("no %q in:\n%s", want, out)
	}
	// A checkpoint names the kernels of the whole run, not only those of its last part.
	both := []string{ours, "kernels of another machine"}
	slices.Sort(both)
	if out, want := part(8, dir, true), "computed with "+strings.Join(both, " and ")+", this"; !strings.Contains(out, want) {
		t.Errorf("no %q in:\n%s", want, out)
	}
}
