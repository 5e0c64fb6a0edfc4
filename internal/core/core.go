// Package core is what Worker and Server nodes are told and answer. A node is one rank as a pure state machine.
//
// A node is told what happened (Input) and answers with what must be done (Effect). It does no I/O, reads no clock,
// starts no goroutine and never touches a float of a parameter or gradient: buffers are handles. The same nodes run
// under three drivers: the runtime (real messages, real kernels), the simulator and the tests.
//
//	for each input:  effects = node.Step(input, effects[:0]);  do each, in order
//
// The life of one iteration, for one shard:
//
//	Worker                                   Server
//	Compute ──► PieceReady ─► Send Push ───► Arrived ─► Stage (receive the pieces into a slot)
//	            SendPiece ────────────────► PieceLanded ... the last one: Pushed ─► scheme: Fold, Commit
//	            Expect, Send Pull ─────────► Arrived: held until the push landed, then Wanted ─► scheme: Reply
//	PieceLanded, Arrived Reply ◄──────────── Reply (header and pieces, from the version's own buffer)
//	... of the last shard: Compute the next iteration, or Send Left to every server and Done
//
// The nodes have a room each. workernode has the worker's: what it computes, pushes, pulls and waits for. servernode has
// the server's: what it makes of pushes and pulls, as the schemes of its shards decide. They know nothing of each other, only these
// inputs and effects, and what both of them must know of the schemes of a shard (inturn). straggle finds slow workers. Here are also the
// words in which a policy says who computes which samples (task.go), how workers pull ahead (ahead.go), and two small nodes: the
// scheduler of rounds (scheduler.go) and the leader of a team (team.go).
//
// Where a protocol has two halves, a comment at the top of the larger half tells the whole of it. Where a worker and a server share
// memory they exchange headers alone (servernode/near.go). Where a scheme schedules the server's link, the worker holds its pieces
// back until the server grants them (workernode/grants.go). The worker's send policy then orders the pieces of its pushes, and the
// server's orders the pieces of its replies (servernode/replies.go). Servers talk to each other only where shards agree on contributors
// (servernode/agree.go), and on the norm of what these have pushed (servernode/clip.go).
package core

import (
	"fmt"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/ps/scheme"
)

// InputKind says what happened to a rank.
type InputKind uint8

const (
	Begin      InputKind = iota // Worker: start; the worker asks every server for its first parameters
	Forwarded                   // Worker: forward is over; Msg holds Samples, Correct, Loss, Blocked of this iteration
	PieceReady                  // Worker: the gradient of Piece is final and its parameters are no longer read
	TaskDone                    // Worker: backward is over
	PieceSent                   // Worker: the transport is done with Piece's gradient
	// Worker: a piece of a reply is in the arena, or a piece of a published version is beside it. Server: a piece of a
	// push is in Slot of Shard.
	PieceLanded
	Arrived        // both: the control message Msg has arrived
	ReplySent      // Server: the transport is done with Buf of Shard for Worker
	Alarm          // Server: the time of a WakeAt for Shard has come; At is that time or later
	StopNow        // Server: a budget that only the driver can see (time, target, signal) is used up
	SaveSoon       // Server of shard 0, where all shards are in step: save a version that can be announced in time (servernode/resume.go)
	ReplyPieceSent // Server: the transport is done with Piece of the reply to Worker
	PauseNow       // Server of shard 0: stop all workers, so that all shards can be saved; new nodes continue (servernode/stop.go)
	Voted          // Worker: the driver votes for an exchange after a step (servernode/vote.go); Msg has Iter, Clock and Part of the Vote
	StepBegun      // Worker: the driver begins a step of the task that it computes; Msg.Samples is the first sample behind it (task.go)
	Normed         // Server: the pending sums of Shard have these Squares (servernode/clip.go)
	Written        // Server: nobody reads the saved or held version of Shard any more
)

// Input is one thing that happened.
type Input struct {
	Kind   InputKind
	Msg    wire.Header
	Piece  int32 // index into the plan's pieces
	Shard  int32
	Slot   int32
	Worker int32
	Buf    int32
	// Norms of a push whose last piece has landed, given only where the shard's scheme asks for them. Norm2 and NormInf
	// are the 2-norm and the largest element of its mean over the samples; NormW is the 2-norm of the shard's current
	// parameters.
	Norm2, NormInf, NormW float32
	Squares               float64 // Normed: the sum of squares of Weight*Pending

	At time.Duration // since the start of training, stamped by the driver; schemes that measure speed read it
}

// EffectKind says what the driver must do.
type EffectKind uint8

