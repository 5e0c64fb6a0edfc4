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

	"fluentps/kernels"
	"fluentps/kernels/cpu"
	"fluentps/ps/checkpoint"
)

func TestRanksWithOtherKernelsAreSaid(t *testing.T) {
	const a, b = "oneDNN 3.1.0 avx512, own avx512", "oneDNN 3.1.0 avx2, own avx2"
	on := func(sets ...string) (units []unitReport) {
		for _, s := range sets {
			u := unitReport{KernelSet: s}
			if strings.HasPrefix(s, "cuda") {
				u.ID = "GPU-1"
			}
			units = append(units, u)
		}
		return units
	}
	weak := on(a, a, a, a)
	for _, i := range []int{0, 1, 3} {
		weak[i].Weak = "too slow"
	}
	for _, c := range []struct {
		what  string
		units []unitReport
		want  string
	}{
		{"all the same", on(a, a, a), ""},
		{"GPUs beside processors, which another warning tells of", on(a, "cuda, X, gemm own"), ""},
		{"two kinds of hosts", on(a, a, b, a, b), "ranks compute with different kernels: " + a + " (ranks 0-1, 3), " + b + " (ranks 2, 4); results depend on who computes them, in the last bits; " +
			"for the same bits everywhere have the same library on all hosts, and export FLUENTPS_KERNELS_ISA=avx2, say, to all ranks"},
		{"below the hardware", weak, "ranks 0-1, 3: too slow"},
		{"one of them", weak[2:], "rank 1: too slow"},
	} {
		if got := strings.Join(kernelWarnings(c.units), "\n"); got != c.want {
			t.Errorf("%s:\n%q\nwant\n%q", c.what, got, c.want)
		}
	}
}

// Who has which set matters, too; and a checkpoint that tells nothing is not taken for one of the same.
func TestSetsOfACheckpoint(t *testing.T) {
	a, b := unitReport{KernelSet: "a"}, unitReport{KernelSet: "b"}
	for _, c := range []struct {
		units []unitReport
		want  string
	}{{[]unitReport{a, a}, "a"}, {[]unitReport{a, a, b}, "a (ranks 0-1), b (rank 2)"}, {[]unitReport{a, b, a}, "a (ranks 0, 2), b (rank 1)"}} {
		if got := strings.Join(kernelSets(c.units), ", "); got != c.want {
			t.Errorf("%v: %s, want %s", c.units, got, c.want)
		}
	}
	if got := otherKernels(setsOf(&checkpoint.Manifest{}), []string{"a"}); !strings.HasPrefix(got, "the checkpoint was computed with kernels that an earlier version did not tell, this run computes with a:") {
		t.Errorf("a checkpoint without sets: %q", got)
	}
}

func TestACheckpointOfOtherKernelsIsSaid(t *testing.T) {
	for _, c := range []struct{ before, now, want string }{
		{"a", "a", ""},
		{"a", "b", "computed with a, this run computes with b: it goes on from the same parameters, but not to the same bits"},
		{"a+b", "a", "computed with a and b, this run computes with a"},
	} {
		split := func(s string) []string { return strings.FieldsFunc(s, func(r rune) bool { return r == '+' }) }
		if got := otherKernels(split(c.before), split(c.now)); !strings.Contains(got, c.want) || (got == "") != (c.want == "") {
			t.Errorf("%q, then %q: %q, want %q", c.before, c.now, got, c.want)
		}
	}
}

// elsewhere computes as the processor does, and says that it is another set.
type elsewhere struct{ kernels.Device }

func (elsewhere) KernelSet() string { return "kernels of another machine" }
func (elsewhere) Weak() string      { return "" }

// The set of each rank stands in run.json, those of all in a checkpoint; who goes on with others is told.
func TestKernelSetsAreRecorded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	part := func(updates int, resume string, device kernels.Device) string {
		var out strings.Builder
		_, errs := partOf(t, load(t, fmt.Sprintf("train.stop={updates: %d}", updates)), 3, dir, resume, func(o *Options) {
			o.NewDevice = func() (kernels.Device, error) { return device, nil }
			if o.Transport.Rank() == 0 {
				o.Out = &out
			}
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	part(2, "", cpu.New(1))
	ours := cpu.Backend()
	var info struct{ Ranks []rankInfo }
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
		t.Errorf("a run that goes on with the same kernels is warned:\n%s", out)
	}
	if out, want := part(6, dir, elsewhere{cpu.New(1)}), "WARNING: the checkpoint was computed with "+ours+", this run computes with kernels of another machine"; !strings.Contains(out, want) {
		t.Errorf("no %q in:\n%s", want, out)
	}
	// What a checkpoint was computed with is the whole course of the run, not its last part.
	both := []string{ours, "kernels of another machine"}
	slices.Sort(both)
	if out, want := part(8, dir, elsewhere{cpu.New(1)}), "computed with "+strings.Join(both, " and ")+", this"; !strings.Contains(out, want) {
		t.Errorf("no %q in:\n%s", want, out)
	}
}
