package report

import (
	"fmt"
	"math"
	"slices"

	"fluentps/internal/show/report/plot"
)

// scene is a chart of package plot.
type scene interface{ Scene() *plot.Scene }

// progress are the charts of loss and accuracy by wall time, by step and by samples.
func progress(groups []*Group, target *Target) (charts []scene) {
	unit, scale := timeUnit(groups)
	axes := []struct {
		id, label, word string
		whole           bool
		get             func(*Row) float64
	}{
		{"time", "wall time in " + unit, "wall time", false, func(w *Row) float64 { return w.At / scale }},
		{"step", "step: iterations of the run", "step", true, func(w *Row) float64 { return w.Iteration }},
		{"samples", "samples over all workers", "samples", true, func(w *Row) float64 { return w.Samples }},
	}
	measures := []measure{
		{WhatLoss, "Loss", "loss", func(w *Row) float64 { return w.TrainLoss }, func(w *Row) float64 { return w.TestLoss }},
		{WhatAccuracy, "Accuracy", "accuracy", func(w *Row) float64 { return w.TrainAccuracy }, func(w *Row) float64 { return w.TestAccuracy }},
	}
	if slices.ContainsFunc(groups, func(g *Group) bool { return anyPredicts(g.Runs) }) { // such runs have no accuracy
		nothing := func(*Row) float64 { return math.NaN() }
		measures[1] = measure{WhatR2, "R2", "R2", nothing, func(w *Row) float64 { return w.TestR2 }}
	}
	for _, m := range measures {
		for _, x := range axes {
			c := &plot.XY{ID: m.id + "-by-" + x.id, Title: m.title + " by " + x.word, XLabel: x.label, WholeX: x.whole}
			c.Lines, c.YLabel = m.lines(groups, x.get)
			if target != nil && target.What == m.id {
				c.Goal, c.GoalLabel = target.Value, "target "+short(target.Value)
			}
			c.Desc = m.describe(groups, c)
			charts = append(charts, c)
		}
	}
	return charts
}

// measure is a value that training improves.
type measure struct {
	id, title, word string
	train, test     func(*Row) float64
}

// lines has the values of training and test of one group. Of several groups it has those of the test, or of training if there was no
// test.
func (m *measure) lines(groups []*Group, x func(*Row) float64) (lines []plot.Line, label string) {
	if len(groups) == 1 {
		for style, of := range []struct {
			label string
			get   func(*Row) float64
		}{{"training", m.train}, {"test", m.test}} {
			for _, r := range groups[0].Runs {
				if points := pointsOf(r, x, of.get); points != nil {
					lines = append(lines,
						plot.Line{Label: of.label, Style: style, Points: points, Marked: len(points) <= 60, Thin: len(groups[0].Runs) > 1})
				}
			}
		}
		return lines, m.word
	}
	get, label := m.train, "training "+m.word
	for _, g := range groups {
		for _, r := range g.Runs {
			if pointsOf(r, x, m.test) != nil {
				get, label = m.test, "test "+m.word
			}
		}
	}
	for i, g := range groups {
		for k, r := range g.Runs {
			if points := pointsOf(r, x, get); points != nil {
				lines = append(lines, plot.Line{Label: g.Label, Style: i, Points: points, Marked: k == 0, Thin: len(g.Runs) > 1})
			}
		}
	}
	return lines, label
}

// describe says in words what a chart of progress shows.
func (m *measure) describe(groups []*Group, c *plot.XY) string {
	text := fmt.Sprintf("Lines of %s over %s.", c.YLabel, c.XLabel)
	for _, g := range groups {
		if v := g.over(func(r *Run) float64 { return r.final(m.test) }); v.n > 0 {
			text += fmt.Sprintf(" %s ends at %s.", g.Label, v.text(short))
		}
	}
	return text
}

// pointsOf are the points of a run that has at least one.
func pointsOf(r *Run, x, y func(*Row) float64) (points []plot.Point) {
	any := false
	for i := range r.Rows {
		p := plot.Point{X: x(&r.Rows[i]), Y: y(&r.Rows[i])}
		if math.IsNaN(p.Y) {
			continue // a row of another kind
		}
		points, any = append(points, p), true
	}
	if !any {
		return nil
	}
	return points
}

// timeUnit is the unit of an axis of wall time, and its length in seconds.
func timeUnit(groups []*Group) (name string, scale float64) {
	last := 0.0
	for _, g := range groups {
		for _, r := range g.Runs {
			for i := range r.Rows {
				last = math.Max(last, r.Rows[i].At)
			}
		}
	}
	switch {
	case last > 4*3600:
		return "hours", 3600
	case last > 900:
		return "minutes", 60
	}
	return "seconds", 1
}

