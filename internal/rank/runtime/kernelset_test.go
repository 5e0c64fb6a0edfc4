package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/rank/coordinate"
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
	part := func(updates int, resume string, device kernels.Device) string {
		var out strings.Builder
		_, errs := runPart(t, load(t, fmt.Sprintf("train.stop={updates: %d}", updates)), 3, dir, resume, func(o *Options) {
			o.NewDevice = func() (kernels.Device, error) { return device, nil }
			if o.Transport.Rank() == 0 {
				o.Lead.Out = &out
			}
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	part(2, "", cpu.New(1))
	ours := cpu.Backend()
	var info struct{ Ranks []coordinate.RankInfo }
	if text, err := os.ReadFile(filepath.Join(dir, "run.json")); err != nil {
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
	if out := part(4, dir, cpu.New(1)); strings.Contains(out, "the checkpoint was computed with") {
		t.Errorf("a warning about a run that resumes with the same kernels:\n%s", out)
	}
	if out, want := part(6, dir, elsewhere{cpu.New(1)}), "WARNING: the checkpoint was computed with "+ours+
		", this run computes with kernels of another machine"; !strings.Contains(out, want) {
		t.Errorf("no %q in:\n%s", want, out)
	}
	// A checkpoint names the kernels of the whole run, not only those of its last part.
	both := []string{ours, "kernels of another machine"}
	slices.Sort(both)
	if out, want := part(8, dir, elsewhere{cpu.New(1)}), "computed with "+strings.Join(both, " and ")+", this"; !strings.Contains(out, want) {
		t.Errorf("no %q in:\n%s", want, out)
	}
}
