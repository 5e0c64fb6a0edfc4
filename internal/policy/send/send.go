// Package send is the send axis: when and in what order the pieces of a worker's pushes leave, and the pieces of a
// server's replies.
//
// A Policy is a pure state machine with the Step shape of the schemes. It is told which pieces its node has ready and
// which have left, and answers with the pieces that may leave now: it releases them. It knows destinations (a worker's
// servers, a server's workers) and decides for each of them alone. What it holds back for a destination depends on what
// has left for that destination, and never on a reply (the law "push all, then wait").
//
// R2SP's slots, its even gap between the workers' pushes, are not a policy here. The servers grant them, one rotation
// for all workers, so they come with sync: {scheme: r2sp} (ps/scheme/r2sp.go, internal/core/workernode/grants.go). A policy then orders
// the granted pieces.
package send

import (
	"fmt"
	"time"

	"fluentps/internal/policy/named"
	"fluentps/internal/policy/terms"
)

// EventKind says what happened.
type EventKind uint8

const (
	Handed    EventKind = iota // Piece may leave for To as far as its node is concerned: its numbers are final
	Sent                       // Piece has left for To: its buffer is free again
	Forgotten                  // To is gone: discard the pieces that wait for it; pieces in flight will still be Sent
	Started                    // a worker starts an iteration, at At
)

// Event is one input. Piece is an index into the plan's pieces, Layer its layer in forward order, Shard the unit that a
// server answers as one, Bytes the piece's length. Only the fields that Kind names are set.
type Event struct {
	Kind  EventKind
	Piece int32
	Layer int32
	Shard int32
	To    int32 // index of the destination, from 0
	Bytes int64
	At    time.Duration
}

// Policy decides for one node.
type Policy interface {
	Step(ev Event, out []int32) []int32 // appends the pieces that may leave for ev.To now, in order
	Held() int                          // pieces handed that were neither released nor forgotten
	fmt.Stringer
}

// Spec is the order, and what belongs to it. A policy heeds no key but those that its Entry lists.
type Spec struct {
	Order   string `yaml:"order" values:"@orders" doc:"the order in which a worker's pieces leave"`
	Window  int64  `yaml:"window" min:"0B" max:"1048576GiB" unit:"bytes" when:"order=auto,fifo,priority,aligned" doc:"bytes in flight between a worker and a server, each way, while others wait; 0B: what the link between hosts holds, else for priority two of the largest pieces and for fifo any number"`
	Credit  int64  `yaml:"credit" min:"0B" max:"1048576GiB" unit:"bytes" when:"order=credit" doc:"pieces leave while fewer bytes than that are in flight between a worker and a server, each way; 0B: the window of a thin link between hosts, else 16MB"`
	Tune    Tune   `yaml:"tune"`
	Overlap bool   `yaml:"overlap" doc:"a piece leaves while backward goes on, and forward starts on a layer when its parameters are there; false: the exchange begins when backward is over, and ends before the next iteration begins"`
}

// Defaults is what is sent how where nothing is said.
func Defaults() Spec {
	return Spec{Order: All[0].Name, Tune: Tune{Points: 15, Steps: 100}, Overlap: true}
}

// Options are what a policy is made from: the keys under send:, and facts about its node.
type Options struct {
	Spec
	Largest int64   // bytes on the wire of the largest piece that the policy may be handed
	Windows []int64 // by destination, in place of Window where that is 0; nil: none
	Seed    uint64  // of the run
	Node    uint64  // the node that the policy belongs to: generators follow from (Seed, Node)
}

