// Package scheme is the sync axis: when a pull is answered and how pushes become a version.
//
// A Scheme is a pure state machine, one instance per shard on the server that owns it. It is told
// events and answers with decisions that the driver obeys in order:
//
//	for each event:  decisions = s.Step(event, decisions[:0]);  obey each
//
// It does no I/O, reads no clock (times come in Event.At), starts no goroutine and never sees a
// parameter or gradient. The clock convention is one for the whole project: a worker's clock c is the
// number of iterations it has completed; after pushing iteration i, c = i+1 and the iteration it wants
// to start next has index c; v is the smallest clock among the workers that are still in the run.
package scheme

import (
	"encoding"
	"fmt"
	"time"
)

// EventKind says what happened.
type EventKind uint8

const (
	Offered EventKind = iota // the header of a push arrived; its bytes are on the way
	Pushed                   // the last byte of a push landed
	Wanted                   // a worker asks for the parameters to start Iter; never before its push Iter-1 landed
	Ready                    // a worker has a push ready and waits for a Grant (schemes that schedule a link)
	Sent                     // the last byte of a reply left the server
	Alarm                    // a time asked for with WakeAt has come
	Joined                   // a worker came (back) at clock Iter, where its pushes here end; it starts no earlier than v, and its Reply says where
	Left                     // a worker is gone; its open pull vanishes, and what it has pushed counts
	Closed                   // the shard that this one follows closed Iter: Worker contributes, one event for each of Parts in a row, or NoWorker where Parts is 0
)

// Event is one input. Times and counts are data, so that a recorded stream replays the same decisions.
type Event struct {
	Kind                  EventKind
	Worker, Shard, Part   int32         // Part: task, partition or codeword id
	Parts                 int32         // how many parts are owed for (Owner, Iter); at least 1 in Pushed
	Owner                 int32         // whose iteration this push counts for; the worker itself unless a helper pushed
	Iter, Seen            int64         // Iter: i in Pushed, c = i+1 in Wanted; Seen: version the gradient was computed on
	Samples               int64         // samples summed in this push
	Norm2, NormInf, NormW float32       // Pushed: of the push's mean over its samples, and of the parameters; only where the Entry asks for them
	Blocked               time.Duration // Ready: how long its worker waited for replies, of all servers, before it computed this push
	At                    time.Duration // since the start of the run, stamped by the driver
}

// DecisionKind says what the driver must do.
type DecisionKind uint8

const (
	Fold    DecisionKind = iota // Dst = Scale*Dst + Weight*Src; where Src is a push, its slot is free afterwards
	Drop                        // forget the push; counted under its Reason
	Commit                      // apply the pending sums as one update: the next version
	Reply                       // answer the worker's pull with the current version; Iter is the iteration to compute next
	Publish                     // send the current version to a worker that did not ask; where one is on its way, as soon as it was taken
	Grant                       // the worker may send its push
	Revoke                      // the grant of this Epoch is void
	WakeAt                      // give me Alarm at At
	Close                       // Iter is closed, with the pushes folded since the last Close; those between had none. Where shards agree
)

// Reason says why a push is dropped.
type Reason uint8

const (
	NotDropped Reason = iota
	Empty             // it sums no samples
	Gone              // its worker left before it landed
	Late              // its iteration is closed
	Surplus           // its iteration has all the pushes that it takes, without it
	Spent             // the run has all the versions that it was to have: decided by the node, not by a scheme
	Reasons
)

// Slot names a buffer of the shard: the push of (Worker, Iter, Part) of the decision, the sums that the next
// Commit applies, or the parameters themselves.
type Slot int8

const (
	SlotPush Slot = iota
	SlotPending
	SlotParams
	SlotMean // the first of the accumulators that a scheme has beside; SlotMean + k is the k-th after it
)

// Sums is the number of the accumulator that the slot names: 0 is the pending sums. A slot that holds none panics.
func (s Slot) Sums() int {
	switch {
	case s == SlotPending:
		return 0
	case s >= SlotMean:
		return 1 + int(s-SlotMean)
	}
	panic(fmt.Sprintf("scheme: slot %d holds no sums", s))
}

// NoWorker is the Worker of a decision that concerns no one worker, such as the Commit of an iteration.
const NoWorker int32 = -1

// Decision is one output.
type Decision struct {
	Kind                DecisionKind
	Worker, Shard, Part int32 // Worker: of a Commit: the pusher, or NoWorker where it closes an iteration
	Iter, Epoch         int64 // Iter: of a Commit: the iteration pushed or closed; of a Reply: the one to compute next
	Dst, Src            Slot
	Reason              Reason // of a Drop
	// Fold: Dst = Scale*Dst + Weight*Src; Scale 0 overwrites, whatever Dst held.
	// Commit: the update is Weight*Pending (Weight is 1/samples) at learning rate Scale*lr.
	Scale, Weight float64
	Samples       int64 // Commit: samples in this version
	At            time.Duration
}

