package report

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/report/plot"
)

// A run or a series of runs is called what the user chose, everywhere: in sentences, legends, tables, figures and
// lists. Its name is the name of its configuration where that tells it apart. Otherwise it is the settings that the
// user wrote and that differ, the scheme first, such as "ssp 3 lr=0.1". What only follows from the default of a
// scheme is in no name, unless nothing else tells two series apart.

// naming is where names are used.
type naming struct {
	list bool // of single runs: the seed is part of the name, and runs of equal settings may share one
	keep bool // the name of the configuration stands before what differs, even if all have the same
}

// namesOf gives each of runs its name. As series all names differ, and each fits into a figure.
func namesOf(runs []*Run, how naming) []string {
	out := make([]string, len(runs))
	given, simulated := make([]string, len(runs)), map[string]bool{}
	byName := map[string][]int{}
	for i, r := range runs {
		given[i] = strings.Join(strings.Fields(foreign.Text(r.Name())), " ")
		byName[given[i]] = append(byName[given[i]], i)
		simulated[given[i]+"\x00"+mark(r)] = true
	}
	switch {
	case how.list:
		fromSettings(out, runs, given, byName, how)
		return out
	case len(simulated) == len(runs):
		cut := commonPrefix(given)
		for i := range out {
			out[i] = given[i][cut:]
		}
	default:
		fromSettings(out, runs, given, byName, how)
	}
	return apart(out, runs)
}

// fromSettings names runs by what differs between those of the same name.
func fromSettings(out []string, runs []*Run, given []string, byName map[string][]int, how naming) {
	for name, members := range byName {
		of := make([]*Run, len(members))
		for k, i := range members {
			of[k] = runs[i]
		}
		texts := newTeller(of, how).tell()
		for k, i := range members {
			if out[i] = texts[k]; len(byName) > 1 || how.keep || texts[k] == "" {
				out[i] = strings.TrimSpace(given[i] + " " + texts[k])
			}
			if len(texts[k]) == 0 && len(members) > 1 && !how.list {
				out[i] = name // apart adds what is missing
			}
		}
	}
}

// mark is what a series of simulated runs has behind its name.
func mark(r *Run) string {
	if r.Simulated() {
		return " (simulated)"
	}
	return ""
}

// apart makes names fit into figures, and adds the folder, or else a number, to those that are equal.
func apart(names []string, runs []*Run) []string {
	out := make([]string, len(names))
	base := func(r *Run) string { return path.Base(path.Clean(strings.ReplaceAll(r.Folder, "\\", "/"))) }
	for _, more := range []func(i int) string{
		func(int) string { return "" },
		func(i int) string { return " in " + base(runs[i]) },
		func(i int) string { return fmt.Sprintf(" #%d", i+1) },
	} {
		count := map[string]int{}
		for i := range out {
			if out[i] == "" {
				more := plot.Fit(more(i), plot.NameWidth/2) + mark(runs[i])
				out[i] = plot.Fit(names[i], plot.NameWidth-plot.TextWidth(more)) + more
			}
			count[out[i]]++
		}
		for i := range out {
			if strings.TrimSpace(out[i]) == "" || count[out[i]] > 1 {
				out[i] = ""
			}
		}
	}
	taken := map[string]bool{}
	for _, name := range out {
		taken[name] = true
	}
	for i := range out { // somebody has called a run as we number them
		for k := 1; out[i] == ""; k++ {
			if name := fmt.Sprintf("run #%d", k) + mark(runs[i]); !taken[name] {
				out[i], taken[name] = name, true
			}
		}
	}
	return out
}

// namesMin is the length of names that are long enough to be worth cutting.
const namesMin = 24

// commonPrefix is the length of the beginning up to a '-' or '_' that all names share and need not show, if one of them is long.
func commonPrefix(names []string) int {
	if len(names) < 2 || !slices.ContainsFunc(names, func(name string) bool { return len(name) >= namesMin }) {
		return 0
	}
	n := len(names[0])
	for _, name := range names[1:] {
		k := 0
		for k < min(n, len(name)) && name[k] == names[0][k] {
			k++
		}
		n = k
	}
	cut := strings.LastIndexAny(names[0][:n], "-_") + 1
	for _, name := range names {
		if len(name) == cut {
			return 0
		}
	}
	return cut
}
