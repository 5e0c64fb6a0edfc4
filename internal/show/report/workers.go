package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/show/report/plot"
)

// causeKinds are the looks of causes: waits have lines across, so they are seen without color.
var causeKinds = []plot.Kind{
	computing: {Style: 0},
	injected:  {Style: 5, Hatch: 3},
	pushing:   {Style: 4},
	behind:    {Style: 1, Hatch: 1},
	turns:     {Style: 7, Hatch: 3},
	answering: {Style: 3, Hatch: 2},
	blocked:   {Style: 1, Hatch: 1},
	pulling:   {Style: 2},
}

func init() {
	for k := range causeKinds {
		causeKinds[k].Label = causeNames[k]
	}
}

// rowsMax is the most workers that a chart has a row for.
const rowsMax = 16

// shares compares what the workers of groups spent their time on.
func shares(groups []*Group) scene {
	c := &plot.Strips{ID: "causes", Title: "What workers spent their time on", XLabel: "share of the workers' time in %",
		From: 0, To: 100, Kinds: causeKinds,
		Desc: "For each run the mean over workers of the time for computing, push and pull, and of blocked time by its cause."}
	for _, g := range groups {
		var sum times
		whole := 0.0
		for _, r := range g.Runs {
			all := causesOf(r)
			for k, v := range all.mean() {
				sum[k], whole = sum[k]+v, whole+v
			}
		}
		if whole <= 0 {
			continue
		}
		for k := range sum {
			sum[k] *= 100 / whole
		}
		c.Rows = append(c.Rows, plot.Row{Label: g.Label, Bars: plot.Stacked(sum[:])})
		c.Desc += fmt.Sprintf(" %s: computing %s, blocked %s.", g.Label, percent(sum[computing]/100), percent(sum.waits()/100))
	}
	return c
}

// spent shows what each worker of a run spent its time on.
func spent(r *Run, id string) scene {
	c := &plot.Strips{ID: id + "causes", Title: "Time of each worker, blocked time by cause", XLabel: "seconds", Kinds: causeKinds,
		Desc: "For each worker the time for computing, push and pull, and its blocked time by cause."}
	all := causesOf(r)
	for _, w := range chosen(len(all.workers), func(w int) float64 { return all.workers[w].waits() }) {
		label := fmt.Sprintf("w%d", w)
		if len(r.Iterations) == 0 {
			label = "mean"
		}
		c.Rows = append(c.Rows, plot.Row{Label: label, Bars: plot.Stacked(all.workers[w][:])})
	}
	return c
}

// chosen are at most rowsMax of n workers, in order: if there are more, half of them have the largest values and half the smallest.
func chosen(n int, value func(int) float64) (workers []int) {
	for w := range n {
		workers = append(workers, w)
	}
	if n <= rowsMax {
		return workers
	}
	slices.SortStableFunc(workers, func(a, b int) int { return cmp.Compare(value(a), value(b)) })
	workers = append(workers[:rowsMax/2:rowsMax/2], workers[n-rowsMax/2:]...)
	slices.Sort(workers)
	return workers
}

// clockError bounds the error of the times of each worker, against one clock; 0 also if it is not known.
func (r *Run) clockError() time.Duration {
	if r.Summary == nil {
		return 0
	}
	return min(max(0, time.Duration(r.Summary.ClockErrorNS)), time.Hour)
}

// clockWords say what the error of the clocks does to a figure of leads; "" if there is none.
func (r *Run) clockWords() string {
	bound := r.clockError()
	if bound == 0 {
		return ""
	}
	return fmt.Sprintf(" The clocks of the hosts are known within %s ms; what happened within that error counts as "+
		"completed.", short(1e3*bound.Seconds()))
}

// leads shows the lead of each worker over time.
func leads(r *Run, id string) scene {
	c := &plot.XY{ID: id + "lead", Title: "Lead of each worker", XLabel: "seconds since training began",
		YLabel: "iterations ahead of the slowest", ZeroY: true,
		Desc: "For each worker, at the start of each iteration, how many iterations it was ahead of the slowest worker; " +
			"in long runs the mean over stretches of time." + r.clockWords()}
	leads := timings.LeadsOf(r.Iterations, r.clockError())
	mean := make([]float64, len(r.Iterations))
	lines := make([]plot.Line, len(r.Iterations))
	for w, all := range r.Iterations {
		lines[w] = plot.Line{Label: fmt.Sprintf("w%d", w), Style: w, Thin: true}
		for i := range all {
			lead := float64(leads.Of(&all[i]))
			mean[w] += lead / float64(len(all))
			lines[w].Points = append(lines[w].Points, plot.Point{X: all[i].Start.Seconds(), Y: lead})
		}
		lines[w].Points = averaged(lines[w].Points)
	}
	for k, w := range chosen(len(lines), func(w int) float64 { return mean[w] }) {
		lines[w].Style = k
		c.Lines = append(c.Lines, lines[w])
		c.Desc += fmt.Sprintf(" w%d: %s on average.", w, short(mean[w]))
	}
	return c
}

