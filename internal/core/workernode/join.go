package workernode

import (
	"slices"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
)

// The worker's half of leaving and coming back (member.go of servernode says what both halves do).

// NewJoining makes worker me of the plan for its life-th life. clock is the Clock of its previous life. The servers'
// first replies say where the worker continues, no earlier than clock; it takes the largest iteration that any shard
// names. All shards must hear the same clock. If each shard went by the pushes that it had received itself, two workers
// that come back could wait for each other.
func NewJoining(me int32, plan *shard.Plan, policy send.Policy, life, clock int64) *Worker {
	w := New(me, plan, policy, clock)
	w.life = life
	return w
}

// Clock is the number of iterations that the worker has pushed or skipped, plus one if it has begun to push another.
func (w *Worker) Clock() int64 {
	if w.pullsAhead() && w.first >= 0 {
		return w.iter // servers know what they have of it, so it may be computed again
	}
	begun := slices.ContainsFunc(w.shards, func(sh workerShard) bool { return sh.ready > 0 })
	if w.state == core.Computing && !begun && !w.isInExtra() {
		return w.iter
	}
	return w.iter + 1
}

// begin asks for the first parameters. A worker that comes back announces itself with the same message: a separate pull
// could overtake the announcement, and would be taken for a pull of the previous life.
func (w *Worker) begin(out []core.Effect) []core.Effect {
	w.replies.open = len(w.shards)
	if w.life == 0 {
		for s := range w.shards {
			out = w.pull(int32(s), out)
		}
		return out
	}
	for s := range w.shards {
		w.shards[s].pulled = true
		out = append(out, core.Effect{Kind: core.Expect, Shard: int32(s), To: w.plan.Shards[s].Server})
	}
	for m := range w.plan.Servers {
		out = append(out, core.Effect{Kind: core.Send, To: int32(m),
			Msg: wire.Header{Kind: wire.Joined, Worker: w.me, Iter: w.iter + 1, Clock: w.life}})
	}
	return out
}
