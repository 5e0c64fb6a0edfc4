package workernode

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// The worker's half of rounds (scheduler.go of core says what all three roles do).

// round is the worker's progress in one round.
type round struct {
	unacked   int  // shards whose push of this iteration is not acknowledged; each shard acknowledges once
	atBarrier bool // the scheduler was told; its release has not arrived
}

// InRounds makes the worker work in rounds. It must be called before the first input, and without StartEarly.
func (w *Worker) InRounds() {
	if w.early.on {
		panic("core: InRounds after StartEarly: in rounds an iteration overlaps nothing")
	}
	w.round = &round{unacked: len(w.shards)}
}

// AtBarrier says whether the worker waits at the barrier for the others.
func (w *Worker) AtBarrier() bool { return w.round != nil && w.round.atBarrier }

// inRound handles an acknowledgement, or the release from the barrier. Without rounds, an acknowledgement says that the
// server has seen and ignored a duplicate of this worker's push; nothing waits for it.
func (w *Worker) inRound(in core.Input, out []core.Effect) []core.Effect {
	r, m := w.round, in.Msg
	if m.Kind == wire.Release {
		w.must(r != nil && r.atBarrier && m.Iter == w.iter, in)
		*r = round{unacked: len(w.shards)}
		for s := range w.shards {
			out = w.pull(int32(s), out)
		}
		return out
	}
	if r == nil {
		return w.acknowledged(m, out)
	}
	w.must(m.Iter == w.iter && r.unacked > 0, in)
	if r.unacked--; r.unacked > 0 {
		return out
	}
	r.atBarrier = true
	return append(out, core.Effect{Kind: core.SendBarrier, Msg: wire.Header{Kind: wire.Barrier, Worker: w.me, Iter: w.iter}})
}