// CreditOf fills in what the configuration leaves open about the credit. The search begins with the window of a thin
// link, which other orders would have, so that it ends with steps as short as theirs, or shorter. ByteScheduler tries
// credits for 10 to 100 Gbit/s.
func (o *Options) CreditOf() (credit int64, tune Tune) {
	credit, tune = o.Credit, o.Tune
	least, first, most := int64(4e6), int64(16e6), int64(64e6)
	if len(o.Windows) > 0 {
		least, first, most = o.Windows[0], o.Windows[0], 32*o.Windows[0]
	}
	if credit == 0 {
		credit = first
	}
	if tune.Min == 0 {
		tune.Min = least
		if tune.Max > 0 {
			tune.Min = min(least, tune.Max)
		}
	}
	if tune.Max == 0 {
		tune.Max = max(most, tune.Min)
	}
	return credit, tune
}

// windowTo is the window of a destination; 0: none.
func (o *Options) windowTo(to int32) int64 {
	if o.Window == 0 && int(to) < len(o.Windows) {
		return o.Windows[to]
	}
	return o.Window
}

// newAuto and newAutoReply go by whether the link wants windows.
func newAuto(o Options) Policy {
	if len(o.Windows) > 0 {
		return newAligned(o)
	}
	return newFifo(o)
}

func newAutoReply(o Options) Policy {
	if len(o.Windows) > 0 {
		return newPriorityReply(o)
	}
	return newFifoReply(o)
}

// Entry is one row of the table.
type Entry struct {
	Name  string
	Rule  string // one line
	Paper string // source with its evidence tag
	Keys  []string
	New   func(Options) Policy // makes a worker's policy. It finishes a shard that it has begun: no part of a shard is answered earlier
	// Reply makes a server's policy, for its replies to all workers. It returns nil where a reply leaves whole, at once.
	Reply func(Options) Policy
	Says  terms.Says
}

// Facts lists what holds of a run with the policy.
func (e Entry) Facts() []terms.Fact { return e.Says.Facts }

// Terms are what the policy does not go with.
func (e Entry) Terms() []terms.Term { return e.Says.Terms }

// Stated are those of the terms that this policy may break.
func (e Entry) Stated() []terms.Term { return terms.Of(e.Terms(), e.Facts()) }

// All lists the policies of this version.
var All = named.Table[Entry]{
	{Name: "auto", Rule: "aligned over a thin link between hosts, where layers wait for each other; else fifo",
		Paper: "ours: an order costs nothing where a window is needed anyway", Keys: []string{"window"}, New: newAuto, Reply: newAutoReply},
	{Name: "fifo", Says: terms.Says{Papers: []terms.Paper{}},
		Rule: "a piece leaves when its gradient is ready and it fits into the window of bytes in flight to " +
			"its server", Paper: "FluentPS (Cluster 2019), sPush as released [C]; the window is ours",
		Keys: []string{"window"}, New: newFifo, Reply: newFifoReply},
	{Name: "priority", Says: terms.Says{Papers: terms.Cite("jayarajan2019priority")},
		Rule: "pieces of the first layers leave first, but none interrupts a shard; the others wait " +
			"until they fit into the window of bytes in flight to their server",
		Paper: "P3: priority-based parameter propagation (Jayarajan et al., MLSys 2019) [A]; its window is one slice, " +
			"ours two of the largest pieces; a slice is a shard and a piece in one",
		Keys: []string{"window"}, New: newPriority, Reply: newPriorityReply},
	{Name: "aligned", Rule: "as priority when backward is over; until then workers that differ by a little choose the " +
		"same shards, so that servers can answer them",
		Paper: "ours, after P3: of the shards that became ready meanwhile, the one at the place with the largest power of two as a factor",
		Keys:  []string{"window"}, New: newAligned, Reply: newPriorityReply},
	{Name: "credit", Says: terms.Says{Papers: terms.Cite("peng2019generic")},
		Rule: "as priority, with so many bytes in flight as make the shortest steps: found by a Bayesian " +
			"search while the run goes on",
		Paper: "ByteScheduler (Peng et al., SOSP 2019) [A]; a credit per server and not per worker, and the details of the search, are ours [R]",
		Keys:  []string{"credit", "tune"}, New: newCredit, Reply: newFixedCredit},
}

// Key is the name in the YAML.
func (e Entry) Key() string { return e.Name }
