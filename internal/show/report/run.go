// Package report makes the documents that show what happened in runs: a page, its figures, and its tables as CSV and LaTeX. One run
// is explained; several are compared on the same axes.
//
// The package is pure: the runs come in as data (internal/show/report/folder reads them), and documents go out as bytes. What runs hold is
// foreign: every text is escaped for the form that it is written to.
package report

import (
	"math"
	"slices"
	"sort"

	"fluentps/internal/disk/foreign"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
)

// Run is what is known of one run. Everything may be missing, because a run may have been killed.
type Run struct {
	Folder     string            // as the user named it
	Summary    *metrics.Summary  // nil: the run has not finished
	Settings   map[string]string // the resolved configuration, by the path of the key; nil: unknown
	Chosen     []string          // the keys of Settings, or their sections, that the user wrote; those of a sweep first; nil: unknown
	Swept      int               // so many of Chosen are keys of a sweep
	Rows       []Row             // measurements, in the order of time
	Iterations [][]timings.Iteration
	Cut        bool            // iterations of some workers are missing, so they do not tell who waited for whom
	Staleness  map[int64]int64 // how often each value occurred, over all shards
	Notes      []string        // advice of summary.txt
	WorkerRows []int64         // training rows of each worker; nil: they are dealt equally
	WhatIf     *WhatIf         // nil: nothing was simulated after the run
	Damage     []string        // what is missing or cannot be read, for the reader of the page
}

// Row is one row of measurements. What was not measured is NaN.
type Row struct {
	At, Iteration, Samples    float64
	TrainLoss, TrainAccuracy  float64
	TestLoss, TestAccuracy    float64
	TestR2, TestRMSE          float64
	SamplesPerS, StalenessP50 float64
	StalenessMax, Blocked     float64
}

// WhatIf is what the simulator told after the run.
type WhatIf struct {
	Line       string    // in one sentence or two
	Candidates []Changed // the best first
}

// Changed is the run as it would have been with a change.
type Changed struct {
	Name                       string
	Ratio                      float64 // of samples per second to those of the run as it was, simulated as well
	StalenessP50, StalenessMax float64 // versions
}

// NoRow is a row without any measurement.
func NoRow() Row {
	n := math.NaN()
	return Row{n, n, n, n, n, n, n, n, n, n, n, n, n}
}

// Name is the name that the configuration gives the run, or that of its folder.
func (r *Run) Name() string {
	if r.Summary != nil && r.Summary.Name != "" {
		return foreign.Text(r.Summary.Name)
	}
	if name := r.Settings["name"]; name != "" {
		return foreign.Text(name)
	}
	return foreign.Text(r.Folder)
}

// Simulated says whether the times of the run are those of a model.
func (r *Run) Simulated() bool { return r.Summary != nil && r.Summary.Mode == "simulated" }

// State is how the run ended: ok, the reason, or that nothing is known.
func (r *Run) State() string {
	if r.Summary == nil {
		return "no summary: it was killed, or is still running"
	}
	return foreign.Text(r.Summary.Finished)
}

// complete adds evaluations of the summary that no row has, and sorts the rows by time. A simulated run has only these.
func (r *Run) complete() {
	if r.Summary != nil {
		tested := slices.ContainsFunc(r.Rows, func(w Row) bool { return !math.IsNaN(w.TestLoss) || !math.IsNaN(w.TestAccuracy) })
		for _, e := range r.Summary.Evaluations {
			if tested {
				break
			}
			w := NoRow()
			w.At, w.Samples = float64(e.AtS), float64(e.Samples)
			if r.Summary.Samples > 0 {
				w.Iteration = math.Round(float64(r.Summary.Iterations) * float64(e.Samples) / float64(r.Summary.Samples))
			}
			w.TestLoss, w.TestAccuracy = optional(e.TestLoss), optional(e.TestAccuracy)
			w.TestR2, w.TestRMSE = optional(e.TestR2), optional(e.TestRMSE)
			r.Rows = append(r.Rows, w)
		}
	}
	r.Rows = slices.DeleteFunc(r.Rows, func(w Row) bool { return math.IsNaN(w.At) })
	sort.SliceStable(r.Rows, func(a, b int) bool { return r.Rows[a].At < r.Rows[b].At })
}

func optional(v *metrics.Float) float64 {
	if v == nil {
		return math.NaN()
	}
	return float64(*v)
}

// share is the mean over workers of a span, as a part of training. Without a summary it comes from the iterations.
func (r *Run) share(span metrics.Span) float64 {
	if r.Summary != nil && r.Summary.TrainS > 0 {
		if times, ok := r.Summary.PerRole[metrics.RoleWorker]; ok {
			return float64(times[span.String()].Avg / r.Summary.TrainS)
		}
	}
	all := causesOf(r)
	whole, part := all.total(), 0.0
	for c, v := range all.mean() {
		if causeSpans[c] == span {
			part += v
		}
	}
	if whole <= 0 {
		return math.NaN()
	}
	return part / whole
}

// speed is the number of samples per second.
func (r *Run) speed() float64 {
	if r.Summary != nil && r.Summary.SamplesPerS > 0 {
		return float64(r.Summary.SamplesPerS)
	}
	for i := len(r.Rows) - 1; i >= 0; i-- {
		if r.Rows[i].At > 0 && r.Rows[i].Samples > 0 {
			return r.Rows[i].Samples / r.Rows[i].At
		}
	}
	return math.NaN()
}

// staleness is a quantile of the staleness over all shards, in versions; NaN without a histogram.
func (r *Run) staleness(q float64) float64 {
	var values []int64
	total := int64(0)
	for v, n := range r.Staleness {
		values, total = append(values, v), total+n
	}
	if total == 0 {
		if r.Summary == nil || len(r.Summary.PerShard) == 0 {
			return math.NaN()
		}
		most := int64(0)
		for _, s := range r.Summary.PerShard {
			most = max(most, map[bool]int64{true: s.StalenessP50, false: s.StalenessMax}[q <= 0.5])
		}
		return float64(most)
	}
	slices.Sort(values)
	seen := int64(0)
	for _, v := range values {
		if seen += r.Staleness[v]; float64(seen) >= q*float64(total) {
			return float64(v)
		}
	}
	return float64(values[len(values)-1])
}

// best is the best test accuracy, or R2 of a run that predicts numbers, or NaN.
func (r *Run) best() float64 { return r.most((*Row).score) }

// most is the largest value of a column that is a number.
func (r *Run) most(get func(*Row) float64) float64 {
	best := math.NaN()
	for i := range r.Rows {
		if v := get(&r.Rows[i]); v > best || math.IsNaN(best) {
			best = v
		}
	}
	return best
}

// score is what a target is of, if it is not a loss.
func (w *Row) score() float64 {
	if !math.IsNaN(w.TestR2) {
		return w.TestR2
	}
	return w.TestAccuracy
}

// predicts says whether the run predicts numbers, so that it has errors and R2 and no accuracy.
func (r *Run) predicts() bool {
	return slices.ContainsFunc(r.Rows, func(w Row) bool { return !math.IsNaN(w.TestR2) })
}

// anyPredicts says whether some of the runs do.
func anyPredicts(runs []*Run) bool { return slices.ContainsFunc(runs, (*Run).predicts) }

// final is the last value of a column that is a number.
func (r *Run) final(get func(*Row) float64) float64 {
	for i := len(r.Rows) - 1; i >= 0; i-- {
		if v := get(&r.Rows[i]); !math.IsNaN(v) {
			return v
		}
	}
	return math.NaN()
}
