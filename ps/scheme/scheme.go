// Package scheme is the sync axis: when a pull is answered, and how pushes become a version.
//
// A Scheme is a pure state machine, one instance per shard on the server that owns the shard. It is told events and
// answers with decisions that the driver obeys in order:
//
//	for each event:  decisions = s.Step(event, decisions[:0]);  obey each
//
// It does no I/O, reads no clock (times come in Event.At), starts no goroutine and never sees a parameter or gradient.
// The whole project has one clock convention. A worker's clock c is the number of iterations that it has completed:
// after it has pushed iteration i, c = i+1, and the next iteration that it wants to start has index c. v is the
// smallest clock among the workers that are still in the run.
package scheme

import (
	"cmp"
	"encoding"
	"fmt"
	"time"
)

// EventKind says what happened.
type EventKind uint8

const (
	Offered EventKind = iota // the header of a push arrived; its pieces are in flight
	Pushed                   // the last piece of a push has landed
	Wanted                   // a worker asks for the parameters to start Iter; never before its push Iter-1 landed
	Ready                    // a worker has a push ready and waits for a Grant (schemes that schedule a link)
	Sent                     // the last byte of a reply left the server
	Alarm                    // the time of a WakeAt has come: At is that time or later
	// A worker came, or came back. Iter is its clock here, behind its last push. It starts no earlier than v; its Reply
	// says where.
	Joined
	Left // a worker has left; its open pull vanishes, and its pushes count
	// The leading shard has closed Iter. Worker contributes: one event for each of Parts in a row; or NoWorker where
	// Parts is 0.
	Closed
	// A worker that was asked so with version Seen has this shard's reply, and waits for another shard's reply or grant, for
	// a change of scheme or for its batch. WaitedElsewhere: it goes on. Its next push here says that, too.
	WaitsElsewhere
	WaitedElsewhere
)

// Event is one input. Times and counts are data, so that a recorded stream replays the same decisions.
type Event struct {
	Kind                EventKind
	Worker, Shard, Part int32 // Part: task, partition or codeword id
	Parts               int32 // number of parts of (Owner, Iter); at least 1 in Pushed
	Owner               int32 // the worker whose iteration this push counts for; Worker itself unless a helper pushed
	Iter, Seen          int64 // Iter: i in Pushed, c = i+1 in Wanted; Seen: the version that the gradient was computed on
	Samples             int64 // samples summed in this push
	// Pushed: 2-norm and largest element of the push's mean over its samples, and 2-norm of the parameters; only where
	// the Entry asks for them.
	Norm2, NormInf, NormW float32
	Blocked               time.Duration // Ready: how long the worker waited for replies of all servers before it computed this push
	Queued                time.Duration // Ready: how long its last push waited, once granted, for its pushes to other servers
	At                    time.Duration // since the start of the run, stamped by the driver
}

// DecisionKind says what the driver must do.
type DecisionKind uint8

const (
	Fold    DecisionKind = iota // Dst = Scale*Dst + Weight*Src; where Src is a push, its slot is free afterwards
	Drop                        // discard the push; it is counted under its Reason
	Commit                      // apply the pending sums as one update: the next version
	Reply                       // answer the worker's pull with the current version; Iter is the iteration to compute next
	Publish                     // send the current version to a subscribed worker; if one is in flight to it, once that one was taken
	Grant                       // the worker may send its push
	Revoke                      // the grant of this Epoch is void
	WakeAt                      // send Alarm at At
	// Only where shards agree: Iter is closed by the pushes folded since the last Close; earlier open iterations are
	// closed by none.
	Close
	// Ask the worker whether it waits elsewhere, with version Iter. It says so as soon as it does (WaitsElsewhere), and
	// nothing if it pushes here first.
	AskElsewhere
)

// Reason says why a push is dropped.
type Reason uint8

const (
	NotDropped Reason = iota
	Empty             // it has no samples
	Gone              // its worker left before it landed
	Late              // its iteration is closed
	Surplus           // its iteration already has its quorum
	Spent             // the run has all versions of its budget; the node decides this, not a scheme
	Stale             // it was computed on too old a version
	Reasons
)