const (
	Send      EffectKind = iota // send Msg to server To (from a worker) or worker To (from a server)
	SendPiece                   // Worker: send Piece of the gradient arena, of iteration Iter, to server To; answer with PieceSent
	Expect                      // Worker: receive the pieces of Shard's next reply into the parameter arena; precedes the Pull
	// Worker: receive a published version of Shard beside the arena. No other version is there or in flight, and no
	// piece of a reply is in flight.
	ExpectBeside
	Adopt // Worker: parameters of Shard = the version that landed beside them
	Keep  // Worker: copy the push of Shard from the gradient arena into Slot
	// Worker: parameters of Shard += Scale*Weight * the worker's own push. The push is the one kept in Slot, or the one
	// in the gradient arena where Slot is -1.
	AddLocal
	// Worker: compute iteration Iter, or the Task of it. Answer with Forwarded, PieceReady of every piece, TaskDone.
	// After StartEarly ask Readable and Writable of each layer.
	Compute
	Stage   // Server: receive the pieces of worker To's push Iter of Shard into Slot; answer with a PieceLanded for each
	Unstage // Server: the rest of worker To's push of Shard will not arrive; cancel the receives into Slot
	Fold    // Server: Into = Scale*Into + Weight*From, of Shard; where From is the push in Slot, Msg is its header
	Commit  // Server: parameters Dst = optimizer(parameters Src, Weight*Pending) at rate Scale*lr(Clock)
	// Server: send Msg, a Reply or a Publish, and the pieces of Shard from parameters Src to worker To; answer with
	// ReplySent. Where Apart is set, send Msg alone: each piece has its own ReplyPiece.
	Reply
	SendServer  // Server: send Msg to server To
	SendBarrier // Worker: send Msg to the scheduler
	// Server: Weight*Pending of Shard is complete; answer with Normed. The commit that follows waits for it
	Norm
	Close    // Server: v of Shard is now Iter+1; for observers
	Snapshot // Server: copy parameters Src of Shard as snapshot Iter
	WakeAt   // Server: send Alarm for Shard at time At
	Done     // this node is finished
	Read     // Worker: parameters of Shard = version Src in the memory that server To shares; complete when the effect returns
	Merge    // Server: the push in Dst += the push in Slot, of Shard; Slot is free afterwards (servernode/parts.go)
	Own      // Server: copy the push in Slot out of worker To's memory; complete when the effect returns
	// Server: save version Iter of Shard and all that belongs to it in a checkpoint. Its parameters, Src, do not change
	// until Written.
	Save
	Cancel     // Worker: start no sample from Dst on of the Task that is being computed
	SendWorker // Worker: send Msg to worker To
	ReplyPiece // Server: send Piece of Shard from parameters Src to worker To; answer with ReplyPieceSent. Msg has the Kind of its reply
	// Server of shard 0: iterations from Iter on belong to other schemes, for the Src-th time. Worker To takes Scale
	// times the median of all workers; -1: no worker straggles any more. For observers (servernode/change.go).
	Changed
)

// Effect is one thing to do. Slots and buffers are small integers that are reused; the driver provides memory for each.
type Effect struct {
	Kind          EffectKind
	To            int32
	Msg           wire.Header
	Piece, Shard  int32
	Slot          int32
	Src, Dst      int32
	From, Into    scheme.Slot
	Iter          int64
	Clock         float64 // Commit: accepted pushes / N before it (BSP: versions): the learning-rate clock, in iterations
	Scale, Weight float64
	Samples       int64         // Stage: of the push; Commit: of the version
	Before        int64         // Commit: samples of the shard's earlier versions
	At            time.Duration // WakeAt
	Apart         bool          // Reply
	// Reply: the folds of To's pushes have read its memory. Send Msg alone; the worker reads parameters Src. There is
	// no answer.
	Near bool
}

// Node is one rank's role.
type Node interface {
	Step(in Input, out []Effect) []Effect // appends to out; the driver obeys in order; an invalid input is our bug and panics
	Check() error                         // verifies the invariants of the state; tests run it after every Step
	fmt.Stringer                          // one line of state, for goldens and stall reports
}

// State is the phase of a worker's iteration.
type State uint8

const (
	Computing State = iota // forward or backward runs; pieces become ready
	Pushing                // backward is over; the send policy still holds pieces
	Waiting                // the policy has released every piece; replies or send completions are missing
	Finished               // the worker was told to stop, or has told the servers that it left
)

func (s State) String() string {
	return [...]string{"computing", "pushing", "waiting", "finished"}[s]
}

// GoneClock is the clock of a worker that has left: it never is the smallest, so nobody waits for it.
const GoneClock = int64(1) << 62