// averaged replaces many points by the means of stretches of them: a lead that flickers between two values would fill an area.
func averaged(points []plot.Point) (means []plot.Point) {
	if len(points) <= 2*leadBuckets {
		return points
	}
	for b := range leadBuckets {
		part := points[b*len(points)/leadBuckets : (b+1)*len(points)/leadBuckets]
		var mean plot.Point
		for _, p := range part {
			mean.X, mean.Y = mean.X+p.X/float64(len(part)), mean.Y+p.Y/float64(len(part))
		}
		means = append(means, mean)
	}
	return means
}

// leadBuckets is the number of stretches of time for which a comparison shows the largest lead.
const leadBuckets = 120

// largestLeads compares the largest lead of any worker over time.
func largestLeads(groups []*Group) scene {
	c := &plot.XY{ID: "lead", Title: "Largest lead of any worker", XLabel: "seconds since training began",
		YLabel: "iterations ahead of the slowest", ZeroY: true,
		Desc: "For each run, how many iterations its fastest worker was ahead of its slowest, over time."}
	for i, g := range groups {
		r := g.Runs[0]
		leads := timings.LeadsOf(r.Iterations, r.clockError())
		end := leads.End().Seconds()
		if end == 0 {
			continue
		}
		most := [leadBuckets]float64{}
		seen := [leadBuckets]bool{}
		for _, all := range r.Iterations {
			for k := range all {
				if b := int(all[k].Start.Seconds() / end * leadBuckets); b >= 0 && b < leadBuckets {
					most[b], seen[b] = math.Max(most[b], float64(leads.Of(&all[k]))), true
				}
			}
		}
		line := plot.Line{Label: g.Label, Style: i}
		for b, v := range most {
			if seen[b] {
				line.Points = append(line.Points, plot.Point{X: (float64(b) + 0.5) / leadBuckets * end, Y: v})
			}
		}
		c.Lines = append(c.Lines, line)
		c.Desc += fmt.Sprintf(" %s: at most %s.", g.Label, short(slices.Max(most[:])))
	}
	return c
}

// The Gantt chart shows some iterations from the middle of a run.
const (
	ganttIterations = 5   // of the median worker
	ganttSlow       = 1.6 // of the slowest worker, at least
	ganttBarsMax    = 1500
)

// gantt shows what each worker did when, for some iterations.
func gantt(r *Run, id string) scene {
	c := &plot.Strips{ID: id + "gantt", Title: "Some iterations of each worker", XLabel: "milliseconds", Kinds: causeKinds,
		Desc: "What each worker did during some iterations from the middle of the run."}
	from, to := window(r)
	if from >= to {
		return c
	}
	c.To = 1e3 * (to - from).Seconds()
	c.XLabel = fmt.Sprintf("milliseconds after second %s of training", short(from.Seconds()))
	ends, turn := releases(r)
	bars := 0
	for _, w := range chosen(len(r.Iterations), func(w int) float64 { return -float64(len(r.Iterations[w])) }) {
		row := plot.Row{Label: fmt.Sprintf("w%d", w)}
		all := r.Iterations[w]
		for i := range all {
			it := &all[i]
			if it.End()+it.Blocked+it.Pull < from || it.Start > to || bars > ganttBarsMax {
				continue
			}
			at := it.Start
			for _, part := range phases(it, w, ends, turn, r.Cut) {
				row.Bars = append(row.Bars,
					plot.Bar{From: 1e3 * (at - from).Seconds(), To: 1e3 * (at + part.took - from).Seconds(), Kind: int(part.cause)})
				at += part.took
				bars++
			}
		}
		c.Rows = append(c.Rows, row)
	}
	return c
}

// phase is a part of an iteration.
type phase struct {
	cause cause
	took  time.Duration
}

// phases are the parts of an iteration in the order in which they are drawn. Push happens between the layers of backward; it is
// drawn after it.
func phases(it *timings.Iteration, worker int, ends []end, turn, cut bool) (parts []phase) {
	slept := min(it.Injected, it.Compute)
	_, waited := releasedBy(ends, worker, it)
	wait := []phase{{behind, waited}, {answering, it.Blocked - waited}}
	switch {
	case cut:
		wait = []phase{{blocked, it.Blocked}}
	case turn:
		wait = []phase{{turns, it.Blocked}}
	}
	for _, p := range append(append([]phase{{computing, it.Compute - slept}, {injected, slept}, {pushing, it.Push}},
		wait...), phase{pulling, it.Pull}) {
		if p.took > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

// window is the stretch of time that the Gantt chart shows.
func window(r *Run) (from, to time.Duration) {
	var last time.Duration
	var periods []float64
	for _, all := range r.Iterations {
		if len(all) == 0 {
			continue
		}
		end := all[len(all)-1].End()
		last = max(last, end)
		periods = append(periods, (end-all[0].Start).Seconds()/float64(len(all)))
	}
	if len(periods) == 0 {
		return 0, 0
	}
	slices.Sort(periods)
	length := time.Duration(1e9 * max(ganttIterations*periods[len(periods)/2], ganttSlow*periods[len(periods)-1]))
	longest := slices.MaxFunc(r.Iterations, func(a, b []timings.Iteration) int { return cmp.Compare(len(a), len(b)) })
	from = longest[2*len(longest)/5].Start
	if length >= last-from {
		from, length = max(0, last-length), min(last, length)
	}
	return from, from + length
}
