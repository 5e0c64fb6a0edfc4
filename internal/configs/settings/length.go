package settings

import (
	"fmt"
	"math"
	"slices"

	"fluentps/internal/configs/diag"
	"fluentps/internal/policy/work"
	"fluentps/ps/scheme"
)

// Facts are properties of a run that are not in its configuration. 0 stands for unknown.
type Facts struct {
	Workers   int    // ranks that push: the N of 1/N
	Computes  int    // ranks that compute; more than Workers if the ranks of a host form one worker
	Servers   int    // ranks that serve
	Rows      int    // rows of the training set
	Lead      int    // 1 + the index of the lead shard's rule
	Simulated bool   // the run is in virtual time
	NoGPU     string // why no rank of this binary can compute on a GPU; "": it may
}

// Length is the length of a run. If facts are missing, each number except PerIteration is its largest possible value.
// +Inf stands for no known limit, for example if the budget is a time.
type Length struct {
	PerStep      int64   // samples of one step over all ranks that compute; the smallest possible value
	PerIteration int64   // the same of one iteration: of one step, or with local of all steps before an exchange
	Accepted     int64   // the least of PerIteration that count, if a scheme drops pushes
	Samples      float64 // over all workers
	Epoch        float64 // iterations in one epoch
	Iterations   float64 // of each worker, if all do the same number
	Steps        float64 // of each worker, if all do the same number: iterations, or with local what the schedule counts
	Exchanges    float64 // of a shard with each worker: iterations, or fewer where fragments of the parameters take turns
	Turns        int64   // iterations in which each shard is exchanged once
	Pushes       float64 // of a shard, over all workers
	Exact        bool    // the number of workers is known
	// a scheme drops stale pushes, or workers leave out samples, nobody knows how many: Iterations is the largest possible value
	DropsStale bool
	// workers take more steps in an iteration than PerIteration has, nobody knows how many: Iterations is the largest possible value
	Varies    bool
	LeavesOut bool    // workers leave out samples: an iteration has PerIteration of them at most
	fixed     bool    // PerIteration is exact
	budget    float64 // iterations in which Samples are computed
	short     bool    // the last iteration of an epoch may have fewer samples, or a few more
}

// Length computes the length of the run from the known facts.
func (c *Config) Length(f Facts) Length {
	inf := math.Inf(1)
	n := Length{PerStep: int64(c.Train.BatchGlobal), Samples: inf, Epoch: inf, Iterations: inf, Steps: inf,
		Exchanges: inf, Turns: c.Local.Turns(), Pushes: inf,
		Exact: f.Workers > 0, Varies: c.Local.Constant() == 0, fixed: f.Workers > 0 || c.Train.BatchGlobal > 0, budget: inf,
		short: c.DealsEpochs()}
	if c.Train.BatchGlobal == 0 {
		n.PerStep = int64(c.Train.BatchPerWorker) * int64(max(1, f.Computes))
	}
	n.PerIteration = saturated(float64(n.PerStep) * float64(c.Local.StepsMin())) // an iteration is an exchange
	drops := false
	n.Accepted, drops = c.accepted(n.PerIteration, f)
	n.DropsStale = c.AnyPhase(func(e scheme.Entry, _ Phase) bool { return e.DropsStale })
	if c.LeavesOut() {
		n.Accepted, n.DropsStale, n.LeavesOut = min(n.Accepted, c.leastSamples(f)), true, true
	}
	budget := c.Train.Stop.Samples
	if f.Rows > 0 {
		budget = c.Train.Stop.SampleBudget(f.Rows)
		n.Epoch = c.ofEpoch(n.Accepted, f)
	}
	if budget > 0 {
		n.Samples = float64(budget)
		n.budget = c.Iterations(n.Samples, n.Accepted, f)
		n.Iterations = n.budget
		n.Pushes = c.pushes(n, f)
	}
	if updates := float64(c.Train.Stop.Updates); updates > 0 {
		iterations, pushes := 0.0, 0.0
		for _, ph := range c.LeadPhases(f) {
			i, p := ph.lasts(updates, f.Workers)
			iterations, pushes = max(iterations, i*float64(n.Turns)), max(pushes, p)
		}
		n.Iterations, n.Pushes = min(n.Iterations, iterations), min(n.Pushes, pushes)
	}
	if drops { // dropped pushes are pushes too
		n.Pushes = inf
		if f.Workers > 0 {
			n.Pushes = n.Iterations * float64(f.Workers)
		}
	}
	n.Exchanges = math.Ceil(n.Iterations / float64(n.Turns))
	n.Steps = c.stepsOf(n, f)
	return n
}

