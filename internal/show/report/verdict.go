package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"fluentps/internal/show/metrics"
)

// standing is one group with its result.
type standing struct {
	*Group
	style                    int // its place in the charts
	time, samples, steps     spread
	soonest, latest          spread // between which its time lies, as far as evaluations tell
	reached                  int    // runs that reached the target
	speed, best, lost        spread
	staleness, stalenessMost spread
}

// rank orders groups: by the time to the target, then those that missed it by their best accuracy. Without a target, by speed.
func rank(groups []*Group, target *Target) (order []*standing) {
	for i, g := range groups {
		s := &standing{Group: g, style: i, speed: g.over((*Run).speed), best: g.over((*Run).best),
			lost:          g.over(func(r *Run) float64 { return r.share(metrics.Blocked) }),
			staleness:     g.over(func(r *Run) float64 { return r.staleness(0.5) }),
			stalenessMost: g.over(func(r *Run) float64 { return r.staleness(1) })}
		if target != nil {
			var at, samples, steps, soonest, latest []float64
			for _, r := range g.Runs {
				t, n, k := target.reached(r)
				from, to := target.between(r)
				at, samples, steps = append(at, t), append(samples, n), append(steps, k)
				soonest, latest = append(soonest, from), append(latest, to)
			}
			s.time, s.samples, s.steps = spreadOf(at), spreadOf(samples), spreadOf(steps)
			s.soonest, s.latest = spreadOf(soonest), spreadOf(latest)
			s.reached = s.time.n
		} else {
			none := spreadOf(nil)
			s.time, s.samples, s.steps = none, none, none
		}
		order = append(order, s)
	}
	slices.SortStableFunc(order, func(a, b *standing) int {
		all := func(s *standing) int { return map[bool]int{true: 0, false: 1}[s.reached == len(s.Runs)] }
		if target == nil {
			return descending(a.speed.mean, b.speed.mean)
		}
		return cmp.Or(cmp.Compare(all(a), all(b)), ascending(a.time.mean, b.time.mean), descending(a.best.mean, b.best.mean))
	})
	return order
}

// ascending compares numbers, and puts those that are none last.
func ascending(a, b float64) int {
	if math.IsNaN(a) || math.IsNaN(b) {
		return map[bool]int{true: 1}[math.IsNaN(a)] - map[bool]int{true: 1}[math.IsNaN(b)]
	}
	return cmp.Compare(a, b)
}

func descending(a, b float64) int { return ascending(-a, -b) }

// asMany says how many times as many, where it shows a difference.
func asMany(ratio float64) string {
	const shown = 0.005 // short shows two digits of what is near 1
	if math.Abs(ratio-1) < shown {
		return "as many"
	}
	return short(ratio) + " times as many"
}

// levelShare is the difference below which two runs are called level: runs on a machine differ by so much from chance.
const levelShare = 0.03

// chance is the deviation of a single run, as a share of its mean: the median of those that have several seeds, or levelShare. So a run
// without seeds is taken to vary as the others do.
func chance(order []*standing) float64 {
	var seen []float64
	for _, s := range order {
		if s.time.n > 1 && s.time.mean > 0 {
			seen = append(seen, s.time.deviation/s.time.mean)
		}
	}
	if seen == nil {
		return levelShare
	}
	slices.Sort(seen)
	return math.Max(levelShare, seen[(len(seen)-1)/2])
}

// level says whether the difference of two times is within their deviations, or too small to mean anything.
func level(a, b spread, chance float64) bool {
	noise := 0.0
	for _, s := range []spread{a, b} {
		deviation := chance * s.mean
		if s.n > 1 {
			deviation = s.deviation
		}
		noise = math.Hypot(noise, deviation)
	}
	return math.Abs(a.mean-b.mean) <= math.Max(noise, levelShare*math.Max(a.mean, b.mean))
}

// Verdict says who won, by how much and why: the first sentence is the answer.
func verdict(order []*standing, target *Target) (sentences []string) {
	say := func(format string, args ...any) { sentences = append(sentences, fmt.Sprintf(format, args...)) }
	first := order[0]
	switch {
	case target == nil && math.IsNaN(first.speed.mean):
		say("Nothing was measured in these runs that could be compared.")
		return sentences
	case target == nil && fasterThanNone(order):
		say("No clear winner: %s are equally fast, as far as these runs tell. %s took in %s.", joined(labelsOf(order)),
			first.Label, samplesPerS(first.speed))
	case target == nil && len(first.Runs) == 1:
		say("%s is ahead in speed: %s.", first.Label, samplesPerS(first.speed))
	case target == nil:
		say("%s is the fastest: %s.", first.Label, samplesPerS(first.speed))
	case first.reached == 0:
		say("No run reached the target, %s.", target.text())
		return sentences
	case len(levelWith(order)) > 0:
		say("No clear winner: %s are level. %s reached %s after %s%s.", joined(append([]string{first.Label}, levelWith(order)...)), first.Label,
			target.text(), first.time.text(seconds), ofSeeds(first))
	default:
		word, why := lead(order)
		say("%s %s: it reached %s after %s%s.", first.Label, word, target.text(), first.time.text(seconds),
			cmp.Or(ofSeeds(first), ", with one seed"))
		if why != "" {
			sentences = append(sentences, why)
		}
	}
	if target == nil {
		say("No test accuracy or loss was recorded, so this is the speed only, and not what the runs learned.")
		sentences = append(sentences, slower(order, func(s *standing) float64 { return first.speed.mean / s.speed.mean }, "as fast as")...)
	} else {
		sentences = append(sentences, behindTarget(order, target)...)
	}
	sentences = append(sentences, reasons(order, target)...)
	return append(sentences, caveats(order, target)...)
}

