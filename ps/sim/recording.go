package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"fluentps/ps/metrics"
	"fluentps/ps/shard"
)

// Recording is what a real run left behind.
type Recording struct {
	Options    Options // the run's own Config, of whose Simulate only PushNorm is kept, and Plan
	Summary    *metrics.Summary
	Iterations [][]metrics.Iteration // per worker
	Path       string                // of the iterations
}

const (
	// iterationsMin is the fewest iterations of each worker that say anything.
	iterationsMin = 5
	// recordedMax is longer than a run takes, and so short that no sum of simulated times overflows: 3 years.
	recordedMax = 1e8 * time.Second
	// foldMost is how many times as long as training the servers may have spent on folding, each, by what a summary tells. It is
	// 1 at most where folding takes as long from the first iteration to the last.
	foldMost = 10
)

// Refuse says what is wrong with the Summary of a recording, whatever else there is.
func (r *Recording) Refuse() error {
	if r.Summary.Mode == "simulated" {
		return errors.New("it is a simulated run; take one that was measured")
	}
	if r.Summary.Hierarchy != "" {
		return fmt.Errorf("its workers are teams (cluster.hierarchy: %s), which are not modelled; take a run with hierarchy: none", r.Summary.Hierarchy)
	}
	if s := r.Summary; s.Workers < 1 || s.Servers < 1 || s.Iterations < 1 {
		return fmt.Errorf("summary.json tells of %d iterations of %d workers and %d servers; name the folder of a run that has trained", s.Iterations, s.Workers, s.Servers)
	}
	return nil
}

// Misfit says what of a recording, but for the times, does not go with the rest of it: files of several runs, perhaps, or a file
// that somebody has changed. The plan is not needed yet.
func (r *Recording) Misfit() error {
	s, c := r.Summary, r.Options.Config
	if n := len(r.Iterations); n != s.Workers {
		return fmt.Errorf("%s has the iterations of %d workers, and the run had %d (workers in summary.json)%s", r.Path, n, s.Workers, together)
	}
	if n := shard.Serving(c.Cluster.Servers, s.Workers, c.Cluster.Placement); n != s.Servers {
		return fmt.Errorf("summary.json tells of %d servers, and cluster.servers of the run's configuration, resolved.yaml, makes %d beside %d workers%s", s.Servers, n, s.Workers, together)
	}
	for w, of := range r.Iterations {
		if len(of) < iterationsMin {
			return fmt.Errorf("%s has %d iterations of worker %d, too few to fit a model to; make a run of at least %d", r.Path, len(of), w, iterationsMin)
		}
		if err := refuseTimes(of); err != nil {
			return fmt.Errorf("%s: worker %d %w", r.Path, w, err)
		}
	}
	return nil
}

const together = "; name the folder of one run, with the files as it left them"

// refuseTimes holds the times of a worker to its clock: it does one thing after the other. Twice as long lets rows be missing
// that a run which was killed and went on has lost.
func refuseTimes(of []metrics.Iteration) error {
	var end time.Duration
	sum := 0.0
	for i := range of {
		it := &of[i]
		if took := it.Compute + it.Push + it.Blocked + it.Pull; it.Start <= recordedMax && took <= recordedMax {
			end = max(end, it.Start+took)
			sum += took.Seconds()
		} else {
			return fmt.Errorf("is at work for more than %v, which is longer than any run takes%s", recordedMax, together)
		}
	}
	if sum > 2*end.Seconds()+1 {
		return fmt.Errorf("takes %.4g s for its iterations, and the last is over after %.4g s%s", sum, end.Seconds(), together)
	}
	return nil
}

// refuseFold holds what the servers spent on folding to the time that n iterations took, over all workers.
func (r *Recording) refuseFold(n int, measured time.Duration) error {
	s := r.Summary
	fold := float64(s.PerRole[metrics.RoleServer]["fold"].Avg)
	each := fold * float64(n) / (float64(s.Iterations) * float64(s.Workers)) // seconds of one server in these iterations
	if most := foldMost*measured.Seconds() + 1; fold < 0 || math.IsNaN(fold) || each > most {
		return fmt.Errorf("summary.json has %g seconds in per_role.server.fold.avg for %d iterations of %d workers, the first %d of which took %.4g s: it must be from 0, and no longer than they took%s",
			fold, s.Iterations, s.Workers, n, measured.Seconds(), together)
	}
	return nil
}

// window is how many iterations the fit is about, and when the last of them was computed. It ends with the first
// worker that has no further records, because it stopped or because no more were kept.
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