// leastSamples is the number of samples of an iteration in which each worker computes one step of its batch.
func (c *Config) leastSamples(f Facts) (n int64) {
	if f.Computes == 0 {
		return 1
	}
	for _, batch := range c.Batches(f.Computes) {
		n += int64(min(batch, c.Work.StepOf(batch)))
	}
	return n
}

// stepsOf returns how many steps each worker takes at most.
func (c *Config) stepsOf(n Length, f Facts) float64 {
	if !c.Local.IsSet() {
		return n.Iterations
	}
	steps := math.Ceil(n.Samples / float64(max(1, n.Accepted/c.Local.StepsMin())))
	if !n.Varies {
		steps = min(steps, n.Iterations*float64(c.Local.StepsMin()))
	}
	return steps
}

// DealsEpochs reports whether a policy of work deals the rows of each epoch, so that no iteration runs across the end of one.
func (c *Config) DealsEpochs() bool {
	e, _ := work.All.Lookup(c.Work.Policy)
	return e.Epochs
}

// EpochIterations returns the iterations of one pass over so many rows, if that many ranks compute. Where iterations run across the ends of
// epochs, only whole ones count.
func (c *Config) EpochIterations(computing, rows int) int64 {
	batch := max(1, c.Batch(computing))
	if c.DealsEpochs() {
		return max(1, work.EpochIterations(rows, batch, computing))
	}
	return int64(max(1, rows/batch))
}

// ofEpoch returns the iterations of one pass over the rows; the most that there can be if the number of ranks that compute is unknown.
func (c *Config) ofEpoch(batch int64, f Facts) float64 {
	if c.DealsEpochs() && f.Computes > 0 {
		return float64(c.EpochIterations(f.Computes, f.Rows))
	}
	return math.Ceil(float64(f.Rows) / float64(batch))
}

// Iterations returns in how many iterations of so many samples that many samples in all are computed. A policy that
// deals epochs ends each with an iteration of what is left of the rows. Without rows it returns the most that there
// can be.
func (c *Config) Iterations(samples float64, batch int64, f Facts) float64 {
	switch {
	case !c.DealsEpochs():
		return math.Ceil(samples / float64(batch))
	case f.Rows == 0: // an epoch of one row is an iteration of one sample
		return samples
	}
	rows, each := float64(f.Rows), c.ofEpoch(batch, f)
	epochs := math.Floor(samples / rows)
	rest := max(0, samples-epochs*rows) // a quotient beyond 2^53 may be rounded up
	return epochs*each + min(each, math.Ceil(rest/float64(batch)))
}

// pushes returns how many pushes the samples of a run make at most.
func (c *Config) pushes(n Length, f Facts) float64 {
	switch {
	case !c.DealsEpochs():
		return math.Ceil(n.Samples / float64(c.leastPush(f)) / float64(n.Turns))
	case f.Workers == 0:
		return math.Inf(1)
	}
	return n.budget * float64(f.Workers) // all do every iteration of an epoch
}

// accepted returns the fewest samples of an iteration that count. The minimum over all rules counts: a worker whose push one shard drops
// skips iterations at all shards.
func (c *Config) accepted(samples int64, f Facts) (least int64, drops bool) {
	least = samples
	for i := range c.Sync {
		for _, ph := range c.Sync[i].Phases() {
			e, ok := scheme.All.Lookup(ph.Scheme)
			drops = drops || ok && e.DropsStale
			if !ok || !e.Behind && !e.DropsStale {
				continue
			}
			contributors := int64(1) // of an iteration whose other pushes were stale
			if p, some := ph.Params.(scheme.ClosedBy); some {
				contributors = p.ClosedBy()
			}
			if contributors > 0 && (f.Workers == 0 || contributors < int64(f.Workers)) {
				drops = true
				if push := int64(c.leastPush(f)); contributors <= (least-1)/push { // a division cannot overflow; contributors is not checked yet
					least = contributors * push
				}
			}
		}
	}
	return least, drops
}

// lasts returns how many iterations and pushes that many versions take.
func (ph *Phase) lasts(versions float64, workers int) (iterations, pushes float64) {
	if ph.Whole() {
		pushes = versions * float64(workers)
		if workers == 0 {
			pushes = math.Inf(1)
		}
		return versions, pushes
	}
	if !ph.Exact(workers) {
		return math.Inf(1), math.Inf(1)
	}
	pushes = versions * float64(ph.Several(workers))
	return math.Ceil(pushes / float64(max(1, workers))), pushes
}