// lead says whether the first won, or is only ahead, and then why no more can be said; of single runs the last sentences say it.
func lead(order []*standing) (word, why string) {
	first := order[0]
	var single, close []string
	for k, s := range order {
		if len(s.Runs) == 1 && k < 2 {
			single = append(single, s.Label)
		}
		if k > 0 && s.reached > 0 && first.latest.mean >= s.soonest.mean {
			close = append(close, s.Label)
		}
	}
	if close != nil {
		why = fmt.Sprintf("The gap to %s is within the noise of the evaluations: the target was reached after the last "+
			"one that missed it, and no later than the first from which on it was kept.", joined(close))
	} else if single != nil && len(first.Runs)+len(order[min(1, len(order)-1)].Runs) > 2 {
		why = fmt.Sprintf("There is one seed of %s, so the gap may be chance.", joined(single))
	}
	if single != nil || close != nil {
		return "is ahead", why
	}
	return "won", ""
}

// fasterThanNone says whether the speeds of the first two cannot be told apart.
func fasterThanNone(order []*standing) bool {
	return len(order) > 1 && !math.IsNaN(order[1].speed.mean) && level(order[0].speed, order[1].speed, levelShare)
}

// labelsOf are the groups that are as fast as the first.
func labelsOf(order []*standing) (labels []string) {
	for k, s := range order {
		if k == 0 || level(order[0].speed, s.speed, levelShare) {
			labels = append(labels, s.Label)
		}
	}
	return labels
}

// levelWith are the groups whose time cannot be told from that of the first.
func levelWith(order []*standing) (labels []string) {
	for _, s := range order[1:] {
		if s.reached > 0 && level(order[0].time, s.time, chance(order)) {
			labels = append(labels, s.Label)
		}
	}
	return labels
}

func samplesPerS(s spread) string { return s.text(short) + " samples per second" }

// ofSeeds says how many seeds a mean is of.
func ofSeeds(s *standing) string {
	if len(s.Runs) == 1 {
		return ""
	}
	if s.reached < len(s.Runs) {
		return fmt.Sprintf(", in %d of %d seeds", s.reached, len(s.Runs))
	}
	return fmt.Sprintf(", the mean of %d seeds", len(s.Runs))
}

// alike is ofSeeds, unless the first has as many and the reader knows.
func alike(s, first *standing) string {
	if len(s.Runs) == len(first.Runs) && s.reached == len(s.Runs) {
		return ""
	}
	return ofSeeds(s)
}

// behindTarget says how much longer the others took.
func behindTarget(order []*standing, target *Target) (sentences []string) {
	first := order[0]
	var took, missed, unknown []string
	for _, s := range order[1:] {
		switch {
		case s.reached == 0 && bestOf(s, target) == absent:
			unknown = append(unknown, s.Label)
		case s.reached == 0:
			missed = append(missed, fmt.Sprintf("%s (best %s)", s.Label, bestOf(s, target)))
		case level(first.time, s.time, chance(order)):
			took = append(took, fmt.Sprintf("%s took %s times as long, which is no difference here (%s%s)", s.Label,
				short(s.time.mean/first.time.mean), s.time.text(seconds), alike(s, first)))
		default:
			took = append(took, fmt.Sprintf("%s took %s times as long (%s%s)", s.Label, short(s.time.mean/first.time.mean),
				s.time.text(seconds), alike(s, first)))
		}
	}
	if took != nil {
		sentences = append(sentences, joined(took)+".")
	}
	if missed != nil {
		sentences = append(sentences, "The target was missed by "+joined(missed)+".")
	}
	if unknown != nil {
		sentences = append(sentences, "Nothing is known of what "+joined(unknown)+" learned: without an evaluation there is a speed only.")
	}
	return sentences
}

func bestOf(s *standing, target *Target) string {
	if target.What == WhatLoss {
		return short(s.over(func(r *Run) float64 { return r.final(func(w *Row) float64 { return w.TestLoss }) }).mean)
	}
	if target.What == WhatR2 {
		return short(s.over(func(r *Run) float64 { return r.most(func(w *Row) float64 { return w.TestR2 }) }).mean)
	}
	return short(s.over(func(r *Run) float64 { return r.most(func(w *Row) float64 { return w.TestAccuracy }) }).mean)
}

