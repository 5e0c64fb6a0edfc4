package coordinate

import (
	"fmt"
	"math"
	"path/filepath"

	"fluentps/internal/configs"
	"fluentps/internal/core/snapshot"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/rank/evaluate"
	"fluentps/internal/rank/serve"
)

// Which checkpoint is the best: rank 0 reads each finished checkpoint from disk and evaluates its parameters on the test
// set, beside training and in turn with its other evaluations, or the rank of worker 0 does so for it. Rank 0 keeps the
// best checkpoint so far. The next checkpoint begins only after that. The final checkpoint has been evaluated already.

// best is what rank 0 knows of the best checkpoint of the run. Only the goroutine that judges uses it.
type best struct {
	isLoaded bool             // current was read from the run folder
	current  *checkpoint.Best // nil: none
}

// judges says whether the run evaluates each checkpoint.
func (l *Lead) judges() bool {
	return l.station.Config.Checkpoint.Best != configs.BestNone && l.evals.online != nil
}

// judgeNext has a checkpoint judged after the evaluation in progress.
func (o *online) judgeNext(dir string) {
	o.checkpoint = dir
	o.next()
}

// judged ends the judging of a checkpoint, or drops it from the queue.
func (o *online) judged() {
	o.judging, o.checkpoint = false, ""
	o.l.checkpoints.snapshots.step(snapshot.Event{Kind: snapshot.Judged})
}

func (o *online) judge() {
	r, dir := o.l.r, o.checkpoint
	defer r.station.Guard()
	err := take(o.e, dir)
	var failed error // of what computes, which ends the run; err loses no more than a best checkpoint
	if err == nil {
		var s evaluate.Sum
		if s, failed = o.e.Alone(); failed == nil {
			err = o.weigh(dir, s)
		}
	}
	r.station.Transport.Post(func() {
		if failed != nil {
			r.station.Net.Fail(failed)
			return
		}
		o.hasJudged(err)
	})
}

// weigh keeps a checkpoint of these sums over the test rows as the best, if it is.
func (o *online) weigh(dir string, s evaluate.Sum) error {
	r := o.l.r
	if r.Halted.Load() {
		return nil
	}
	rows := float64(r.station.Set.Test.Rows())
	return o.best.consider(r, dir, s.Loss/rows, float64(s.Correct)/rows)
}

// hasJudged goes on behind the judging of a checkpoint. err loses no more than a best checkpoint.
func (o *online) hasJudged(err error) {
	o.busy = false
	o.judged()
	if err != nil {
		o.l.r.station.Log.Warn("the best checkpoint: " + err.Error())
	}
	o.next()
}

// take reads the parameters of a checkpoint into the arena of an evaluator.
func take(e *evaluate.Evaluator, dir string) error {
	m, err := checkpoint.Open(dir)
	if err != nil {
		return err
	}
	for server := range m.Servers {
		file, err := m.File(checkpoint.ServerFile(server))
		if err != nil {
			continue // a server without shards writes no file
		}
		var state serve.State
		vectors, err := checkpoint.ReadFile(dir, file, &state)
		if err != nil {
			return err
		}
		for _, sh := range state.Shards {
			copy(e.Params()[sh.Lo:sh.Hi], vectors[0])
			vectors = vectors[sh.Vectors:]
		}
	}
	return nil
}

// consider keeps a checkpoint with this loss and accuracy as the best, if it is better than all before.
func (b *best) consider(r *Run, dir string, loss, accuracy float64) error {
	root := filepath.Dir(dir)
	if !b.isLoaded {
		var err error
		if b.current, err = checkpoint.ReadBest(root); err != nil {
			return err
		}
		b.isLoaded = true
	}
	by := r.station.Config.Checkpoint.Best
	value := loss
	if by == configs.BestAccuracy {
		value = accuracy
	}
	comparable := b.current != nil && b.current.By == by
	worse := comparable && (by == configs.BestAccuracy && value <= b.current.Value || by == configs.BestLoss && value >= b.current.Value)
	if worse || math.IsNaN(value) || math.IsInf(value, 0) {
		return nil
	}
	newBest := checkpoint.Best{Checkpoint: filepath.Base(dir), By: by, Value: value}
	if err := checkpoint.SetBest(r.Folder.Folder, newBest); err != nil {
		return err
	}
	b.current = &newBest
	r.station.Log.Info("the best checkpoint so far", "folder", dir, by, fmt.Sprintf("%.6g", value))
	return checkpoint.Prune(r.Folder.Folder, r.station.Config.Checkpoint.Keep) // the previous best may go
}

// judgeLast considers the final checkpoint, whose version was evaluated last.
func (l *Lead) judgeLast() error {
	n := len(l.evals.results)
	if l.checkpoints.final == "" || l.evals.online == nil || l.station.Config.Checkpoint.Best == configs.BestNone ||
		n == 0 || l.evals.results[n-1].Samples != l.counts.samples || l.end.reason != "" {
		return nil
	}
	e := l.evals.results[n-1]
	accuracy := 0.0
	if e.TestAccuracy != nil {
		accuracy = float64(*e.TestAccuracy)
	}
	if e.TestLoss == nil {
		return nil
	}
	return l.evals.online.best.consider(l.r, l.checkpoints.final, float64(*e.TestLoss), accuracy)
}