// staleness is the histogram of one group, or the shares of several.
func staleness(groups []*Group) scene {
	c := &plot.XY{ID: "staleness", Title: "Staleness of pushes", YLabel: "share of pushes in %",
		WholeX: true, ZeroY: true, Bars: len(groups) == 1, Desc: "How often each staleness occurred, over all shards."}
	shown := int64(0) // the values up to here are 99 % in every group
	for _, g := range groups {
		for _, r := range g.Runs {
			if p99 := r.staleness(0.99); len(r.Staleness) > 0 {
				shown = max(shown, int64(p99))
			}
		}
	}
	c.XLabel = fmt.Sprintf("versions between pull and commit, up to %d (99 %%)", shown)
	for i, g := range groups {
		counts, total := map[int64]int64{}, 0.0
		for _, r := range g.Runs {
			for v, n := range r.Staleness {
				counts[v], total = counts[v]+n, total+float64(n)
			}
		}
		if total == 0 {
			continue
		}
		line := plot.Line{Label: g.Label, Style: i, Marked: true}
		most := int64(0)
		for v := range counts {
			most = max(most, v)
		}
		most = min(most, shown)
		for v := int64(0); v <= most; v++ {
			if c.Bars && counts[v] == 0 && v > 0 && v < most {
				continue
			}
			line.Points = append(line.Points, plot.Point{X: float64(v), Y: 100 * float64(counts[v]) / total})
		}
		c.Lines = append(c.Lines, line)
		c.Desc += fmt.Sprintf(" %s: half of the pushes at most %s versions, all at most %s.", g.Label,
			short(g.Runs[0].staleness(0.5)), short(g.Runs[0].staleness(1)))
	}
	return c
}

// traffic has the bytes that ranks sent or read, for one sample.
func traffic(groups []*Group) scene {
	c := &plot.Strips{ID: "bytes", Title: "Bytes for each sample", XLabel: "bytes for each sample",
		Kinds: []plot.Kind{{Label: "sent as messages", Style: 0}, {Label: "read in shared memory", Style: 4, Hatch: 1}},
		Desc:  "Bytes that all ranks sent as messages, and that they read in the memory of others, for each sample."}
	for _, g := range groups {
		sent := g.over(func(r *Run) float64 { return perSample(r, func(r *Run) int64 { return r.Summary.BytesSent }) })
		shared := g.over(func(r *Run) float64 { return perSample(r, func(r *Run) int64 { return r.Summary.BytesShared }) })
		if sent.n == 0 {
			continue
		}
		c.Rows = append(c.Rows,
			plot.Row{Label: g.Label, Bars: plot.Stacked([]float64{sent.mean, shared.mean}), Note: short(sent.mean + shared.mean)})
		c.Desc += fmt.Sprintf(" %s: %s.", g.Label, short(sent.mean+shared.mean))
	}
	return c
}

// perSample divides bytes by the samples since the run, or its last part, began.
func perSample(r *Run, bytes func(*Run) int64) float64 {
	s := r.Summary
	if s == nil {
		return math.NaN()
	}
	samples := s.Samples
	if s.Resumed != nil {
		samples -= s.Resumed.Samples
	}
	if samples <= 0 {
		return math.NaN()
	}
	return float64(bytes(r)) / float64(samples)
}

// wire compares an iteration with the least time that the wire allows. It is nil if no run knows its wire.
func wire(groups []*Group) scene {
	c := &plot.Strips{ID: "wire", Title: "Share of the wire's limit", XLabel: "milliseconds of an iteration",
		Kinds: []plot.Kind{{Label: "least that the network card needs", Style: 0}, {Label: "the rest of an iteration", Style: 5, Hatch: 2}},
		Desc:  "The mean time of an iteration, and the part of it that the slowest network card needs at least."}
	for _, g := range groups {
		limit := g.over(func(r *Run) float64 { return wireOf(r, true) })
		all := g.over(func(r *Run) float64 { return wireOf(r, false) })
		if limit.n > 0 && limit.mean > 0 {
			c.Rows = append(c.Rows,
				plot.Row{Label: g.Label, Bars: plot.Stacked([]float64{1e3 * limit.mean, 1e3 * math.Max(0, all.mean-limit.mean)}),
					Note: percent(limit.mean / all.mean)})
			c.Desc += fmt.Sprintf(" %s: %s.", g.Label, percent(limit.mean/all.mean))
		}
	}
	if c.Rows == nil {
		return nil
	}
	return c
}

func wireOf(r *Run, limit bool) float64 {
	switch {
	case r.Summary == nil || r.Summary.Wire == nil:
		return math.NaN()
	case limit:
		return float64(r.Summary.Wire.LimitS)
	}
	return float64(r.Summary.Wire.IterationS)
}
