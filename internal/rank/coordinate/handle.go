package coordinate

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/rank/evaluate"
)

// Handle registers the messages that rank 0 receives as lead.
func (l *Lead) Handle() {
	net := l.station.Net
	net.HandleHeader(wire.Ready, func(h *wire.Header) { l.snapshotKept(h.SnapshotIndex()) })
	net.HandleHeader(wire.Saved, func(h *wire.Header) { l.checkpoints.snapshots.fileSaved(wire.FileSavedOf(h)) })
	net.HandleHeader(wire.Stale, func(h *wire.Header) { l.staleReported(wire.StalenessOf(h)) })
	net.HandleHeader(wire.Halt, func(h *wire.Header) { l.stopAsked(wire.StopAskedOf(h)) })
	if o := l.evals.online; o != nil && o.e == nil {
		net.HandleHeader(wire.Evaluated, func(h *wire.Header) {
			v := wire.EvaluationOf(h)
			s := evaluate.Sum{Loss: v.Loss, Correct: v.Correct}
			if v.OfCheckpoint() {
				o.hasJudged(o.weigh(o.checkpoint, s))
				return
			}
			o.evaluated(s, v.Took)
		})
	}
	if l.deals.coordinator != nil {
		net.Handle(wire.Measured, l.measured)
	}
	if l.r.Scheduler != nil {
		net.HandleHeader(wire.Barrier, func(h *wire.Header) { l.r.atBarrier(*h) })
	}
}

// HandleEvaluations registers the messages of a rank that evaluates for rank 0, if this is one.
func (r *Run) HandleEvaluations() {
	if r.answers != nil {
		r.station.Net.HandleHeader(wire.Evaluate, func(h *wire.Header) { r.answers.answer(wire.ToEvaluate(h)) })
	}
}

// HandleSnapshots registers the messages of a rank that keeps versions for evaluation.
func (r *Run) HandleSnapshots(k Keeper) {
	r.station.Net.Handle(wire.Snapshot, func(from int, m *wire.Record) { k.SendSnapshot(from, m.SnapshotIndex()) })
	r.station.Net.HandleHeader(wire.Looked, func(h *wire.Header) { k.Forget(h.SnapshotIndex()) })
}
