package configs

import (
	"fluentps/internal/policy/work"
	"fluentps/ps/scheme"
)

// WeighsSamples reports whether the samples of pushes differ, so that a push that is a version weighs by its samples.
func (c *Config) WeighsSamples() bool { return c.batchesDiffer() || c.LeavesOut() }

// batchesDiffer reports whether the batches of ranks differ.
func (c *Config) batchesDiffer() bool { return c.DealsBatches() || len(c.Work.Shares) > 0 }

// LeavesOut reports whether a worker may leave out samples of its batch.
func (c *Config) LeavesOut() bool {
	e, _ := work.All.Lookup(c.Work.Policy)
	return e.Cuts
}

// crossWork refuses what does not go with batches that differ between ranks, or change.
func (w *walker) crossWork(t *table) {
	policy, shares, partition := t.byPath["work.policy"], t.byPath["work.shares"], t.byPath["data.partition"]
	if policy.bad || shares != nil && shares.bad || !w.cfg.WeighsSamples() {
		return
	}
	at, name, who := policy, "work.policy "+w.cfg.Work.Policy, w.cfg.Work.Policy
	if w.cfg.Work.Policy == work.Fixed {
		at, name, who = shares, "work.shares", "fixed"
	}
	if p := w.cfg.Data.Partition; w.cfg.batchesDiffer() && !partition.bad && partition.key != nil && p != "disjoint_random" {
		w.fatal(partition.node, partition.path, "set disjoint_random, or leave it out",
			"%s deals each rank its part of the rows at random, so they cannot be dealt as %s", name, p)
	}
	if t.byPath["sync"].bad {
		return
	}
	for i := range w.cfg.Sync {
		for k, ph := range w.cfg.Sync[i].Phases() {
			e, ok := scheme.All.Lookup(ph.Scheme)
			switch {
			case !ok:
			case e.DropsStale && w.cfg.DealsBatches():
				w.fatal(at.node, at.path, "set work.policy: fixed, or a scheme that drops nothing, such as asp, quorum or ssp",
					"%s deals the rows of an epoch to all ranks, but sync[%d] (%s) drops stale pushes, and these samples would be lost", who, i, e.Name)
				return
			case e.Behind && w.cfg.DealsBatches():
				w.fatal(at.node, at.path, "set work.policy: fixed, or a scheme that waits for every push, such as bsp or ssp",
					"%s deals the rows of an epoch to all ranks, but sync[%d] (%s) closes iterations without the pushes of slow "+
						"ones, and these samples would be lost", who, i, e.Name)
				return
			case e.Alone != nil && e.Alone(ph.Params) && w.cfg.DealsBatches():
				w.fatal(at.node, at.path, "set "+w.inScheme(i, k, "strict")+": false, or work.policy: fixed",
					"%s makes fast ranks wait for the batches that follow a plan, but sync[%d] (%s with strict: true) may hold "+
						"back a slow one until the fast ones continue: a deadlock", who, i, e.Name)
				return
			case e.CopiesOf(ph.Params) != scheme.Pulled:
				w.fatal(at.node, at.path, w.pulling(i)+", or leave the batches equal and whole",
					"%s weighs pushes by their samples, which differ, but with sync[%d] (%s) workers add their own pushes to "+
						"copies of the parameters, all with the same weight", who, i, e.Name)
				return
			case e.Name == "ringleader":
				w.fatal(at.node, at.path, "set "+w.inScheme(i, k, "scheme")+": quorum or softsync, or leave the batches equal and whole",
					"%s weighs pushes by their samples, which differ, but under sync[%d] (%s) all workers weigh alike, whatever "+
						"their batches", who, i, e.Name)
				return
			case e.Means != nil && e.Means(ph.Params, 1) > 0:
				w.fatal(at.node, at.path, "set "+w.inScheme(i, k, "versions")+": single, or leave the batches equal and whole",
					"%s weighs pushes by their samples, which differ, but sync[%d] (%s) keeps means of pushes that all weigh the same", who, i, e.Name)
				return
			}
		}
	}
}
