package report

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"

	"fluentps/ps/foreign"
)

// Group is runs that differ in their seed only: one line of a comparison.
type Group struct {
	Label string
	Runs  []*Run
}

// Simulated says whether a run of the group is simulated.
func (g *Group) Simulated() bool { return slices.ContainsFunc(g.Runs, (*Run).Simulated) }

// over is the spread of a value over the runs.
func (g *Group) over(value func(*Run) float64) spread {
	var all []float64
	for _, r := range g.Runs {
		all = append(all, value(r))
	}
	return spreadOf(all)
}

// Groups puts runs that differ in their seed only together, in the order in which they first occur, and names them.
func Groups(runs []*Run) (groups []*Group) {
	byKey := map[string]*Group{}
	for _, r := range runs {
		key := settingsKey(r)
		if byKey[key] == nil {
			byKey[key] = &Group{}
			groups = append(groups, byKey[key])
		}
		byKey[key].Runs = append(byKey[key].Runs, r)
	}
	label(groups)
	return groups
}

// settingsKey is equal for runs that differ in their seed only. A run whose configuration is unknown is alone.
func settingsKey(r *Run) string {
	if r.Settings == nil {
		return "folder " + r.Folder
	}
	var b strings.Builder
	if s := r.Summary; s != nil {
		fmt.Fprintf(&b, "%s %d %d\n", s.Mode, s.Servers, s.Workers)
	}
	for _, k := range slices.Sorted(maps.Keys(r.Settings)) {
		if k != "seed" {
			fmt.Fprintf(&b, "%q=%q\n", k, r.Settings[k])
		}
	}
	return b.String()
}

// label names the groups: by the names of their runs if these differ, else by the settings that differ, else by folder.
func label(groups []*Group) {
	names := make([]string, len(groups))
	for i, g := range groups {
		names[i] = g.Runs[0].Name()
	}
	if !different(groups, names) {
		names = differences(groups)
	}
	if !different(groups, names) {
		for i, g := range groups {
			names[i] = path.Base(path.Clean(strings.ReplaceAll(g.Runs[0].Folder, "\\", "/")))
		}
	}
	if !different(groups, names) {
		for i, g := range groups {
			names[i] = g.Runs[0].Folder
		}
	}
	cut := commonPrefix(names)
	for i, g := range groups {
		g.Label = shortened(foreign.Text(names[i][cut:]))
		if g.Simulated() {
			g.Label += " (simulated)"
		}
	}
}

// labelMax is the length of the longest label.
const labelMax = 60

// shortened keeps both ends of a text, because names differ there.
func shortened(text string) string {
	if runes := []rune(text); len(runes) > labelMax {
		return string(runes[:labelMax/2]) + "…" + string(runes[len(runes)-labelMax/2+1:])
	}
	return text
}

// different says whether the names tell the groups apart. A simulated group is marked, so it differs from a real one.
func different(groups []*Group, names []string) bool {
	seen := map[string]bool{}
	for i, n := range names {
		if groups[i].Simulated() {
			n += " "
		}
		if strings.TrimSpace(n) == "" || seen[n] {
			return false
		}
		seen[n] = true
	}
	return true
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

// Differing are the keys whose values differ between groups.
func Differing(groups []*Group) (keys []string) {
	all := map[string]bool{}
	for _, g := range groups {
		for k := range g.Runs[0].Settings {
			all[k] = true
		}
	}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		first := groups[0].Runs[0].Settings[k]
		if k != "seed" && k != "name" && slices.ContainsFunc(groups, func(g *Group) bool { return g.Runs[0].Settings[k] != first }) {
			keys = append(keys, k)
		}
	}
	return keys
}

// labelKeysMax is the most settings that a label shows.
const labelKeysMax = 3

// differences names groups by their values of the keys that differ, such as "ssp staleness=3".
func differences(groups []*Group) []string {
	keys := Differing(groups)
	names := make([]string, len(groups))
	if len(keys) > labelKeysMax*2 {
		keys = slices.DeleteFunc(keys, func(k string) bool { return !strings.Contains(k, "scheme") && !strings.Contains(k, "policy") })
	}
	for i, g := range groups {
		var parts []string
		for _, k := range keys {
			v, ok := g.Runs[0].Settings[k]
			last := k[strings.LastIndexByte(k, '.')+1:]
			switch {
			case !ok || len(parts) >= labelKeysMax:
			case last == "scheme" || last == "policy":
				parts = append(parts, v)
			default:
				parts = append(parts, last+"="+v)
			}
		}
		names[i] = strings.Join(parts, " ")
	}
	return names
}

// Target is what runs race to.
type Target struct {
	What  string // accuracy or loss, on the test set
	Value float64
	Given string // who chose it, in words
}

// reached is when a run first reached the target; all NaN if it did not.
func (t *Target) reached(r *Run) (at, samples, steps float64) {
	for i := range r.Rows {
		w := &r.Rows[i]
		if t.What == WhatLoss && w.TestLoss <= t.Value || t.What == WhatAccuracy && w.TestAccuracy >= t.Value {
			return w.At, w.Samples, w.Iteration
		}
	}
	return math.NaN(), math.NaN(), math.NaN()
}

// The measures that a target may be of.
const (
	WhatAccuracy = "accuracy"
	WhatLoss     = "loss"
)

func (t *Target) text() string { return "test " + t.What + " " + short(t.Value) }

// chooseTarget takes the target of the configurations, if all agree. Else it is the best value that every group reached.
func chooseTarget(groups []*Group) *Target {
	common, ok := math.NaN(), true
	for _, g := range groups {
		for _, r := range g.Runs {
			if r.Summary == nil || r.Summary.Target == nil || !math.IsNaN(common) && float64(*r.Summary.Target) != common {
				ok = false
				continue
			}
			common = float64(*r.Summary.Target)
		}
	}
	if ok && common > 0 {
		return &Target{WhatAccuracy, common, "the target of the configurations"}
	}
	worst, loss := math.Inf(1), math.Inf(-1)
	for _, g := range groups {
		for _, r := range g.Runs {
			if best := r.best(); !math.IsNaN(best) { // a run without evaluations reaches nothing, whatever the target
				worst = math.Min(worst, best)
			}
			lowest := math.NaN()
			for _, w := range r.Rows {
				if w.TestLoss < lowest || math.IsNaN(lowest) {
					lowest = w.TestLoss
				}
			}
			if !math.IsNaN(lowest) {
				loss = math.Max(loss, lowest)
			}
		}
	}
	if worst > 0 && worst <= 1 {
		if v := math.Floor(worst*100+1e-9) / 100; v > 0 {
			return &Target{WhatAccuracy, v, "no target was given; this is the best accuracy, in whole per cent, that every run reached"}
		}
	}
	if loss > 0 && !math.IsInf(loss, 0) {
		p := math.Pow(10, math.Floor(math.Log10(loss))-1)
		return &Target{WhatLoss, math.Ceil(loss/p-1e-9) * p, "no target was given; this is the lowest loss, in two digits, that every run reached"}
	}
	return nil
}
