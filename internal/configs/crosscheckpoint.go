package configs

import (
	"slices"

	"fluentps/internal/policy/local"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
)

// Periodic reports whether the run writes checkpoints during training.
func (c Checkpoint) Periodic() bool { return c.Every > 0 || c.EveryUpdates > 0 }

// InStep reports whether all workers are at the same clock whenever a shard makes a version, so that each version is a consistent cut.
// Shards that are exchanged in turn make their versions in different iterations.
func (c *Config) InStep() bool {
	if e, _ := local.All.Lookup(c.Local.Policy); e.Fragments && c.Local.Fragments > 1 {
		return false
	}
	return !c.anyPhase(func(e scheme.Entry, ph Phase) bool { return !e.InStep(ph.Common, ph.Params) })
}

func (c *Config) anyPhase(is func(scheme.Entry, Phase) bool) bool {
	return slices.ContainsFunc(c.Sync, func(r Rule) bool {
		return slices.ContainsFunc(r.Phases(), func(ph Phase) bool {
			e, ok := scheme.All.Lookup(ph.Scheme)
			return ok && is(e, ph)
		})
	})
}

// crossCheckpoint refuses checkpoints during training if the run would not write them, or not keep them.
func (w *walker) crossCheckpoint(t *table) {
	w.crossBest(t)
	every, updates, keep := t.byPath["checkpoint.every"], t.byPath["checkpoint.every_updates"], t.byPath["checkpoint.keep"]
	if every.bad || updates.bad || keep.bad {
		return
	}
	if replica := t.byPath["checkpoint.replica"]; !w.cfg.Checkpoint.Periodic() {
		if !replica.bad && w.cfg.Checkpoint.Replica > 0 {
			w.fatal(replica.key, replica.path, "set checkpoint.every too, or leave replica out",
				"there is nothing to replicate: the run writes no checkpoint before training ends")
		}
		return
	}
	at := every
	if w.cfg.Checkpoint.Every == 0 {
		at = updates
	}
	c := &w.cfg.Checkpoint
	switch {
	case c.Every > 0 && c.EveryUpdates > 0:
		w.fatal(updates.key, updates.path, "keep one of the two", "is set as well as every (%s)", w.where(every.key))
	case c.Keep == 0:
		w.fatal(at.key, at.path, "set checkpoint.keep: 1 or more, or leave it out",
			"asks for checkpoints, but checkpoint.keep is 0: none is written")
	case w.cfg.Baseline == BaselineAllreduce:
		w.fatal(at.key, at.path, "leave it out with this baseline", "allreduce has no servers to write checkpoints")
	}
}

// crossBest refuses checkpoint.best if the run writes one checkpoint only, or does not evaluate during training.
func (w *walker) crossBest(t *table) {
	best, where, every, updates := t.byPath["checkpoint.best"], t.byPath["evaluate.where"], t.byPath["checkpoint.every"],
		t.byPath["checkpoint.every_updates"]
	c := &w.cfg.Checkpoint
	if best.bad || where.bad || every.bad || updates.bad || c.Best == BestNone {
		return
	}
	switch {
	case !c.Periodic():
		w.fatal(best.key, best.path, "set checkpoint.every, such as 10m, or leave best out",
			"chooses the best of several checkpoints, but the run writes only one, at the end")
	case w.cfg.Evaluate.Where != "online":
		w.fatal(best.key, best.path, "set evaluate.where: online",
			"needs evaluations during training, but evaluate.where is %s", w.cfg.Evaluate.Where)
	case c.Best == BestAccuracy && workload.TakesRatings(w.cfg.Model.Name):
		w.fatal(best.key, best.path, "set it to loss", "needs classes, but model %s predicts ratings", w.cfg.Model.Name)
	}
}
