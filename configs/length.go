package configs

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fluentps/ps/scheme"
)

// Facts are what a configuration alone does not tell of a run; 0 is not known.
type Facts struct {
	Workers  int    // ranks that push: the N of 1/N
	Computes int    // ranks that compute; more than Workers where those of a host are one worker
	Servers  int    // ranks that serve
	Rows     int    // of the training set
	Lead     int    // one more than the index of the rule that the lead shard belongs to
	NoGPU    string // why no rank of this binary can compute on a GPU; "": it may
}

// Length is how long a run is. Where facts are missing, each number is the largest that it may be; +Inf is without a limit
// that could be told, as where the budget is a time.
type Length struct {
	PerIteration int64   // samples of one iteration of all who compute; the smallest that it may be
	Accepted     int64   // of these, those that count where some are dropped
	Samples      float64 // over all workers
	Epoch        float64 // iterations in one
	Iterations   float64 // of each worker, if all do the same
	Pushes       float64 // of a shard, over all workers
	Exact        bool    // the ranks are known
	fixed        bool    // the samples of an iteration are, whatever the ranks
}

// Length says how long the run is, with what is known of it.
func (c *Config) Length(f Facts) Length {
	inf := math.Inf(1)
	n := Length{PerIteration: int64(c.Train.BatchGlobal), Samples: inf, Epoch: inf, Iterations: inf, Pushes: inf,
		Exact: f.Workers > 0, fixed: f.Workers > 0 || c.Train.BatchGlobal > 0}
	if c.Train.BatchGlobal == 0 {
		n.PerIteration = int64(c.Train.BatchPerWorker) * int64(max(1, f.Computes))
	}
	drops := false
	n.Accepted, drops = c.accepted(n.PerIteration, f)
	budget := c.Train.Stop.Samples
	if f.Rows > 0 {
		budget = c.Train.Stop.SampleBudget(f.Rows)
		n.Epoch = math.Ceil(float64(f.Rows) / float64(n.Accepted))
	}
	if budget > 0 {
		n.Samples = float64(budget)
		n.Iterations = math.Ceil(n.Samples / float64(n.Accepted))
		n.Pushes = math.Ceil(n.Samples / float64(c.leastPush(f)))
	}
	if updates := float64(c.Train.Stop.Updates); updates > 0 {
		iterations, pushes := 0.0, 0.0
		for _, ph := range c.leadPhases(f) {
			i, p := ph.lasts(updates, f.Workers)
			iterations, pushes = max(iterations, i), max(pushes, p)
		}
		n.Iterations, n.Pushes = min(n.Iterations, iterations), min(n.Pushes, pushes)
	}
	if drops { // what is dropped was pushed, too
		n.Pushes = inf
		if f.Workers > 0 {
			n.Pushes = n.Iterations * float64(f.Workers)
		}
	}
	return n
}

// accepted is how many samples of an iteration count at least. A worker whose push one shard drops skips iterations at all.
func (c *Config) accepted(samples int64, f Facts) (least int64, drops bool) {
	least = samples
	for i := range c.Sync {
		for _, ph := range c.Sync[i].Phases() {
			if e, ok := scheme.Lookup(ph.Scheme); !ok || !e.Behind {
				continue
			}
			contributors := int64(1)
			if p, drops := ph.Params.(*scheme.DropParams); drops {
				contributors = p.Required
			}
			if contributors > 0 && (f.Workers == 0 || contributors < int64(f.Workers)) {
				drops = true
				if push := int64(c.leastPush(f)); contributors <= (least-1)/push { // divided: nobody has checked yet how many there are
					least = contributors * push
				}
			}
		}
	}
	return least, drops
}

// lasts is how many iterations and pushes so many versions take.
func (ph *Phase) lasts(versions float64, workers int) (iterations, pushes float64) {
	if ph.Whole() {
		pushes = versions * float64(workers)
		if workers == 0 {
			pushes = math.Inf(1)
		}
		return versions, pushes
	}
	pushes = versions * float64(ph.Several())
	return math.Ceil(pushes / float64(max(1, workers))), pushes
}

// Versions is how many versions of a shard a run of that length makes.
func (ph *Phase) Versions(n Length) float64 {
	if ph.Whole() {
		return n.Iterations
	}
	return math.Ceil(n.Pushes / float64(ph.Several()))
}

// Whole says whether a version is a whole iteration, with the pushes of all who contribute to it.
func (ph *Phase) Whole() bool {
	e, ok := scheme.Lookup(ph.Scheme)
	return ok && e.Whole(ph.Common, ph.Params)
}

// Several is how many pushes are a version, where that is not a whole iteration.
func (ph *Phase) Several() int64 {
	if p, several := ph.Params.(*scheme.SoftsyncParams); several {
		return p.Q
	}
	return 1
}

// leastPush is the fewest samples that a push may sum.
func (c *Config) leastPush(f Facts) int {
	if c.Train.BatchGlobal == 0 {
		return c.Train.BatchPerWorker
	}
	if f.Computes == 0 {
		return 1
	}
	return max(1, c.Train.BatchGlobal/f.Computes)
}

// leadPhases are the schemes that the lead shard may have.
func (c *Config) leadPhases(f Facts) (all []Phase) {
	for i := range c.Sync {
		if f.Lead == 0 || i == f.Lead-1 {
			all = append(all, c.Sync[i].Phases()...)
		}
	}
	return all
}

// Text tells the iterations and what they come from, as in "512 iterations (131072 samples, 256 in each)".
func (n Length) Text() string {
	if math.Ceil(n.Samples/float64(n.Accepted)) != n.Iterations {
		return fmt.Sprintf("%s%s (train.stop.updates)", mostText(n.Exact), times(n.Iterations, "iteration"))
	}
	more := ""
	if !n.fixed {
		more = " or more"
	}
	return fmt.Sprintf("%s%s (%s samples, %d%s in each)", mostText(n.fixed), times(n.Iterations, "iteration"), whole(n.Samples), n.Accepted, more)
}

// mostText says whether a number is the largest that it may be, or what it is.
func mostText(exact bool) string {
	if exact {
		return ""
	}
	return "at most "
}

// times is a number of things, in the singular where there is one.
func times(n float64, noun string) string {
	switch {
	case n == 1:
	case strings.HasSuffix(noun, "sh"):
		noun += "es"
	default:
		noun += "s"
	}
	return whole(n) + " " + noun
}

// saturated is a number of samples as an integer: what does not fit is the largest.
func saturated(x float64) int64 {
	if x >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(x)
}

// MadeUp says whether the data are made up, so that the configuration has their number of rows.
func MadeUp(c *Config) bool {
	return slices.Contains([]string{"generated", "generated_sparse", "generated_ratings"}, c.Data.Set)
}

// factsOf is what a configuration tells by itself.
func factsOf(c *Config) (f Facts) {
	if MadeUp(c) {
		f.Rows = c.Data.Rows
	}
	return f
}
