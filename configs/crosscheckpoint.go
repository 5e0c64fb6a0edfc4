package configs

import (
	"fmt"

	"fluentps/ps/scheme"
)

// Periodic says whether checkpoints are written while training goes on.
func (c Checkpoint) Periodic() bool { return c.Every > 0 || c.EveryUpdates > 0 }

// crossCheckpoint refuses checkpoints while training goes on where no version is a cut: workers are at different
// iterations, or hold what a shard does not.
func (w *walker) crossCheckpoint(t *table) {
	every, updates, keep := t.byPath["checkpoint.every"], t.byPath["checkpoint.every_updates"], t.byPath["checkpoint.keep"]
	if every.bad || updates.bad || keep.bad || !w.cfg.Checkpoint.Periodic() {
		return
	}
	at := every
	if w.cfg.Checkpoint.Every == 0 {
		at = updates
	}
	c := &w.cfg.Checkpoint
	switch {
	case c.Every > 0 && c.EveryUpdates > 0:
		w.fatal(updates.key, updates.path, "keep one of the two", "stands beside every (%s)", w.where(every.key))
		return
	case c.Keep == 0:
		w.fatal(at.key, at.path, "set checkpoint.keep: 1 or more, or leave it out", "checkpoints are asked for, and checkpoint.keep is 0: none is written")
		return
	case w.cfg.Baseline == BaselineAllreduce:
		w.fatal(at.key, at.path, "leave it out with this baseline", "allreduce has no servers that could write checkpoints")
		return
	}
	for i := range w.cfg.Sync {
		r := &w.cfg.Sync[i]
		for _, ph := range r.Phases() {
			if e, ok := scheme.Lookup(ph.Scheme); !ok || !e.InStep(ph.Common, ph.Params) {
				w.fatal(at.key, at.path, "leave it out: a checkpoint is written when training ends; or use scheme: bsp for all parameters",
					"needs workers that are in step, so that a version is a cut of all shards, and match %q has %s", r.Match, stepText(ph))
				return
			}
		}
	}
}

func stepText(ph Phase) string {
	return fmt.Sprintf("scheme %s with fold: %s", ph.Scheme, ph.Common.Fold)
}
