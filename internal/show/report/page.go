package report

import (
	"bytes"
	"cmp"
	"fmt"
	"html/template"
	"slices"
	"strings"

	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/report/plot"
)

// Document is a report: the page, its figures and its tables.
type Document struct {
	Page    []byte // HTML
	Figures []*plot.Scene
	Tables  []*Table
	Verdict []string // the sentences at the top of the page
}

// Options of a report.
type Options struct {
	Target *Target // nil: that of the configurations, or one that all runs reached
	Build  string  // of the program, for the foot of the page
}

// view is what the template shows.
type view struct {
	Title, Kind, Build string
	Style              template.CSS
	Verdict            []string
	Simulated          bool
	Damage             []damage
	Advice             []string
	Ranking            *Table
	RankingTitle       string
	Figures            []figure
	Untold             []string
	Clocks             string // how exactly times of different hosts can be compared; "": they are of one clock
	Tables             []*Table
	Details            []detail
	One                bool
}

type damage struct {
	Folder string
	Notes  []string
}

type figure struct {
	ID, Title string
	SVG       template.HTML
}

// detail is one run of a comparison.
type detail struct {
	ID, Label, Folder string
	Sentences         []string
	Advice            []string
	Figures           []figure
}

// Make makes the report of one run, or the comparison of several.
func Make(runs []*Run, o Options) (*Document, error) {
	if len(runs) == 0 {
		return nil, fmt.Errorf("report: there is no run")
	}
	for _, r := range runs {
		r.complete()
	}
	groups := Groups(runs)
	target := o.Target
	if target == nil {
		target = chooseTarget(groups)
	}
	d := &Document{}
	v := &view{Build: foreign.Visible(o.Build), Style: template.CSS(plot.Style()), One: len(groups) == 1}
	var charts []scene
	if v.One {
		charts = d.one(v, groups[0], target, o.Target != nil)
	} else {
		charts = d.several(v, groups, target)
	}
	if c := wire(groups); c != nil {
		charts = append(charts, c)
	} else {
		v.Untold = append(v.Untold, "The share of the wire's limit is unknown: all ranks were on one host, or neither "+
			"cluster.link nor a measurement gave the rate of the network cards.")
	}
	v.Figures = d.draw(charts)
	v.Clocks = slices.MaxFunc(runs, func(a, b *Run) int { return cmp.Compare(a.clockError(), b.clockError()) }).clockWords()
	for _, r := range runs {
		v.Simulated = v.Simulated || r.Simulated()
		if len(r.Damage) > 0 {
			v.Damage = append(v.Damage, damage{foreign.Text(r.Folder), r.Damage})
		}
	}
	v.Verdict = d.Verdict
	d.Tables = append(d.Tables, runsTable(runs, naming{list: true, keep: v.One || len(groups) == 1}))
	v.Tables = d.Tables
	if !v.One {
		v.Tables = v.Tables[1:] // the ranking stands at the top
	}
	var b bytes.Buffer
	if err := pageTemplate.Execute(&b, v); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	d.Page = visible(&b)
	return d, nil
}

// one fills the view of one run, or of one setting with several seeds.
func (d *Document) one(v *view, g *Group, target *Target, given bool) []scene {
	r := g.Runs[0]
	v.Title, v.Kind = r.Name(), "Report of a run"
	if len(g.Runs) > 1 {
		v.Kind = fmt.Sprintf("Report of %d runs that differ in the seed only", len(g.Runs))
		t := ranking(rank([]*Group{g}, target), target)
		v.RankingTitle = "Over the seeds"
		t.Caption = strings.Replace(t.Caption, "Comparison, the best first", "Mean and deviation over the seeds", 1)
		d.Tables, v.Ranking, v.One = append(d.Tables, t), t, false
	}
	d.Verdict = account(r.Name(), r, target)
	if len(g.Runs) > 1 {
		d.Verdict = append([]string{overSeeds(g), "What follows is of the first run, and so are the charts of workers."}, d.Verdict...)
	}
	v.Advice = r.Notes
	if r.WhatIf != nil && len(r.WhatIf.Candidates) > 0 {
		d.Tables = append(d.Tables, whatIfTable(r.WhatIf))
	}
	if len(r.WorkerRows) > 0 {
		d.Tables = append(d.Tables, rowsTable(r.WorkerRows))
	}
	if !given && (r.Summary == nil || r.Summary.Target == nil) {
		target = nil // the goal of one run alone would be its own best value
	}
	return append(progress([]*Group{g}, target), staleness([]*Group{g}), leads(r, ""), spent(r, ""), gantt(r, ""), traffic([]*Group{g}))
}

