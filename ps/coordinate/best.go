package coordinate

import (
	"fmt"
	"math"
	"path/filepath"

	"fluentps/configs"
	"fluentps/ps/checkpoint"
	"fluentps/ps/serve"
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
func (l *Lead) judges() bool {
	return l.station.Config.Checkpoint.Best != configs.BestNone && l.looks.online != nil
}

// judgeNext looks at a checkpoint when its turn has come.
func (o *online) judgeNext(dir string) {
	o.checkpoint = dir
	o.next()
}

// judged ends that, or gives it up.
func (o *online) judged() {
	o.judging, o.checkpoint = false, ""
	o.l.kept.snapshots.step(snapshot.Event{Kind: snapshot.Judged})
}

func (o *online) judge() {
	r, dir := o.l.r, o.checkpoint
	defer r.station.Guard()
	err := o.take(dir)
	if err == nil {
		s, rows := o.e.Whole(), float64(r.station.Set.Test.Rows())
		if !r.Halted.Load() {
			err = o.best.consider(r, dir, s.Loss/rows, float64(s.Correct)/rows)
		}
	}
	r.station.Transport.Post(func() {
		o.busy = false
		o.judged()
		if err != nil {
			r.station.Log.Warn("the best checkpoint: " + err.Error())
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
		var state serve.State
		vectors, err := checkpoint.ReadFile(dir, e, &state)
		if err != nil {
			return err
		}
		for _, sh := range state.Shards {
			copy(o.e.Params()[sh.Lo:sh.Hi], vectors[0])
			vectors = vectors[sh.Vectors:]
		}
	}
	return nil
}

// consider keeps a checkpoint with this loss and accuracy if it is better than all before it.
func (b *best) consider(r *Run, dir string, loss, accuracy float64) error {
	root := filepath.Dir(dir)
	if !b.read {
		var err error
		if b.sofar, err = checkpoint.ReadBest(root); err != nil {
			return err
		}
		b.read = true
	}
	by := r.station.Config.Checkpoint.Best
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
	if err := checkpoint.SetBest(r.Folder.Folder, now); err != nil {
		return err
	}
	b.sofar = &now
	r.station.Log.Info("the best checkpoint so far", "folder", dir, by, fmt.Sprintf("%.6g", value))
	return checkpoint.Prune(r.Folder.Folder, r.station.Config.Checkpoint.Keep) // the best before it may go
}

// judgeLast considers the checkpoint of the end, whose version was evaluated last.
func (l *Lead) judgeLast() error {
	n := len(l.looks.evals)
	if l.kept.saved == "" || l.looks.online == nil || l.station.Config.Checkpoint.Best == configs.BestNone || n == 0 || l.looks.evals[n-1].Samples != l.counts.samples || l.end.reason != "" {
		return nil
	}
	e := l.looks.evals[n-1]
	accuracy := 0.0
	if e.TestAccuracy != nil {
		accuracy = float64(*e.TestAccuracy)
	}
	if e.TestLoss == nil {
		return nil
	}
	return l.looks.online.best.consider(l.r, l.kept.saved, float64(*e.TestLoss), accuracy)
}
