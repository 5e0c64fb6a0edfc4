package check

import (
	"fmt"

	"fluentps/internal/core/steps"
)

// localCheck counts the samples of workers that take steps of their own, independently of internal/core/steps: what a worker has
// computed is in its pushes, or was not pushed yet, or was forgotten when it died. A shard counts no sample twice.
type localCheck struct {
	workers []localWorker
	shards  [][]localPair // by shard and worker
}

// localWorker counts the samples of a worker. By fragment, because each fragment has every sample once.
type localWorker struct {
	computed  int64
	made      []int64 // by fragment: in pushes that were made
	forgotten []int64 // by fragment: computed and not pushed when the worker died
	own       int64   // what the worker counts for its pushes, of any fragment
	ownForgot int64
}

// localPair counts the samples of a worker at a shard.
type localPair struct {
	offered int64 // in the headers of pushes that have arrived
	landing int64 // in the push that is landing
	landed  int64
	largest int64 // push
}

func newLocalCheck(workers, shards int, fragments int64) *localCheck {
	c := &localCheck{workers: make([]localWorker, workers), shards: make([][]localPair, shards)}
	for w := range c.workers {
		c.workers[w].made, c.workers[w].forgotten = make([]int64, fragments), make([]int64, fragments)
	}
	for s := range c.shards {
		c.shards[s] = make([]localPair, workers)
	}
	return c
}

// StepTaken, PushMade and StepsLost count what a worker has computed, pushes, and has lost when it comes back.
func (c *checker) StepTaken(worker int32, samples int64) { c.local.workers[worker].computed += samples }

func (c *checker) PushMade(worker int32, iter, samples, pushed int64) {
	w := &c.local.workers[worker]
	w.made[iter%int64(len(w.made))] += samples
	w.own += pushed
}

func (c *checker) StepsLost(worker int32) { c.local.forgets(worker, c.s.Steps(worker)) }

// forgets counts what a worker that comes back has lost.
func (c *localCheck) forgets(me int32, own *steps.Worker) {
	w := &c.workers[me]
	for f := range w.forgotten {
		w.forgotten[f] += own.Pushes(int64(f)).Samples
	}
	w.ownForgot += own.Unpushed()
}

// offers counts the header of a push, and returns what is wrong with it.
func (c *localCheck) offers(shard, worker int32, samples, most int64) string {
	p := &c.shards[shard][worker]
	p.offered, p.landing, p.largest = p.offered+samples, samples, max(p.largest, samples)
	if most > 0 && samples > most {
		return fmt.Sprintf("budgets: worker %d pushes %d samples to shard %d, but a round of its policy has at most %d",
			worker, samples, shard, most)
	}
	return ""
}

// lands counts a push that has landed.
func (c *localCheck) lands(shard, worker int32) {
	p := &c.shards[shard][worker]
	p.landed, p.landing = p.landed+p.landing, 0
}

// most is the largest number of samples that the workers can add to a shard after its budget is used up: one push each.
func (c *localCheck) most(shard int32) (samples int64) {
	for w := range c.shards[shard] {
		samples += c.shards[shard][w].largest
	}
	return samples
}

// localSamples checks, at the end of a run, that no sample was counted twice or lost.
func (c *checker) localSamples() {
	if c.local == nil {
		return
	}
	for i := range c.local.workers {
		w, own := &c.local.workers[i], c.s.Steps(int32(i))
		for f := range w.made {
			if left := own.Pushes(int64(f)).Samples; w.made[f]+w.forgotten[f]+left != w.computed {
				c.fail("exactly once: worker %d computed %d samples, but of fragment %d it pushed %d, forgot %d, and has %d to "+
					"push", i, w.computed, f, w.made[f], w.forgotten[f], left)
			}
		}
		if left := own.Unpushed(); w.own+w.ownForgot+left != w.computed {
			c.fail("exactly once: worker %d computed %d samples, but counts %d with its pushes, forgot %d, and has %d to count", i, w.computed,
				w.own, w.ownForgot, left)
		}
	}
	for id := range c.local.shards {
		var landed int64
		for i := range c.local.shards[id] {
			p, w := &c.local.shards[id][i], int32(i)
			made := c.local.workers[i].made[c.s.Fragment(int32(id))]
			landed += p.landed
			if p.offered > made || p.landed > p.offered || c.s.Life(w) == 0 && !c.s.IsDead(w) && p.landed != made {
				c.fail("exactly once: worker %d made pushes of %d samples for shard %d, which has heard of %d, of which %d "+
					"have landed", i, made, id, p.offered, p.landed)
			}
		}
		k, st := &c.shards[id], c.s.Shard(int32(id))
		if k.samples > landed || st.Stats.Dropped == 0 && k.samples != landed {
			c.fail("exactly once: %d samples landed at shard %d, which folded %d and dropped %d pushes", landed, id, k.samples, st.Stats.Dropped)
		}
	}
}
