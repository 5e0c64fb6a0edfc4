// Package comm is the contract between the parameter server and the transport that moves its bytes.
//
// One Transport is one rank's view of the world. It has no thread of its own: it makes progress only inside Drive, Tick
// and Barrier. Completion handlers run there, inline, one at a time, on the goroutine that made the call (leader
// progress). So the goroutine that waits also polls, and no message pays for a goroutine hand-off.
//
// The loop of a rank that only serves:
//
//	post(t)                       // Irecv ..., handlers that Step a node and Isend its messages
//	err := t.Drive(func() bool { return finished })
//
// What every transport promises, and commtest.Run checks:
//   - Messages of one (source, channel, tag) match posted receives in the order they were sent, and receives posted
//     with the same (source, channel, tag) run their handlers in posting order: a ring of receives sees a stream as it
//     was sent.
//   - A receive from AnyPeer takes messages of all sources, fairly enough that none starves.
//   - A message longer than the posted receive completes that receive with ErrTruncated. The rank should then abort:
//     past CtlMax bytes, Open MPI 4.1 may write the rest beyond the end of the receive.
//   - Isend and Irecv never block and never call a handler before they return.
//   - A buffer belongs to the transport from Isend or Irecv until the operation's handler has run. It may be freed
//     earlier only after an abort; its memory is then not reused.
//   - Sends complete; they cannot be cancelled. A cancelled receive completes with ErrCancelled.
//   - After Abort on any rank, Drive and Barrier on every living rank return *AbortError (over MPI the process ends
//     instead).
//
// A wrong argument (a rank, tag, channel or length out of range) is the caller's bug and panics. A failure of the
// network is the Err of a Done, or the error that Drive returns.
package comm

import (
	"errors"
	"fmt"
	"time"
)

// Peer is a rank of the world, 0 to Size()-1.
type Peer int32

// AnyPeer as the source of a receive matches messages of every rank.
const AnyPeer Peer = -1

// Chan separates traffic that may overtake each other: headers and bulk.
type Chan uint8

const (
	Ctl   Chan = iota // headers, at most CtlMax bytes each
	Data              // bulk, straight into the destination
	Chans             // the number of channels
)

// CtlMax is the longest message on Ctl, in bytes: a header and a short payload behind it. Transports send such messages
// eagerly where they can.
const CtlMax = 8192

// BacklogMax bounds the messages of one sender, receiver and tag on Ctl that have left the sender and have met no
// receive. Further sends wait at the sender, in their own buffers, so that a receiver that does not look costs neither
// side memory. Package inproc bounds the messages of each receiver instead.
const BacklogMax = 64

// MessageMax is the longest message on Data, in bytes: MPI counts are C ints and slow above this.
const MessageMax = 64 << 20

// TagMax is the largest tag: MPICH over UCX offers 28 bits. On Ctl, SyncClock owns this tag and the one below it.
const TagMax = 1<<28 - 1

// Op names an operation in flight; 0 is none.
type Op uint64

// Done tells a handler how its operation completed. Peer and Tag are those of the message, N its length in bytes; N is
// 0 when Err is not nil.
type Done struct {
	Op   Op
	Peer Peer
	Tag  uint32
	N    int
	Err  error
}

// Handler runs when an operation completes, on the goroutine that drives. It must not block and
// must not call Drive or Barrier; it may submit, cancel and post.
type Handler func(Done)

// Transport is one rank's end. Only one goroutine at a time, the one that drives, may call its methods; Post, Now,
// Rank, Size, NodeRank and Abort may be called from any goroutine.
type Transport interface {
	Rank() int
	Size() int
	NodeRank() (rank, size int) // among the ranks of this host
	NodePeers() []Peer          // the ranks of this host, this one included, in order of node rank; read-only

	// Alloc returns n bytes outside the Go heap, zeroed, 64-byte aligned. The pool is bounded: past its limit the error
	// wraps ErrNoMemory and names the limit.
	Alloc(n int) (*Buf, error)
	// Shared makes a window in which this rank's segment has n bytes, which may be 0. All ranks of the
	// world call it, in the same order; it drives like Barrier. Segments count against the pool's limit.
	// If one rank cannot get its memory, all get the same error, which wraps ErrNoMemory.
	Shared(n int) (*Window, error)

	Isend(to Peer, ch Chan, tag uint32, b *Buf, off, n int, h Handler) Op
	Irecv(from Peer, ch Chan, tag uint32, b *Buf, off, n int, h Handler) Op
	Cancel(Op) // receives only; an operation that has completed is left alone

	// Drive makes progress until the condition holds. It checks the condition first of all and after every batch of
	// completions and posts. Code outside the handlers that changes the condition must Post, or Drive sleeps on.
	Drive(until func() bool) error
	Tick()          // one round of progress, never waits
	Post(func())    // run on the goroutine that drives; wakes it; callable from anywhere
	Barrier() error // drives until every rank is here

	Now() time.Duration // one clock for all ranks: since the start of the world; never goes back
	// SyncClock measures this host's clock against rank 0's again, and returns how far this clock has gained on rank
	// 0's since the start; 0 on rank 0's host. Now stays as it is. Every rank calls SyncClock; it drives.
	SyncClock() (drift time.Duration, err error)
	Abort(code int) // end all ranks with this exit code
	Close() error   // orderly end; every rank calls it; no operation may be in flight. After ErrStuck, leave by Abort
}

// Crowded is a Transport that knows whether its ranks compete for cores.
type Crowded interface {
	// Crowded reports whether the ranks of this host outnumber the cores that they may run on. Then a rank that waits must not
	// poll without a pause.
	Crowded() bool
}

// Clocked is a Transport whose hosts have clocks of their own.
type Clocked interface {
	// ClockError bounds the error of Now against rank 0's, as measured last; 0: the ranks share a clock.
	ClockError() time.Duration
}

var (
	ErrTruncated = errors.New("comm: message longer than the receive buffer")
	ErrCancelled = errors.New("comm: receive cancelled")
	ErrNoMemory  = errors.New("comm: buffer pool exhausted")
	ErrNotBuilt  = errors.New("comm: not built into this binary")
	ErrClosed    = errors.New("comm: transport closed")
	ErrStuck     = errors.New("comm: all ranks have ended, but the transport does not shut down") // Abort with the exit code, even 0
)

// AbortError ends Drive and Barrier on every rank after one of them called Abort.
type AbortError struct {
	Rank int // the rank that called Abort
	Code int // the exit code of all ranks
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("comm: rank %d aborted the world with code %d", e.Rank, e.Code)
}
