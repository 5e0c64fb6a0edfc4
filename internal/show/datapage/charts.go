package datapage

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"

	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/report/plot"
	"fluentps/ps/workload/dataset"
	"fluentps/ps/workload/dataset/profile"
)

// rowsMost is the most bars of a chart of bars.
const rowsMost = 30

// charts are the figures of a page, in order.
func charts(s *Source) (scenes []*plot.Scene) {
	r, p := &s.Report, s.Profile
	if r.Classes > 0 {
		scenes = append(scenes, classBars(r))
	}
	what := "target"
	if r.Matrix != (dataset.Matrix{}) {
		what = "value"
	}
	if p.Outcome != nil {
		scenes = append(scenes, spread("outcome", "Values to predict", what, "rows", p.Outcome))
	}
	if p.PerRow != nil {
		scenes = append(scenes, spread("per-row", "Entries of a row of the matrix", "training entries looked at", "rows of the matrix", p.PerRow),
			spread("per-column", "Entries of a column of the matrix", "training entries looked at", "columns of the matrix", p.PerColumn))
	}
	if bars := aloneBars(s); bars != nil {
		scenes = append(scenes, bars)
	}
	for i := range p.Columns {
		c := &p.Columns[i]
		id := "column-" + strconv.Itoa(i)
		if c.Texts != nil {
			scenes = append(scenes, textBars(id, c))
			continue
		}
		scenes = append(scenes, spread(id, c.Name, "value", "rows", &c.Shown))
	}
	for c := range p.Shades {
		name := "Values of pictures"
		if len(p.Shades) > 1 {
			name = fmt.Sprintf("Values of channel %d", c)
		}
		scenes = append(scenes, spread(fmt.Sprintf("shades-%d", c), name, "value as the model gets it", "pixels", &p.Shades[c]))
	}
	return scenes
}

// spread draws a histogram.
func spread(id, title, what, of string, h *profile.Histogram) *plot.Scene {
	c := &plot.XY{ID: id, Title: title, XLabel: what, YLabel: "share of " + of + " in %", Bars: true, BarWidth: h.Width,
		Desc: fmt.Sprintf("Histogram over %s: %s to %s.", what, number(h.Least), number(h.Most))}
	if h.Whole {
		c.BarWidth = 0
	}
	if h.Outside > 0 {
		c.XLabel += fmt.Sprintf(", without %s %% from %s to %s", number(h.Outside), number(h.Least), number(h.Most))
	}
	if h.NotFinite > 0 {
		c.XLabel += fmt.Sprintf("; %d are not finite", h.NotFinite)
	}
	for i, part := range [][]float64{h.Train, h.Test} {
		line := plot.Line{Label: []string{"training", "test"}[i], Style: i, Marked: true}
		for k, share := range part {
			line.Points = append(line.Points, plot.Point{X: h.From + (float64(k)+0.5)*h.Width, Y: share})
		}
		if part != nil {
			c.Lines = append(c.Lines, line)
		}
	}
	return c.Scene()
}

var parts = []plot.Kind{{Label: "training", Style: 0}, {Label: "test", Style: 1, Hatch: 1}}

// classBars has the rows of each class. Of many classes it has the largest ones.
func classBars(r *dataset.Report) *plot.Scene {
	c := &plot.Strips{ID: "classes", Title: "Rows of each class", XLabel: "rows", Kinds: parts, Desc: "How many rows each class has."}
	order := make([]int, r.Classes)
	for k := range order {
		order[k] = k
	}
	rows := func(k int) int { return r.Train.Counts[k] + r.Test.Counts[k] }
	left := 0
	if len(order) > rowsMost {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(rows(b), rows(a)) })
		for _, k := range order[rowsMost:] {
			left += rows(k)
		}
		c.Title += fmt.Sprintf(": the largest %d of %d", rowsMost, len(order))
		c.XLabel += fmt.Sprintf("; the others have %d together", left)
		order = order[:rowsMost]
	}
	for _, k := range order {
		train, test := float64(r.Train.Counts[k]), float64(r.Test.Counts[k])
		c.Rows = append(c.Rows, plot.Row{Label: className(r, k), Bars: plot.Stacked([]float64{train, test}), Note: strconv.Itoa(rows(k))})
		c.Desc += fmt.Sprintf(" %s: %d training, %d test.", className(r, k), r.Train.Counts[k], r.Test.Counts[k])
	}
	return c.Scene()
}

func className(r *dataset.Report, k int) string {
	if k < len(r.ClassNames) {
		return foreign.Text(r.ClassNames[k])
	}
	return strconv.Itoa(k)
}

// aloneBars compares the columns by what each tells alone. It is nil where nothing is known.
func aloneBars(s *Source) *plot.Scene {
	c := &plot.Strips{ID: "alone", Title: "What one column alone tells", XLabel: "accuracy of a guess from the column alone", To: 1,
		Kinds: []plot.Kind{{Label: "guess", Style: 2}},
		Desc:  "How good a guess from each column alone is, learned from half of the training rows looked at and tried on the rest."}
	if s.Report.Classes == 0 {
		c.XLabel = "R2 of a guess from the column alone"
	}
	var known []*profile.Column
	for i := range s.Profile.Columns {
		if col := &s.Profile.Columns[i]; !math.IsNaN(col.Alone) {
			known = append(known, col)
		}
	}
	slices.SortStableFunc(known, func(a, b *profile.Column) int { return cmp.Compare(b.Alone, a.Alone) })
	for _, col := range known[:min(len(known), rowsMost)] {
		c.Rows = append(c.Rows, plot.Row{Label: short(col.Name), Bars: plot.Stacked([]float64{col.Alone}), Note: fixed(col.Alone)})
		c.Desc += fmt.Sprintf(" %s: %s.", foreign.Text(col.Name), fixed(col.Alone))
	}
	if c.Rows == nil {
		return nil
	}
	return c.Scene()
}

// short shortens a name so that it fits beside bars.
func short(name string) string { return plot.Fit(foreign.Text(name), 0.5*plot.NameWidth) }

// textBars has the shares of the commonest texts of a column.
func textBars(id string, col *profile.Column) *plot.Scene {
	c := &plot.Strips{ID: id, Title: col.Name, XLabel: "share of training rows in %", Kinds: parts[:1],
		Desc: "The commonest texts of the column."}
	texts := col.Texts
	const most = 12
	if len(texts) > most {
		c.XLabel += fmt.Sprintf("; %d more texts", len(texts)-most)
		texts = texts[:most]
	}
	for _, t := range texts {
		c.Rows = append(c.Rows, plot.Row{Label: short(t.Name), Bars: plot.Stacked([]float64{100 * t.Train}), Note: number(100 * t.Train)})
		c.Desc += fmt.Sprintf(" %s: %s %%.", foreign.Text(t.Name), number(100*t.Train))
	}
	return c.Scene()
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

func fixed(v float64) string { return strconv.FormatFloat(v, 'f', 3, 64) }
