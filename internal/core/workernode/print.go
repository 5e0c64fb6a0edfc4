package workernode

import (
	"fmt"
	"strings"

	"fluentps/internal/core"
)

func (w *Worker) String() string {
	return fmt.Sprintf("w%d %v iter=%d next=%d v=%d open=%d flying=%d %v", w.me, w.state, w.iter, w.replies.next,
		w.replies.clock, w.replies.open, w.sending.inFlight, w.sending.policy)
}

// Me is the worker's index.
func (w *Worker) Me() int32 { return w.me }

// Iter is the iteration being computed, or the one that was just pushed; -1 before the first of a new run.
func (w *Worker) Iter() int64 { return w.iter }

// State is the worker's phase.
func (w *Worker) State() core.State { return w.state }

// Sending describes the send policy: the pieces that it holds, and the values that it has tuned.
func (w *Worker) Sending() string { return w.sending.policy.String() }

// Missing lists the shards whose replies are incomplete, for the stall report.
func (w *Worker) Missing() []int32 {
	var ids []int32
	for s := range w.shards {
		if w.awaitsVersion(int32(s)) || w.shards[s].pulled && (!w.shards[s].replied || w.shards[s].landed < len(w.plan.Shards[s].Pieces)) {
			ids = append(ids, int32(s))
		}
	}
	return ids
}

// Tasks says which tasks the worker has, beside its own iteration, and what its policy says of those that others have; "" if none.
func (w *Worker) Tasks() string {
	if w.work == nil {
		return ""
	}
	var parts []string
	for _, t := range w.work.queue {
		parts = append(parts, fmt.Sprintf("it has yet to compute part %d of iteration %d of worker %d", t.Part, t.Iter, t.Owner))
	}
	for _, o := range w.work.owed {
		parts = append(parts,
			fmt.Sprintf("shard %d has not acknowledged part %d of iteration %d of worker %d", o.shard, o.task.Part, o.task.Iter, o.task.Owner))
	}
	if s, ok := w.work.policy.(fmt.Stringer); ok && s.String() != "" {
		parts = append(parts, s.String())
	}
	const shown = 8
	if n := len(parts); n > shown {
		parts = append(parts[:shown], fmt.Sprintf("and %d more", n-shown))
	}
	return strings.Join(parts, "; ")
}
