package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fluentps/internal/show/metrics"
)

// account says in words what one run did that goes by a name.
func account(name string, r *Run, target *Target) (sentences []string) {
	say := func(format string, args ...any) { sentences = append(sentences, fmt.Sprintf(format, args...)) }
	kind := ""
	if r.Simulated() {
		kind = "In simulated time, "
	}
	accuracy := r.final(func(w *Row) float64 { return w.TestAccuracy })
	loss := r.final(func(w *Row) float64 { return w.TestLoss })
	last := r.final(func(w *Row) float64 { // the time of the last evaluation
		if math.IsNaN(w.TestAccuracy) && math.IsNaN(w.TestLoss) {
			return math.NaN()
		}
		return w.At
	})
	r2, rmse := r.final(func(w *Row) float64 { return w.TestR2 }), math.NaN()
	if r.Summary != nil {
		rmse = optional(r.Summary.TestRMSE)
	}
	switch {
	case !math.IsNaN(r2):
		say("%s%s reached test R2 %s after %s; its root mean squared error is %s.", kind, name, fixed(r2, 4), seconds(last), short(rmse))
	case !math.IsNaN(accuracy):
		say("%s%s reached test accuracy %s after %s.", kind, name, fixed(accuracy, 4), seconds(last))
	case !math.IsNaN(loss):
		say("%s%s reached test loss %s after %s.", kind, name, short(loss), seconds(last))
	case r.Summary != nil:
		say("%s%s trained for %s; it was not evaluated.", kind, name, seconds(float64(r.Summary.TrainS)))
	default:
		say("%s%s left no evaluation.", kind, name)
	}
	if target != nil && target.Given != "" && r.Summary != nil && (r.Summary.Target != nil || target.Given == GivenFlag) {
		if at, _, _ := target.reached(r); math.IsNaN(at) {
			say("It missed its target, %s.", target.text())
		} else {
			say("Its target, %s, was reached after %s.", target.text(), seconds(at))
		}
	}
	if n := len(r.WorkerRows); n > 0 {
		say("Its %d workers have from %s to %s training rows each, as data.partition deals them.", n,
			short(float64(slices.Min(r.WorkerRows))), short(float64(slices.Max(r.WorkerRows))))
	}
	if v := r.speed(); !math.IsNaN(v) {
		say("It took in %s samples per second.", short(v))
	}
	if lost := r.share(metrics.Blocked); !math.IsNaN(lost) {
		text := fmt.Sprintf("Its workers computed for %s of training and were blocked for %s", percent(r.share(metrics.Compute)), percent(lost))
		if why := whyBlocked([]*Run{r}); why != "" {
			text += ", mostly " + why
		}
		sentences = append(sentences, text+".")
	}
	if p50, most := r.staleness(0.5), r.staleness(1); !math.IsNaN(p50) {
		say("The staleness of pushes was %s in the median and at most %s, in versions.", short(p50), short(most))
	}
	if r.WhatIf != nil && r.WhatIf.Line != "" {
		sentences = append(sentences, r.WhatIf.Line+".")
	}
	if s := r.Summary; s == nil || s.Finished != metrics.FinishedOK {
		say("The run did not finish: %s.", strings.TrimSuffix(r.State(), "."))
	}
	return sentences
}

// GivenFlag is Target.Given of a target that the user named.
const GivenFlag = "given with --target"
