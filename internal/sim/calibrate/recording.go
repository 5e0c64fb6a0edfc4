package calibrate

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/policy/straggler"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/sim"
)

// Recording holds the files of a finished real run.
type Recording struct {
	Options    sim.Options // Config and Plan of the run; the fit replaces Config.Simulate, except for PushNorm
	Summary    *metrics.Summary
	Iterations [][]timings.Iteration // per worker
	Path       string                // path of the iterations file
}

const (
	// iterationsMin is the fewest iterations of each worker that a fit needs.
	iterationsMin = 5
	// recordedMax is longer than any run, but so short that no sum of simulated times overflows: 3 years.
	recordedMax = 1e8 * time.Second
	// foldRatioMax bounds the time that a server has spent on folding, in times of training. The ratio is at most 1 if folding is
	// equally fast during the whole run.
	foldRatioMax = 10
)

// CheckSummary fails if the Summary of a recording cannot be used. It needs no other field.
func (r *Recording) CheckSummary() error {
	if r.Summary.Mode == "simulated" {
		return errors.New("it is a simulated run; take a real one")
	}
	if r.Summary.Hierarchy != "" {
		return fmt.Errorf("its workers are teams (cluster.hierarchy: %s), which are not modelled; take a run with "+
			"hierarchy: none", r.Summary.Hierarchy)
	}
	if s := r.Summary; s.Workers < 1 || s.Servers < 1 || s.Iterations < 1 {
		return fmt.Errorf("summary.json has %d iterations of %d workers and %d servers; name the folder of a run that "+
			"has trained", s.Iterations, s.Workers, s.Servers)
	}
	return nil
}

// CheckConsistency fails if the files of a recording do not fit together: they may be of several runs, or somebody has changed
// one. It does not need the plan.
func (r *Recording) CheckConsistency() error {
	s, c := r.Summary, r.Options.Config
	if n := len(r.Iterations); n != s.Workers {
		return fmt.Errorf("%s has the iterations of %d workers, but the run had %d (workers in summary.json)%s", r.Path, n, s.Workers, oneRunHint)
	}
	if n := shard.Serving(c.Cluster.Servers, s.Workers, c.Cluster.Placement); n != s.Servers {
		return fmt.Errorf("summary.json has %d servers, but cluster.servers in resolved.yaml makes %d with %d workers%s",
			s.Servers, n, s.Workers, oneRunHint)
	}
	for w, of := range r.Iterations {
		if len(of) < iterationsMin {
			return fmt.Errorf("%s has %d iterations of worker %d, too few to fit a model to; make a run of at least %d",
				r.Path, len(of), w, iterationsMin)
		}
		if err := refuseTimes(of); err != nil {
			return fmt.Errorf("%s: worker %d %w", r.Path, w, err)
		}
	}
	return nil
}

const oneRunHint = "; name the folder of one run, with its files unchanged"

// refuseTimes fails if the times of a worker cannot be: it does one thing after the other, so they add up to at most its time. The
// sum may be twice as long, because a run that was killed and resumed has lost rows.
func refuseTimes(of []timings.Iteration) error {
	var end time.Duration
	sum := 0.0
	for i := range of {
		it := &of[i]
		if took := it.Compute + it.Push + it.Blocked + it.Pull; it.Start <= recordedMax && took <= recordedMax {
			end = max(end, it.Start+took)
			sum += took.Seconds()
		} else {
			return fmt.Errorf("works for more than %v, which is longer than any run takes%s", recordedMax, oneRunHint)
		}
	}
	if sum > 2*end.Seconds()+1 {
		return fmt.Errorf("takes %.4g s for its iterations, but the last one ends after %.4g s%s", sum, end.Seconds(), oneRunHint)
	}
	return nil
}

// refuseFold fails if the servers spent more time on folding than n iterations over all workers allow, which took measured.
func (r *Recording) refuseFold(n int, measured time.Duration) error {
	s := r.Summary
	fold := float64(s.PerRole[metrics.RoleServer]["fold"].Avg)
	each := fold * float64(n) / (float64(s.Iterations) * float64(s.Workers)) // seconds of one server in these iterations
	if most := foldRatioMax*measured.Seconds() + 1; fold < 0 || math.IsNaN(fold) || each > most {
		return fmt.Errorf("summary.json has %g seconds in per_role.server.fold.avg for %d iterations of %d workers, the "+
			"first %d of which took %.4g s: it must be 0 or more, and not longer than these took%s",
			fold, s.Iterations, s.Workers, n, measured.Seconds(), oneRunHint)
	}
	return nil
}

// Traces are the computing times of the workers. A recording of an earlier version does not tell its batches, but its configuration does.
func (r *Recording) Traces() []straggler.Trace {
	all := timings.Traces(r.Iterations)
	for w, of := range all {
		for i := range of {
			if of[i].Samples == 0 {
				of[i].Samples = layout.BatchOf(r.Options.Config, len(all), w)
			}
		}
	}
	return all
}

// window returns the number of iterations that the fit uses, and when the last of them was computed. The window ends when the
// records of the first worker end, because the worker stopped or because no more were kept.
func (r *Recording) window() (n int, end time.Duration) {
	cut := time.Duration(math.MaxInt64)
	for _, of := range r.Iterations {
		cut = min(cut, of[len(of)-1].End())
	}
	var ends []time.Duration
	for _, of := range r.Iterations {
		for i := range of {
			if e := of[i].End(); e <= cut {
				ends = append(ends, e)
			}
		}
	}
	slices.Sort(ends)
	n = min(len(ends), max(iterationsMin*len(r.Iterations), calibrateWork/len(r.Options.Plan.Shards)))
	return n, ends[n-1]
}
