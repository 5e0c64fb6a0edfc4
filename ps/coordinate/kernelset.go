package coordinate

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/ps/checkpoint"
	"fluentps/ps/foreign"
)

// kernelSets are the sets of all ranks, each once, in order; with the ranks where there are several, since it matters who has
// which.
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

// untold stands for the sets of a checkpoint that does not tell them, as those of earlier versions.
const untold = "kernels that an earlier version did not tell"

// kernelHistory are the sets that the parameters have been computed with: this run's, and those of the checkpoint that it goes on from.
func (r *Run) kernelHistory() []string {
	sets := kernelSets(r.Units)
	if r.From != nil {
		sets = append(sets, setsOf(r.From.Manifest)...)
	}
	slices.Sort(sets)
	return slices.Compact(sets)
}

// setsOf are the sets that a checkpoint tells, or the word for none.
func setsOf(m *checkpoint.Manifest) []string {
	if len(m.KernelSets) == 0 {
		return []string{untold}
	}
	return m.KernelSets
}

// kernelWarnings tells of ranks that compute with other kernels than others on processors, or with kernels below what their
// hardware can do. Each text stands once, with the ranks that it is true of.
func kernelWarnings(units []UnitReport) []string {
	var warnings []string
	sets, weak := ranksBy(units, func(u UnitReport) string {
		if u.ID != "" { // of which rank computes on a GPU others tell
			return ""
		}
		return u.KernelSet
	}), ranksBy(units, func(u UnitReport) string { return u.Weak })
	if len(sets) > 1 {
		var parts []string
		for _, s := range sets {
			parts = append(parts, fmt.Sprintf("%s (%s)", s.text, ranksText(s.ranks)))
		}
		warnings = append(warnings, fmt.Sprintf("ranks compute with different kernels: %s; results depend on who computes them, in the last bits; "+
			"for the same bits everywhere have the same library on all hosts, and export FLUENTPS_KERNELS_ISA=avx2, say, to all ranks", strings.Join(parts, ", ")))
	}
	for _, w := range weak {
		warnings = append(warnings, fmt.Sprintf("%s: %s", ranksText(w.ranks), w.text))
	}
	return warnings
}

// ranksOf is a text and the ranks that it belongs to.
type ranksOf struct {
	text  string
	ranks []int
}

// ranksBy groups ranks by a text of their units, in the order of their first; the empty text belongs to none.
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

// ranksText lists ranks with runs drawn together: "ranks 0-3, 7".
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

// otherKernels says that a run goes on with other kernels than those that its checkpoint was computed with; "" if it does not.
func otherKernels(before, now []string) string {
	if slices.Equal(before, now) {
		return ""
	}
	return fmt.Sprintf("the checkpoint was computed with %s, this run computes with %s: it goes on from the same parameters, but not to the same bits as an uninterrupted run",
		strings.Join(foreign.Texts(before), " and "), strings.Join(now, " and "))
}