func slower(order []*standing, ratio func(*standing) float64, words string) []string {
	var parts []string
	for _, s := range order[1:] {
		if q := ratio(s); !math.IsNaN(q) {
			parts = append(parts, fmt.Sprintf("%s times %s %s", short(q), words, s.Label))
		}
	}
	if parts == nil {
		return nil
	}
	return []string{"It is " + joined(parts) + "."}
}

// reasons compares the winner with the group that took longest: samples per second, samples needed, what its workers waited for, and
// the price in staleness.
func reasons(order []*standing, target *Target) (sentences []string) {
	first, last := order[0], order[len(order)-1]
	for k := len(order) - 1; k > 0 && target != nil && order[k].reached == 0; k-- {
		last = order[k-1]
	}
	if last == first {
		last = order[min(1, len(order)-1)]
	}
	if last == first {
		return nil
	}
	if target != nil && first.samples.n > 0 && last.samples.n > 0 {
		sentences = append(sentences, fmt.Sprintf("Against %s, %s took in %s samples per second, and needed %s samples to get there.",
			last.Label, first.Label, asMany(first.speed.mean/last.speed.mean), asMany(first.samples.mean/last.samples.mean)))
	}
	if text := straggler(order); text != "" {
		sentences = append(sentences, text)
	}
	for _, s := range []*standing{last, first} {
		if math.IsNaN(s.lost.mean) {
			continue
		}
		text := fmt.Sprintf("The workers of %s were blocked for %s of training", s.Label, percent(s.lost.mean))
		if why := whyBlocked(s.Runs); why != "" {
			text += ", mostly " + why
		}
		sentences = append(sentences, text+".")
	}
	if first.staleness.n > 0 && last.staleness.n > 0 {
		sentences = append(sentences, fmt.Sprintf("Staleness in versions: the pushes of %s had %s in the median and at "+
			"most %s, those of %s %s and at most %s.",
			first.Label, short(first.staleness.mean), short(first.stalenessMost.mean), last.Label, short(last.staleness.mean),
			short(last.stalenessMost.mean)))
	}
	return sentences
}

// slowMin is how many times as long as the median worker a straggler computes, at least.
const slowMin = 1.5

// straggler names the worker that is the slowest in most groups; "" if there is none.
func straggler(order []*standing) string {
	ratios := map[int][]float64{}
	known := 0
	for _, s := range order {
		slowest, ratio := -1, 0.0
		for w, q := range s.Runs[0].slowness() {
			if q > ratio && !math.IsInf(q, 0) {
				slowest, ratio = w, q
			}
		}
		if slowest >= 0 {
			known++
		}
		if ratio >= slowMin {
			ratios[slowest] = append(ratios[slowest], ratio)
		}
	}
	for w, all := range ratios {
		if 2*len(all) > known {
			slices.Sort(all)
			text := short(all[0])
			if last := short(all[len(all)-1]); last != text {
				text += " to " + last
			}
			return fmt.Sprintf("Worker %d is a straggler: in %d of %d settings it computes %s times as long as the median "+
				"worker.", w, len(all), known, text)
		}
	}
	return ""
}

// caveats says what the comparison cannot know.
func caveats(order []*standing, target *Target) (sentences []string) {
	simulated, single, mixed := 0, 0, 0
	for _, s := range order {
		if s.Simulated() {
			simulated++
		}
		if len(s.Runs) == 1 {
			single++
		}
		for _, r := range s.Runs {
			if r.Summary == nil || r.Summary.Finished != metrics.FinishedOK {
				mixed++
			}
		}
	}
	if target != nil {
		sentences = append(sentences, fmt.Sprintf("The target: %s. A run is judged at its evaluations, so times are as "+
			"fine as these are frequent.", target.Given))
	}
	if share := chance(order); share > levelShare && single > 0 {
		sentences = append(sentences, fmt.Sprintf("Single runs are taken to vary by %s, as those with several seeds do.", percent(share)))
	}
	if single == len(order) {
		sentences = append(sentences, "There is one seed of each: small differences may be chance. Runs that differ in "+
			"the seed only are put together, with mean and deviation.")
	}
	if simulated > 0 && simulated < len(order) {
		sentences = append(sentences, "Simulated and real runs stand side by side: simulated times come from a model.")
	} else if simulated > 0 {
		sentences = append(sentences, "All runs are simulated: times come from a model.")
	}
	if mixed > 0 {
		sentences = append(sentences, fmt.Sprintf("%s did not finish: see the notes below.", metrics.Count(mixed, "run")))
	}
	return sentences
}

// joined makes a sentence of parts.
func joined(parts []string) string {
	if len(parts) == 1 {
		return parts[0]
	}
	return strings.Join(parts[:len(parts)-1], ", ") + " and " + parts[len(parts)-1]
}