// Slot names a buffer of the shard: the push of the decision's (Worker, Iter, Part), the sums that the next Commit
// applies, the parameters, or an accumulator of the scheme.
type Slot int16

const (
	SlotPush Slot = iota
	SlotPending
	SlotParams
	SlotMean // the scheme's first accumulator; SlotMean + k is the k-th after it
)

// Sums is the number of the accumulator that the slot names: 0 is the pending sums. It panics for a slot without sums.
func (s Slot) Sums() int {
	switch {
	case s == SlotPending:
		return 0
	case s >= SlotMean:
		return 1 + int(s-SlotMean)
	}
	panic(fmt.Sprintf("scheme: slot %d holds no sums", s))
}

// NoWorker is the Worker of a decision without a particular worker, such as the Commit of an iteration.
const NoWorker int32 = -1

// Decision is one output.
type Decision struct {
	Kind                DecisionKind
	Worker, Shard, Part int32 // Worker of a Commit: the pusher, or NoWorker where it closes an iteration
	Iter, Epoch         int64 // Iter: of a Commit: the iteration pushed or closed; of a Reply: the one to compute next
	Dst, Src            Slot
	Reason              Reason // of a Drop
	// Fold: Dst = Scale*Dst + Weight*Src; Scale 0 overwrites, whatever Dst held.
	// Commit: the update is Weight*Pending (Weight is 1/samples) at learning rate Scale*lr.
	Scale, Weight float64
	Samples       int64 // Commit: samples in this version
	Unpushed      int64 // Commit: those of them that no folded push reports
	Approximate   bool  // Commit: of coded pushes: some of the whole gradient is missing
	At            time.Duration
}