// Scheme decides for one shard. Step appends its decisions to out and returns it; an event that no
// driver may send (a worker out of range, a clock that jumps back) is a bug of ours and panics.
type Scheme interface {
	Step(ev Event, out []Decision) []Decision
	fmt.Stringer // one line of state, for goldens, stall reports and explain
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// Env is what a scheme knows of its run. Clocks and Start let a run resume or change scheme half-way.
type Env struct {
	Workers         int     // of the run, fixed: the N of 1/N
	Shards          []int32 // the shards this instance decides for
	Server, Servers int     // index of this server, number of servers
	Clocks          []int64 // clock per worker; nil: all 0; -1: has left
	Start           int64   // version at the start; it is v where nobody is in the run
	Follows         bool    // another shard of the rule decides who contributes to an iteration; where shards agree
	Seed            uint64  // of the run; what a scheme draws is a hash of it and of what it decides
	Rule            int     // index of the rule that took the shards
	Memory          []byte  // of the instance before a checkpoint, where that is Learning; nil: none
}

// Scope says how many shards one instance decides for.
type Scope uint8

const (
	PerShard  Scope = iota // one instance per shard
	PerServer              // one instance for all its shards on that server
)

// Copies says how a worker gets a newer copy of a shard.
type Copies uint8

const (
	Pulled    Copies = iota // it pulls one before every iteration
	Cached                  // it keeps one with its own updates added, and pulls when that is too old: clock < c - LeadMax
	Published               // it pulls the first; newer ones are sent to it (Publish). It waits while its copy is too old
)

// Params is what a rule may set in the YAML, beside the common keys. It is a pointer to a struct with yaml
// tags whose zero-argument constructor in the table fills the defaults.
type Params interface {
	Check() error // names the key, the value, the limit and the way out
}

// Common holds the keys that every scheme shares.
type Common struct {
	Fold   FoldOrder // rank or arrival
	Weight float64   // per-push schemes: share of one push in an iteration; 0: 1/N
}

// FoldOrder says when pushes enter the pending sums.
type FoldOrder string

const (
	FoldRank    FoldOrder = "rank"    // staged; folded in rank order when the iteration closes; one commit per iteration
	FoldArrival FoldOrder = "arrival" // folded as they come
)

// Phase is one of the schemes that a shard has in turn.
type Phase struct {
	Scheme string
	Common Common
	Params Params
	Until  int64 // the clock at which the next one takes over; 0 in the last
}

// Entry is one row of the table: all that config, explain, README and tests know of a scheme.
type Entry struct {
	Name       string
	Short      string // what it does in at most 90 characters, for the table of the README at the root; key names stand in backticks
	Rule       string // one line: when is a pull answered, how do pushes become a version
	Paper      string // source and section
	Evidence   string // tag of the source: P, C, A, R, M or X, as in the README of this package
	Use        string // when to use it, one line
	Scope      Scope
	NeedsNorms func(Params) bool                  // Pushed must carry norms; nil: never
	OwnUpdate  bool                               // the rule holds only where an update is its push times the learning rate: no momentum, no decay
	NeverWaits func(Params) bool                  // no pull waits until other workers get further; nil: one may
	Alone      func(Params) bool                  // the other shards of the run must never wait either; nil: they may
	Behind     bool                               // v is the number of iterations closed, and workers may be behind it
	Agrees     func(Params) bool                  // the shards of a rule agree on who contributes to an iteration: Close and Closed; nil: never
	Fold       FoldOrder                          // the default
	Push       string                             // what its pushes must carry: gradient or delta; empty: either
	Copies     func(Params) Copies                // nil: Pulled
	Means      func(Params) int                   // accumulators that it folds into beside the pending sums; nil: none
	Weight     string                             // the default of weight, for readers; empty: 1/N
	DeltaWhole bool                               // a push that is a delta and a version is added whole: the default of weight is 1 there
	Params     func() Params                      // defaults filled
	LeadMax    func(Params) (lead int64, ok bool) // the finite bound on c - v of a running worker, if there is one
	Bound      string                             // the key that bounds the lead, for advice; empty: none does
	Whole      func(Common, Params) bool          // a version is a whole iteration, not one push
	New        func(Env, Common, Params) (Scheme, error)
}

// WantsNorms says whether the driver must compute the norms of each push.
func (e Entry) WantsNorms(p Params) bool { return e.NeedsNorms != nil && e.NeedsNorms(p) }

// CopiesOf says how the copies of a rule with these keys are renewed.
func (e Entry) CopiesOf(p Params) Copies {
	if e.Copies == nil {
		return Pulled
	}
	return e.Copies(p)
}

// InStep says whether all workers are at one clock whenever a version is made, and keep no copies: each version is a cut.
func (e Entry) InStep(c Common, p Params) bool {
	if e.Behind || e.CopiesOf(p) != Pulled || !e.Whole(c, p) {
		return false
	}
	lead, bounded := e.LeadMax(p)
	return bounded && lead == 0
}

// Share is the part of a push's mean that one commit adds where each push is a commit: weight, by default 1/N.
func (c Common) Share(workers int) float64 {
	if c.Weight > 0 {
		return c.Weight
	}
	return 1 / float64(workers)
}
