package workernode

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// A scheme may have to know whether a worker that does not push to its shard computes or waits elsewhere: for another
// shard's reply or grant, for a change of scheme, or for its batch. Only the worker knows that. So the scheme asks, and the
// worker answers when it waits, maybe later, and says when it goes on:
//
//	Server                                     Worker
//	scheme: AskElsewhere ─► Send AskWaits ─────► remembered until it pushes the shard again
//	WaitsElsewhere ─► scheme ◄───────────────── Send Waits, when it has this shard's reply and still waits
//	WaitedElsewhere ─► scheme ◄──────────────── Send Waits with Over, when it goes on
//
// A worker whose pull the server itself keeps for the next scheme (servernode/change.go) waits, so it is not asked.

// questions are what the servers asked a worker. Nil where none ever did.
type questions struct {
	of   []question // per shard
	open int        // shards that have asked and not got the next push yet
}

type question struct {
	open   bool
	told   bool  // the server was told that the worker waits; only while open
	number int64 // of the question
}

func (q *questions) ask(shards int, m *wire.Header) {
	if q.of == nil {
		q.of = make([]question, shards)
	}
	if !q.of[m.Shard].open {
		q.open++
	}
	q.of[m.Shard] = question{open: true, number: m.Version}
}

// forget ends the question of a shard whose next push begins: the push is the answer.
func (q *questions) forget(s int32) {
	if q.of != nil && q.of[s].open {
		q.of[s] = question{}
		q.open--
	}
}

// answerQuestions ends a step of a worker: it tells the servers that asked what has changed.
func (w *Worker) answerQuestions(out []core.Effect) []core.Effect {
	if w.questions.open == 0 || w.state == core.Finished {
		return out
	}
	for s := range w.questions.of {
		q := &w.questions.of[s]
		waits := q.open && w.waitsElsewhere(int32(s))
		if !q.open || waits == q.told {
			continue
		}
		m := wire.Header{Kind: wire.Waits, Worker: w.me, Shard: int32(s), Version: q.number}
		if q.told = waits; !waits {
			m.Flags = wire.Over
		}
		out = append(out, core.Effect{Kind: core.Send, To: w.plan.Shards[s].Server, Msg: m})
	}
	return out
}

// waitsElsewhere says whether the worker has pushed all that it may, is not answered by all, but by this shard. A reply whose
// pieces are on their way is an answer.
func (w *Worker) waitsElsewhere(s int32) bool {
	missing := func(s int32) bool { return w.awaitsVersion(s) || w.shards[s].pulled && !w.shards[s].replied }
	switch {
	case missing(s):
		return false
	case w.state == core.Pushing:
		return w.grants.ungranted > 0 && w.sending.policy.Held() == 0 && w.shards[s].released == len(w.plan.Shards[s].Pieces)
	case w.state != core.Waiting:
		return false
	}
	for other := range w.shards {
		if missing(int32(other)) {
			return true
		}
	}
	return w.AwaitsBatch()
}
