package runtime

import (
	"fmt"
	"math"
	"path/filepath"

	"fluentps/configs"
	"fluentps/ps/checkpoint"
	"fluentps/ps/snapshot"
)

// Which checkpoint is the best: rank 0 reads each from disk when it is finished, looks at the test set with its
// parameters, beside training and in turn with its other evaluations, and keeps the best so far. The next checkpoint is not
// begun before. That of the end has been evaluated by then.

// best is what rank 0 knows of the best checkpoint of the run. It belongs to who judges.
type best struct {
	read  bool
	sofar *checkpoint.Best // nil: none
}

// judges says whether each checkpoint is looked at.
func (l *lead) judges() bool {
	return l.r.cfg.Checkpoint.Best != configs.BestNone && l.online != nil
}

// judgeNext looks at a checkpoint when its turn has come.
func (o *online) judgeNext(dir string) {
	o.checkpoint = dir
	o.next()
}

// judged ends that, or gives it up.
func (o *online) judged() {
	o.judging, o.checkpoint = false, ""
	o.l.snapshots.step(snapshot.Event{Kind: snapshot.Judged})
}

func (o *online) judge() {
	r, dir := o.l.r, o.checkpoint
	defer r.guarded()
	err := o.take(dir)
	if err == nil {
		s, rows := o.e.whole(), float64(r.set.Test.Rows())
		if !r.halted.Load() {
			err = o.best.consider(r, dir, s.loss/rows, float64(s.correct)/rows)
		}
	}
	r.t.Post(func() {
		o.busy = false
		o.judged()
		if err != nil {
			r.log.Warn("the best checkpoint: " + err.Error())
		}
		o.next()
	})
}

// take reads the parameters of a checkpoint into the arena of the evaluator.
func (o *online) take(dir string) error {
	m, err := checkpoint.Open(dir)
	if err != nil {
		return err
	}
	for server := range m.Servers {
		e, err := m.File(checkpoint.ServerFile(server))
		if err != nil {
			continue // it has no shards
		}
		var state serverState
		vectors, err := checkpoint.ReadFile(dir, e, &state)
		if err != nil {
			return err
		}
		for _, sh := range state.Shards {
			copy(o.e.arena.F32()[sh.Lo:sh.Hi], vectors[0])
			vectors = vectors[sh.Vectors:]
		}
	}
	return nil
}

// consider keeps a checkpoint with this loss and accuracy if it is better than all before it.
func (b *best) consider(r *rank, dir string, loss, accuracy float64) error {
	root := filepath.Dir(dir)
	if !b.read {
		var err error
		if b.sofar, err = checkpoint.ReadBest(root); err != nil {
			return err
		}
		b.read = true
	}
	by := r.cfg.Checkpoint.Best
	value := loss
	if by == configs.BestAccuracy {
		value = accuracy
	}
	known := b.sofar != nil && b.sofar.By == by
	worse := known && (by == configs.BestAccuracy && value <= b.sofar.Value || by == configs.BestLoss && value >= b.sofar.Value)
	if worse || math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	now := checkpoint.Best{Checkpoint: filepath.Base(dir), By: by, Value: value}
	if err := checkpoint.SetBest(r.folder.Folder, now); err != nil {
		return err
	}
	b.sofar = &now
	r.log.Info("the best checkpoint so far", "folder", dir, by, fmt.Sprintf("%.6g", value))
	return checkpoint.Prune(r.folder.Folder, r.cfg.Checkpoint.Keep) // the best before it may go
}

// judgeLast considers the checkpoint of the end, whose version was evaluated last.
func (l *lead) judgeLast() error {
	n := len(l.evals)
	if l.saved == "" || l.online == nil || l.r.cfg.Checkpoint.Best == configs.BestNone || n == 0 || l.evals[n-1].Samples != l.samples || l.reason != "" {
		return nil
	}
	e := l.evals[n-1]
	accuracy := 0.0
	if e.TestAccuracy != nil {
		accuracy = float64(*e.TestAccuracy)
	}
	if e.TestLoss == nil {
		return nil
	}
	return l.online.best.consider(l.r, l.saved, float64(*e.TestLoss), accuracy)
}
