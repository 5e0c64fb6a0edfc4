package workernode

import (
	"fluentps/internal/policy/send"
)

// WorkerCounts counts what happened to a worker.
type WorkerCounts struct {
	LeadMax    int64   // largest lead over a shard at the start of an iteration
	Started    int64   // iterations started
	WaitedLast []int64 // per shard: how often it was the last to be waited for
	Cached     []int64 // per shard: iterations started on the worker's own copy, without a pull
}

// marks are flags that replies have asked for.
type marks struct {
	save   int64 // pushes of this iteration carry the Save flag; -1: of none
	change int64 // the same with the Change flag
}

// sending is what leaves the worker.
type sending struct {
	policy   send.Policy
	released []int32 // scratch: what the policy releases in one step
	inFlight int     // pieces that the transport is sending: SendPiece was given, PieceSent has not arrived
}

// replies is what the replies have said so far, and what is still to come of this iteration's.
type replies struct {
	next  int64 // largest Iter: the next iteration to compute
	clock int64 // largest v
	stop  bool  // start no new iteration
	open  int   // shards whose reply is incomplete
	last  int32 // of the shards that this iteration waits for, the one that completed last; -1: none
}

// workerShard counts the pieces of one shard through one iteration.
type workerShard struct {
	version  int64 // of the parameters in the arena; each own update that the worker has added counts as one
	clock    int64 // v of that version
	ready    int   // pieces whose gradient is ready, this iteration
	released int   // pieces that the send policy has released, this iteration: released <= ready
	landed   int   // pieces of the reply that are in the arena
	pulled   bool  // the pull was sent
	replied  bool  // the reply's header has arrived
	letInto  int64 // the largest iteration that this reply lets the worker start

	near      bool // its server shares memory with the worker
	scheduled bool // the shard's pieces wait for a grant
	tooLate   bool // the iteration was over at the shard when the push began: nothing is sent
}

// lead is c - v over the shard at the start of iteration c. v is that of the shard's reply, or of the worker's copy. If
// another shard lets the worker start a later iteration than this shard's open one, c is the one that this shard let it
// into.
func (sh *workerShard) lead(c int64) int64 {
	if sh.replied {
		c = min(c, sh.letInto)
	}
	return c - sh.clock
}
