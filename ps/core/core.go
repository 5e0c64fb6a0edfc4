// Package core holds the Worker and Server nodes: one rank each as a pure state machine.
//
// A node is told what happened (Input) and answers with what must be done (Effect). It does no I/O, reads
// no clock, starts no goroutine and never touches a float of a parameter or gradient: buffers are handles.
// The same nodes run under three drivers: the runtime (real messages, real kernels), the simulator and the tests.
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
// A server and a worker that share memory send headers alone (near.go).
// Where a scheme schedules the server's link, the pieces wait for its grant first (grants.go). Then the worker's send
// policy orders them, and the server's those of its replies (unsent.go).
// A worker may keep its copy of a shard for several iterations, or have newer ones published to it (copies.go).
// A policy may say which samples a worker computes, of its own iterations and of others' (work.go), and a shard may be exchanged in
// some iterations alone (due.go).
// Servers speak to each other only where shards agree on contributors (agree.go). Who leaves and comes back is in
// member.go, the change of a shard's scheme in change.go.
//
// A worker is Computing until backward is over, Pushing until every piece was let go, Waiting until every
// shard has replied and every send is complete, and then Computing again or Finished. It pushes all shards
// before it waits for any (the law "push all, then wait"): the pull of a shard never holds back a push. Forward of the
// next iteration may start before all have replied, layer by layer (early.go).
package core

import (
	"fmt"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
)

// InputKind says what happened to a rank.
type InputKind uint8

const (
	Begin          InputKind = iota // Worker: start; asks every server for the first parameters
	Forwarded                       // Worker: forward is over; Msg holds Samples, Correct, Loss, Blocked of this iteration
	PieceReady                      // Worker: the gradient of Piece is final and its parameters are no longer read
	TaskDone                        // Worker: backward is over
	PieceSent                       // Worker: the transport is done with Piece's gradient
	PieceLanded                     // Worker: a piece of a reply is in the arena, or of a published version beside it. Server: a piece of a push is in Slot of Shard
	Arrived                         // both: the control message Msg came
	ReplySent                       // Server: the transport is done with Buf of Shard for Worker
	Alarm                           // Server: the time of a WakeAt for Shard has come; At is no earlier
	StopNow                         // Server: the budget that only the driver can see (time, target, signal) is used up
	SaveSoon                        // Server: save the next version that can be named ahead; for the server of shard 0, where all shards are in step
	ReplyPieceSent                  // Server: the transport is done with Piece of the reply to Worker
	PauseNow                        // Server of shard 0: all workers are to leave, so that all shards can be saved; new nodes go on (pause.go)
	Written                         // Server: the version of Shard that was saved, or held, is not read any more
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
	// Norms of a push whose last piece landed, of its mean over the samples: 2-norm and largest element; and the 2-norm of
	// the current parameters of the shard. Only where the shard's scheme asks for them.
	Norm2, NormInf, NormW float32

	At time.Duration // since the start of training, stamped by the driver; schemes that measure speed read it
}

// EffectKind says what the driver must do.
type EffectKind uint8

const (
	Send         EffectKind = iota // send Msg to server To (from a worker) or worker To (from a server)
	SendPiece                      // Worker: send Piece of the gradient arena, of iteration Iter, to server To; answer with PieceSent
	Expect                         // Worker: receive the pieces of Shard's next reply into the parameter arena; precedes the Pull
	ExpectBeside                   // Worker: receive the pieces of a published version of Shard beside the arena; none is there or on its way, nor a piece of a reply
	Adopt                          // Worker: parameters of Shard = the version that landed beside them
	Keep                           // Worker: keep a copy of the push of Shard that is in the gradient arena, in Slot
	AddLocal                       // Worker: parameters of Shard += Scale*Weight * its own push: that kept in Slot, or that in the gradient arena where Slot is -1
	Compute                        // Worker: compute iteration Iter, or the Task of it; answer with Forwarded, PieceReady of every piece, TaskDone. After StartEarly ask Readable and Writable of each layer
	Stage                          // Server: receive the pieces of worker To's push Iter of Shard into Slot; answer with PieceLanded each
	Unstage                        // Server: the rest of worker To's push of Shard will not come; forget the receives into Slot
	Fold                           // Server: Into = Scale*Into + Weight*From, of Shard; where From is the push in Slot, Msg is its header
	Commit                         // Server: parameters Dst = optimizer(parameters Src, Weight*Pending) at rate Scale*lr(Clock)
	Reply                          // Server: send Msg, a Reply or a Publish, and the pieces of Shard from parameters Src to worker To; answer with ReplySent. Apart: send Msg alone, each piece has a ReplyPiece
	SendServer                     // Server: send Msg to server To
	SendBarrier                    // Worker: send Msg to the scheduler
	Close                          // Server: v of Shard has come to Iter+1; for who looks on
	Snapshot                       // Server: keep a copy of parameters Src of Shard as snapshot Iter
	WakeAt                         // Server: give Alarm of Shard at At
	Done                           // this node is finished
	Read                           // Worker: parameters of Shard = version Src in the memory of server To, which they share; done when the effect is obeyed
	Merge                          // Server: the push in Dst += that in Slot, of Shard; Slot is free then (parts.go)
	Own                            // Server: copy the push in Slot out of worker To's memory; done when the effect is obeyed
	Save                           // Server: keep version Iter of Shard with all that belongs to it, for a checkpoint; its parameters, Src, stay as they are until Written
	Cancel                         // Worker: of the Task that is being computed, begin nothing from sample Dst on
	SendWorker                     // Worker: send Msg to worker To
	ReplyPiece                     // Server: send Piece of Shard from parameters Src to worker To; answer with ReplyPieceSent. Msg has the Kind of its reply
)

// Effect is one thing to do. Slots and buffers are small integers, reused; the driver finds memory for each.
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
	At            time.Duration // WakeAt
	Apart         bool          // Reply
	Near          bool          // Reply: the folds of To's pushes have read its memory; send Msg alone, the worker reads parameters Src. There is no answer
}

// Node is one rank's role.
type Node interface {
	Step(in Input, out []Effect) []Effect // appends; the driver obeys in order; a bad input is our bug and panics
	Check() error                         // the invariants of the state; run after every Step in tests
	fmt.Stringer                          // one line of state, for goldens and stall reports
}
