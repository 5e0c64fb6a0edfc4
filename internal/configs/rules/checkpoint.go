package rules

import (
	"fluentps/internal/configs/keys"
	"fluentps/internal/configs/settings"
)

// crossCheckpoint refuses checkpoints during training if the run would not write them, or not keep them.
func (w *checks) crossCheckpoint(t *keys.Table) {
	w.crossBest(t)
	every, updates, keep := t.ByPath["checkpoint.every"], t.ByPath["checkpoint.every_updates"], t.ByPath["checkpoint.keep"]
	if every.Bad || updates.Bad || keep.Bad {
		return
	}
	if replica := t.ByPath["checkpoint.replica"]; !w.Config.Checkpoint.Periodic() {
		if !replica.Bad && w.Config.Checkpoint.Replica > 0 {
			w.Fatal(replica.Key, replica.Path, "set checkpoint.every too, or leave replica out",
				"there is nothing to replicate: the run writes no checkpoint before training ends")
		}
		return
	}
	at := every
	if w.Config.Checkpoint.Every == 0 {
		at = updates
	}
	c := &w.Config.Checkpoint
	switch {
	case c.Every > 0 && c.EveryUpdates > 0:
		w.Fatal(updates.Key, updates.Path, "keep one of the two", "is set as well as every (%s)", w.Where(every.Key))
	case c.Keep == 0:
		w.Fatal(at.Key, at.Path, "set checkpoint.keep: 1 or more, or leave it out",
			"asks for checkpoints, but checkpoint.keep is 0: none is written")
	case w.Config.Baseline == settings.BaselineAllreduce:
		w.Fatal(at.Key, at.Path, "leave it out with this baseline", "allreduce has no servers to write checkpoints")
	}
}

// crossBest refuses checkpoint.best if the run writes one checkpoint only, or does not evaluate during training.
func (w *checks) crossBest(t *keys.Table) {
	best, where, every, updates := t.ByPath["checkpoint.best"], t.ByPath["evaluate.where"], t.ByPath["checkpoint.every"],
		t.ByPath["checkpoint.every_updates"]
	c := &w.Config.Checkpoint
	if best.Bad || where.Bad || every.Bad || updates.Bad || c.Best == settings.BestNone {
		return
	}
	switch {
	case !c.Periodic():
		w.Fatal(best.Key, best.Path, "set checkpoint.every, such as 10m, or leave best out",
			"chooses the best of several checkpoints, but the run writes only one, at the end")
	case w.Config.Evaluate.Where != "online":
		w.Fatal(best.Key, best.Path, "set evaluate.where: online",
			"needs evaluations during training, but evaluate.where is %s", w.Config.Evaluate.Where)
	case c.Best == settings.BestAccuracy && !w.Config.CountsHits():
		w.Fatal(best.Key, best.Path, "set it to loss", "needs classes, but model %s has a loss alone", w.Config.Model.Name)
	}
}