// overSeeds says in words what runs that differ in their seed reached.
func overSeeds(g *Group) string {
	text := fmt.Sprintf("%s: %d seeds", g.Label, len(g.Runs))
	number := func(v float64) string { return fixed(v, 4) }
	if s := g.over(func(r *Run) float64 { return r.final(func(w *Row) float64 { return w.TestAccuracy }) }); s.n > 0 {
		text += " reached test accuracy " + s.text(number)
	} else if s := g.over(func(r *Run) float64 { return r.final(func(w *Row) float64 { return w.TestR2 }) }); s.n > 0 {
		text += " reached test R2 " + s.text(number)
	} else if s := g.over(func(r *Run) float64 { return r.final(func(w *Row) float64 { return w.TestLoss }) }); s.n > 0 {
		text += " reached test loss " + s.text(number)
	}
	if s := g.over((*Run).speed); s.n > 0 {
		text += ", at " + samplesPerS(s)
	}
	return text + "."
}

// several fills the view of a comparison.
func (d *Document) several(v *view, groups []*Group, target *Target) []scene {
	order := rank(groups, target)
	v.Title, v.Kind = fmt.Sprintf("%d settings compared", len(groups)), "Comparison of runs"
	d.Verdict = verdict(order, target)
	v.Ranking, v.RankingTitle = ranking(order, target), "Who was first"
	d.Tables = append(d.Tables, v.Ranking)
	if t := settingsTable(groups); len(t.Rows) > 0 {
		d.Tables = append(d.Tables, t)
	}
	for i, g := range groups {
		r := g.Runs[0]
		id := fmt.Sprintf("run%d-", i)
		v.Details = append(v.Details,
			detail{ID: fmt.Sprintf("run%d", i), Label: g.Label, Folder: foreign.Text(r.Folder),
				Sentences: account(g.Label, r, target), Advice: r.Notes,
				Figures: d.draw([]scene{of(g, spent(r, id)), of(g, gantt(r, id)), of(g, leads(r, id))})})
	}
	return append(progress(groups, target), shares(groups), staleness(groups), largestLeads(groups), traffic(groups))
}

// named is a chart that says to those who cannot see it which series it is of.
type named struct {
	scene
	of string
}

func of(g *Group, chart scene) scene { return named{chart, g.Label} }

// Scene lays the chart out.
func (n named) Scene() *plot.Scene {
	s := n.scene.Scene()
	s.Desc = n.of + ": " + s.Desc
	return s
}

// draw lays charts out.
func (d *Document) draw(charts []scene) (figures []figure) {
	for _, c := range charts {
		s := c.Scene()
		d.Figures = append(d.Figures, s)
		figures = append(figures, figure{s.ID, s.Title, template.HTML(s.SVG())})
	}
	return figures
}

// Index is the page that lists runs. links are the addresses of their pages; "" is that of a run without one.
func Index(title string, runs []*Run, links []string, build string) ([]byte, error) {
	v := &view{Title: title, Kind: metrics.Count(len(runs), "run"), Build: foreign.Visible(build), Style: template.CSS(plot.Style())}
	t := RunsTable(runs)
	for i := range t.Rows {
		t.Rows[i][0].Link = links[i]
	}
	var b bytes.Buffer
	err := index.Execute(&b, struct {
		*view
		Table *Table
	}{v, t})
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return visible(&b), nil
}

// visible is a page in which no text of a run is invisible: a terminal that shows the file obeys none.
func visible(page *bytes.Buffer) []byte { return []byte(foreign.Visible(page.String())) }
