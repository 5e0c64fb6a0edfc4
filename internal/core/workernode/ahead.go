package workernode

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// The worker's half of pulling ahead (internal/core/ahead.go says what both halves do).

// PullAhead makes the worker pull when an iteration starts. It must be called after SetWork, before the first input.
func (w *Worker) PullAhead() { w.work.ahead = true }

func (w *Worker) pullsAhead() bool { return w.work != nil && w.work.ahead }

// pullAhead asks every shard for the parameters of the next iteration.
func (w *Worker) pullAhead(out []core.Effect) []core.Effect {
	if !w.pullsAhead() {
		return out
	}
	w.work.silent = len(w.shards)
	for s := range w.shards {
		out = w.pull(int32(s), out)
	}
	return out
}

// isTooLate says of the push that the worker computes whether the shard takes it no more. That is decided with the push's first piece.
func (w *Worker) isTooLate(s int32) bool {
	sh := &w.shards[s]
	if sh.ready == 0 {
		sh.tooLate = w.pullsAhead() && sh.letInto > w.iter
	}
	return sh.tooLate
}

// align asks again the shards that have let the worker into an earlier iteration than another shard has. That happens
// if the worker, or a reply to it, is so slow that others close an iteration meanwhile. The worker then waits until
// all of its parameters belong to one iteration, so that all copies of a batch have the same gradient. The shards
// behind need nothing of this worker to get there: what others pushed to the first shard they push to all. Only
// pushes of a worker that was lost may be missing at some. So when a server knows of a loss, it answers such a pull
// at once, and the parameters may belong to different iterations, as those of a worker that skips iterations under
// other schemes do.
func (w *Worker) align(out []core.Effect) []core.Effect {
	if !w.pullsAhead() || w.replies.open > 0 || w.replies.stop {
		return out
	}
	for s := range w.shards {
		if sh := &w.shards[s]; sh.letInto < w.replies.next {
			out = w.pullAgain(int32(s), out)
		}
	}
	return out
}

// pullAgain forgets the reply of a shard and asks for a later one.
func (w *Worker) pullAgain(s int32, out []core.Effect) []core.Effect {
	sh := &w.shards[s]
	sh.replied, sh.landed = false, 0
	w.replies.open++
	w.work.silent++
	w.early.unanswered += w.answersDue(s)
	for _, p := range w.plan.Shards[s].Pieces {
		w.early.pieces[p.ID].landed = false
		w.early.layers[p.Layer].missing++
	}
	m := wire.Header{Kind: wire.Pull, Worker: w.me, Shard: s, Iter: w.replies.next, Part: core.PullAgain}
	return append(out, core.Effect{Kind: core.Expect, Shard: s, To: w.plan.Shards[s].Server},
		core.Effect{Kind: core.Send, To: w.plan.Shards[s].Server, Msg: m})
}

// keepsGradients notes that a task is computed whose gradients are not pushed now.
func (w *Worker) keepsGradients(t core.Task) {
	for s := range w.shards {
		if n := len(w.plan.Shards[s].Pieces); t.Keep == core.Kept {
			w.shards[s].ready, w.shards[s].released = n, n
		}
	}
}

// answered tells the policy when every shard has replied, so that nothing of the iteration counts any more.
func (w *Worker) answered(out []core.Effect) []core.Effect {
	if !w.pullsAhead() || w.first < 0 {
		return out
	}
	if w.work.silent--; w.work.silent > 0 {
		return out
	}
	return w.tellWork(core.WorkEvent{Kind: core.Answered, Task: w.work.own}, out)
}