// Versions returns how many versions of a shard a run of that length makes, with that many workers; 0 if their number is unknown.
func (ph *Phase) Versions(n Length, workers int) float64 {
	if ph.Whole() {
		return n.Exchanges
	}
	return math.Ceil(n.Pushes / float64(ph.Several(workers)))
}

// Whole reports whether a version is a whole iteration, with the pushes of all its contributors.
func (ph *Phase) Whole() bool {
	e, ok := scheme.All.Lookup(ph.Scheme)
	return ok && e.Whole(ph.Common, ph.Params)
}

// Several returns the least number of pushes that make a version among that many workers, if a version is not a whole iteration.
func (ph *Phase) Several(workers int) int64 {
	if p, several := ph.Params.(scheme.Several); several {
		n, _ := p.Several(max(1, workers))
		return n
	}
	return 1
}

// Exact reports whether the number of versions says how many pushes the workers have made.
func (ph *Phase) Exact(workers int) bool {
	if e, ok := scheme.All.Lookup(ph.Scheme); ok && e.DropsStale {
		return false
	}
	p, several := ph.Params.(scheme.Several)
	if !several {
		return true
	}
	_, exact := p.Several(max(1, workers))
	return exact
}

// leastPush returns the fewest samples in a push.
func (c *Config) leastPush(f Facts) int { return c.LeastStep(f) * int(c.Local.StepsMin()) }

// LeastStep returns the fewest samples in a step of one worker.
func (c *Config) LeastStep(f Facts) int {
	if c.Train.BatchGlobal == 0 {
		return c.Train.BatchPerWorker
	}
	if f.Computes == 0 {
		return 1
	}
	return max(1, c.Train.BatchGlobal/f.Computes)
}

// LeadPhases returns the schemes that the lead shard may have.
func (c *Config) LeadPhases(f Facts) (all []Phase) {
	for i := range c.Sync {
		if f.Lead == 0 || i == f.Lead-1 {
			all = append(all, c.Sync[i].Phases()...)
		}
	}
	return all
}

// Text writes the number of iterations and its origin, as in "512 iterations (131072 samples, 256 in each)".
func (n Length) Text() string {
	if n.budget != n.Iterations {
		return fmt.Sprintf("%s%s (train.stop.updates)", AtMostUnless(n.Exact), diag.FormatCount(n.Iterations, "iteration"))
	}
	return n.counted(n.Iterations, "iteration", n.Accepted)
}

// StepsText writes the number of steps of each worker in the same way.
func (n Length) StepsText() string {
	if n.PerStep == n.PerIteration && !n.Varies { // a step is an iteration, or the steps of local are one each
		return n.Text()
	}
	if n.budget != n.Iterations && !n.Varies {
		return fmt.Sprintf("%s%s (train.stop.updates)", AtMostUnless(n.Exact), diag.FormatCount(n.Steps, "step"))
	}
	n.Varies = false // every step has as many samples
	return n.counted(n.Steps, "step", max(1, n.Accepted*n.PerStep/n.PerIteration))
}

// ExchangesText writes how often each worker exchanges a shard.
func (n Length) ExchangesText() string {
	if n.Exchanges == n.Iterations {
		return n.Text()
	}
	return fmt.Sprintf("%s of each shard, in %s", diag.FormatCount(n.Exchanges, "exchange"), n.Text())
}

// counted writes a number of iterations or steps, of so many samples each.
func (n Length) counted(of float64, noun string, samples int64) string {
	more := ""
	switch {
	case !n.fixed || n.Varies:
		more = " or more"
	case n.short:
		more = " or so"
	}
	// without the rows, nothing is known of short iterations
	exact := n.fixed && !n.DropsStale && !n.Varies && !(n.short && math.IsInf(n.Epoch, 1))
	return fmt.Sprintf("%s%s (%s samples, %d%s in each)", AtMostUnless(exact), diag.FormatCount(of, noun), diag.FormatWhole(n.Samples),
		samples, more)
}

// AtMostUnless returns "at most " unless the number that follows is exact.
func AtMostUnless(exact bool) string {
	if exact {
		return ""
	}
	return "at most "
}

// saturated converts a number of samples to an integer, and returns the largest integer if it does not fit.
func saturated(x float64) int64 {
	if x >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(x)
}

// MadeUp reports whether the data are generated, so that the configuration has the number of rows.
func MadeUp(c *Config) bool {
	return slices.Contains([]string{"generated", "generated_sparse", "generated_ratings"}, c.Data.Set)
}

// FactsOf returns the facts that a configuration alone determines.
func FactsOf(c *Config) (f Facts) {
	if MadeUp(c) {
		f.Rows = c.Data.Rows
	}
	return f
}
