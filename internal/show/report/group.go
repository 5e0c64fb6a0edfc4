package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
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

// label names the groups as series.
func label(groups []*Group) {
	var first []*Run
	for _, g := range groups {
		first = append(first, g.Runs[0])
	}
	for i, name := range namesOf(first, naming{}) {
		groups[i].Label = name
	}
}

// Differing are the keys whose values differ between groups, those first that users wrote, as in names.
func Differing(groups []*Group) (keys []string) {
	var first []*Run
	for _, g := range groups {
		first = append(first, g.Runs[0])
	}
	t := newTeller(first, naming{})
	return append(t.keys, t.spare[:len(t.spare)-2]...) // without the numbers of servers and workers
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
		if t.hit(w) {
			return w.At, w.Samples, w.Iteration
		}
	}
	return math.NaN(), math.NaN(), math.NaN()
}

// value is what the target is of, in a row.
func (t *Target) value(w *Row) float64 {
	switch t.What {
	case WhatLoss:
		return w.TestLoss
	case WhatR2:
		return w.TestR2
	}
	return w.TestAccuracy
}

// hit says whether a row reaches the target.
func (t *Target) hit(w *Row) bool {
	v := t.value(w)
	return t.What == WhatLoss && v <= t.Value || t.What != WhatLoss && v >= t.Value
}

// between is when a run can have reached the target: after the last evaluation that missed it, and until the first
// from which on the target was kept. Values of evaluations rise and fall by chance, so one that reached it may be the
// luck of one evaluation. NaN: it was never reached.
func (t *Target) between(r *Run) (soonest, latest float64) {
	soonest, latest = 0, math.NaN()
	hit, kept := false, false
	for i := range r.Rows {
		w := &r.Rows[i]
		if math.IsNaN(t.value(w)) {
			continue
		}
		reached := t.hit(w)
		switch {
		case !reached && !hit:
			soonest = w.At
		case !reached:
			latest, kept = w.At, false
		case !kept:
			hit, kept, latest = true, true, w.At
		}
	}
	if !hit {
		return math.NaN(), math.NaN()
	}
	return soonest, latest
}

// The measures that a target may be of.
const (
	WhatAccuracy = "accuracy"
	WhatLoss     = "loss"
	WhatR2       = "r2" // of runs that predict numbers
)

func (t *Target) text() string { return "test " + whatWord(t.What) + " " + short(t.Value) }

// whatWord is a measure for people.
func whatWord(what string) string {
	if what == WhatR2 {
		return "R2"
	}
	return what
}

// scoreOf is what targets of these runs are of, if not of a loss. mixed: some predict numbers, and some classes.
func scoreOf(groups []*Group) (score string, mixed bool) {
	numbers, classes := false, false
	for _, g := range groups {
		for _, r := range g.Runs {
			isNumbers := r.predicts()
			numbers = numbers || isNumbers
			classes = classes || !isNumbers && slices.ContainsFunc(r.Rows, func(w Row) bool { return !math.IsNaN(w.TestAccuracy) })
		}
	}
	if numbers {
		return WhatR2, classes
	}
	return WhatAccuracy, false
}

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
	score, mixed := scoreOf(groups)
	if mixed { // neither measure is one of all runs, and neither are their losses
		return nil
	}
	if ok && common > 0 {
		return &Target{score, common, "the target of the configurations"}
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
			return &Target{score, v, "no target was given; this is the best " + whatWord(score) + ", in whole per cent, that every run reached"}
		}
	}
	if loss > 0 && !math.IsInf(loss, 0) {
		p := math.Pow(10, math.Floor(math.Log10(loss))-1)
		return &Target{WhatLoss, math.Ceil(loss/p-1e-9) * p,
			"no target was given; this is the lowest loss, in two digits, that every run reached"}
	}
	return nil
}
