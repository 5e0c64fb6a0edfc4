package coordinate

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/metrics"
	"fluentps/kernels"
)

// kernelSets returns the kernel sets of all ranks, each once, sorted. If there are several, each names its ranks, since
// results depend on the assignment.
func kernelSets(units []UnitReport) []string {
	var sets []string
	groups := ranksBy(units, func(u UnitReport) string { return u.KernelSet })
	for _, g := range groups {
		if len(groups) > 1 {
			g.text += " (" + ranksText(g.ranks) + ")"
		}
		sets = append(sets, g.text)
	}
	slices.Sort(sets)
	return sets
}

// unknownKernels stands for the kernel sets of a checkpoint that lacks them, as those of earlier versions do.
const unknownKernels = "kernels that an earlier version did not tell"

// kernelHistory returns the kernel sets that the parameters were computed with: those of this run and of the checkpoint
// that it resumed from.
func (r *Run) kernelHistory() []string {
	sets := kernelSets(r.Units)
	if r.From != nil {
		sets = append(sets, setsOf(r.From.Manifest)...)
	}
	slices.Sort(sets)
	return slices.Compact(sets)
}

// setsOf returns the kernel sets of a checkpoint, or unknownKernels.
func setsOf(m *checkpoint.Manifest) []string {
	if len(m.KernelSets) == 0 {
		return []string{unknownKernels}
	}
	return m.KernelSets
}

// kernelWarnings warns of ranks that compute on processors with different kernels, and of kernels below what the hardware
// can do. Each text appears once, with its ranks.
func kernelWarnings(units []UnitReport) []string {
	var warnings []string
	sets, weak := ranksBy(units, func(u UnitReport) string {
		if u.ID != "" { // unitWarnings covers GPUs
			return ""
		}
		return u.KernelSet
	}), ranksBy(units, func(u UnitReport) string { return u.Weak })
	if len(sets) > 1 {
		var parts []string
		for _, s := range sets {
			parts = append(parts, fmt.Sprintf("%s (%s)", s.text, ranksText(s.ranks)))
		}
		warnings = append(warnings, fmt.Sprintf("ranks compute with different kernels: %s; the last bits of results "+
			"depend on the rank that computes them; "+
			"for the same bits everywhere have the same library on all hosts, and export FLUENTPS_KERNELS_ISA=avx2, say, to "+
			"all ranks", strings.Join(parts, ", ")))
	}
	for _, w := range weak {
		warnings = append(warnings, fmt.Sprintf("%s: %s", ranksText(w.ranks), w.text))
	}
	return warnings
}

// ranksOf is a text and the ranks that it applies to.
type ranksOf struct {
	text  string
	ranks []int
}

// ranksBy groups ranks by a text of their units, in the order of the first rank of each group. Ranks with the text "" are
// in no group.
func ranksBy(units []UnitReport, text func(UnitReport) string) []ranksOf {
	var groups []ranksOf
	for rank, u := range units {
		t := text(u)
		if t == "" {
			continue
		}
		i := slices.IndexFunc(groups, func(g ranksOf) bool { return g.text == t })
		if i < 0 {
			i = len(groups)
			groups = append(groups, ranksOf{text: t})
		}
		groups[i].ranks = append(groups[i].ranks, rank)
	}
	return groups
}

// ranksText lists ranks, with consecutive ones as a range: "ranks 0-3, 7".
func ranksText(ranks []int) string {
	if len(ranks) == 1 {
		return fmt.Sprintf("rank %d", ranks[0])
	}
	var parts []string
	for i := 0; i < len(ranks); {
		j := i
		for j+1 < len(ranks) && ranks[j+1] == ranks[j]+1 {
			j++
		}
		if j > i {
			parts = append(parts, fmt.Sprintf("%d-%d", ranks[i], ranks[j]))
		} else {
			parts = append(parts, fmt.Sprint(ranks[i]))
		}
		i = j + 1
	}
	return "ranks " + strings.Join(parts, ", ")
}

// otherKernels warns of a run that resumes with other kernels than those of its checkpoint; "" if they are the same.
func otherKernels(before, now []string) string {
	if slices.Equal(before, now) {
		return ""
	}
	return fmt.Sprintf("the checkpoint was computed with %s, this run computes with %s: it resumes from the same "+
		"parameters, but its results will differ in the last bits from those of an uninterrupted run",
		strings.Join(foreign.Texts(before), " and "), strings.Join(now, " and "))
}

// UnitReport is what rank 0 knows of a rank's unit. Name, ID and CUDAAware are empty for a rank that computes no gradients.
type UnitReport struct {
	Name, ID  string
	CUDAAware string // whether MPI reaches its memory; "": it is not a GPU
	KernelSet string // of the unit; for a rank that only evaluates, of the host's processor
	Weak      string // what keeps its kernels below what the hardware can do
}

// Describe sets the kernels of a device.
func (u *UnitReport) Describe(device kernels.Device) {
	if d, ok := device.(kernels.Describer); ok {
		u.KernelSet, u.Weak = d.KernelSet(), d.Weak()
	}
}

// unitWarnings warns of unusual devices of a run.
func unitWarnings(units []UnitReport, hosts []string) []string {
	warnings := kernelWarnings(units)
	gpus, cpus := 0, 0
	ranks, ids := map[string]int{}, map[string][]string{}
	var order []string
	for rank, u := range units {
		switch h := hosts[rank]; {
		case u.ID != "":
			gpus++
			if ranks[h]++; ranks[h] == 1 {
				order = append(order, h)
			}
			if !slices.Contains(ids[h], u.ID) {
				ids[h] = append(ids[h], u.ID)
			}
		case u.Name != "":
			cpus++
		}
	}
	if gpus > 0 && cpus > 0 {
		warnings = append(warnings, fmt.Sprintf("%s on GPUs and %s on CPUs: results differ in the last bits, and speeds by far",
			verbed(gpus, "computes", "compute"), verbed(cpus, "computes", "compute")))
	}
	for _, h := range order {
		if n := len(ids[h]); ranks[h] > n {
			warnings = append(warnings, fmt.Sprintf("host %s: %s on %s: they take turns, so their computing times depend on "+
				"each other; start as many workers as GPUs, or MPS",
				h, verbed(ranks[h], "computes", "compute"), metrics.Count(n, "GPU")))
		}
	}
	return warnings
}

func verbed(n int, one, many string) string {
	if n == 1 {
		return metrics.Count(n, "rank") + " " + one
	}
	return metrics.Count(n, "rank") + " " + many
}