// Scheme decides for one shard. Step appends its decisions to out and returns it. It panics on an event that no driver
// may send, such as a worker out of range or a clock that jumps back: such an event is our own bug.
type Scheme interface {
	Step(ev Event, out []Decision) []Decision
	fmt.Stringer // one line of state, for goldens, stall reports and explain
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// Env is what a scheme knows about its run. Clocks and Start let a run resume, or change its scheme half-way.
type Env struct {
	Workers         int     // of the run, fixed: the N of 1/N
	Shards          []int32 // the shards this instance decides for
	Server, Servers int     // index of this server, number of servers
	Clocks          []int64 // clock per worker; nil: all 0; -1: has left
	Start           int64   // version at the start; it becomes v where nobody is in the run
	Follows         bool    // where shards agree: another shard of the rule decides who contributes to an iteration
	Seed            uint64  // of the run; each random draw is a hash of it and of the request that the draw decides
	Rule            int     // index of the rule that took the shards
	Samples         float64 // of a push on average: one that is a version weighs by its samples over these; 0: all weigh the same
	Code            Code    // of a run with work.policy: coded; nil: each push is a partition of its own
	Memory          []byte  // what a Learning instance remembered before the checkpoint; nil: none
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
	Pulled    Copies = iota // it pulls a copy before every iteration
	Cached                  // it keeps a copy, adds its own updates, and pulls when the copy is too old: clock < c - LeadMax
	Published               // it pulls the first; newer versions are sent to it (Publish). It waits while its copy is too old
)

// Params are the keys that a rule may set in the YAML, beside the common keys: a pointer to a struct with yaml tags.
// Its constructor in the table fills the defaults.
type Params interface {
	Check() error // names the key, the value, the limit and the way out
}

// Several is what Params have where a version is neither a whole iteration nor one push: the least number of pushes that
// make one among that many workers, at least 1. exact says whether it is always that number, and none is dropped.
type Several interface {
	Several(workers int) (pushes int64, exact bool)
}

// ClosedBy is what Params have where an iteration may close with the pushes of some workers: how many pushes close it; 0: those of all.
type ClosedBy interface {
	ClosedBy() (pushes int64)
}

// VersionText is what Params have that say themselves what a version is among so many workers, such as "one when every worker has pushed";
// for others plan says it.
type VersionText interface {
	VersionText(workers int) string
}

// Common holds the keys that every scheme shares.
type Common struct {
	Fold   FoldOrder `yaml:"fold,omitempty" values:"rank,arrival" doc:"rank: an iteration's pushes are folded in rank order when it closes; arrival: as they come; default: the scheme's"`
	Weight float64   `yaml:"weight" min:"0" as:"float32" doc:"where each push is a version: its share in an iteration; 0: 1/N; ssp and essp add deltas whole: 1"`
}

// FoldOrder says when pushes enter the pending sums.
type FoldOrder string

const (
	FoldRank    FoldOrder = "rank"    // staged; folded in rank order when the iteration closes; one commit per iteration
	FoldArrival FoldOrder = "arrival" // folded as they arrive
)

// Phase is one of the schemes that a shard has in turn.
type Phase struct {
	Scheme string
	Common Common
	Params Params
	Until  int64 // the clock at which the next scheme takes over; 0 in the last, and with Await
	Await  Await // what ends the scheme, if that is found out while training runs
}

// Entry is one row of the table: everything that config, explain, README and tests know about a scheme.
type Entry struct {
	Name       string
	Short      string // what it does in at most 90 characters, for the table of the README at the root; key names stand in backticks
	Rule       string // one line: when is a pull answered, how do pushes become a version
	Paper      string // source and section
	Evidence   string // tag of the source: P, C, A, R, M or X, as in the README of this package
	Use        string // when to use it, one line
	Scope      Scope
	NeedsNorms func(Params) bool // Pushed must carry norms; nil: never
	// The rule holds only where an update is the push times the learning rate: no momentum, no decay.
	OwnUpdate  bool
	NeverWaits func(Params) bool                  // no pull waits for the progress of other workers; nil: one may
	Alone      func(Params) bool                  // the other shards of the run must never wait either; nil: they may
	Behind     bool                               // v is the number of iterations closed, and workers may be behind it
	DropsStale bool                               // a push computed on too old a version is dropped (Stale); its worker skips nothing
	Agrees     func(Params) bool                  // the shards of a rule agree on the contributors to an iteration; nil: never
	Fold       FoldOrder                          // the default
	Says       Says                               // traits of its own, and what it does not go with; empty: what its other fields imply
	Push       string                             // required content of its pushes: gradient or delta; empty: either
	Copies     func(Params) Copies                // nil: Pulled
	Means      func(p Params, workers int) int    // accumulators beside the pending sums; nil: none
	Weight     string                             // the default of weight, as text; empty: 1/N; or DeltaWhole, or NoWeight
	Params     func() Params                      // defaults filled
	LeadMax    func(Params) (lead int64, ok bool) // the finite bound on c - v of a running worker, if there is one
	Bound      string                             // the key that bounds the lead, named in advice; empty: none does
	Whole      func(Common, Params) bool          // a version is a whole iteration, not one push
	New        func(Env, Common, Params) (Scheme, error)
}

const (
	// NoWeight is the Weight of an Entry whose versions are always whole steps, so that a rule may not set weight.
	NoWeight = "none"
	// DeltaWhole is the Weight of an Entry under which a push that is both a delta and a version is added whole.
	DeltaWhole = "1/N; 1 with push: delta"
)

// WeightText is the default of weight, as text.
func (e Entry) WeightText() string {
	if e.Weight == DeltaWhole && e.Push == "delta" {
		return "1"
	}
	return cmp.Or(e.Weight, "1/N")
}

// WantsNorms says whether the driver must compute the norms of each push.
func (e Entry) WantsNorms(p Params) bool { return e.NeedsNorms != nil && e.NeedsNorms(p) }

// CopiesOf says how workers renew their copies under a rule with these keys.
func (e Entry) CopiesOf(p Params) Copies {
	if e.Copies == nil {
		return Pulled
	}
	return e.Copies(p)
}

// InStep says whether all workers are at one clock whenever a version is made, and keep no copies: then each version is
// a cut.
func (e Entry) InStep(c Common, p Params) bool {
	if e.Behind || e.CopiesOf(p) != Pulled || !e.Whole(c, p) {
		return false
	}
	lead, bounded := e.LeadMax(p)
	return bounded && lead == 0
}

// Share is the weight of a push's mean in its commit, where each push is a commit: weight, by default 1/N.
func (c Common) Share(workers int) float64 {
	if c.Weight > 0 {
		return c.Weight
	}
	return 1 / float64(workers)
}
