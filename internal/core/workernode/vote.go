package workernode

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// The worker's half of votes (vote.go of servernode says what both halves do).

// vote tells the lead shard's server what the worker wants after a step.
func (w *Worker) vote(in core.Input, out []core.Effect) []core.Effect {
	m := in.Msg
	m.Kind, m.Worker = wire.Vote, w.me
	w.verdict = wire.Header{}
	return append(out, core.Effect{Kind: core.Send, To: w.plan.Shards[0].Server, Msg: m})
}

// Verdict returns what the workers have decided after the step that this one has voted on; known is false until then.
func (w *Worker) Verdict() (yes, known bool) { return w.verdict.Part > 0, w.verdict.Kind != 0 }
