// Package timeline records what each rank does when, and writes it as a trace in Chrome's format, which Perfetto opens
// (https://ui.perfetto.dev): pid is the rank, tid a stream of it, and arrows lead from a push to its fold and to the reply.
//
// Recording costs two readings of the clock and a place in memory that was allocated before training. It waits for nobody. What is kept
// is bounded twice: by iterations, in a way that all ranks agree on without a message, and by the number of events of a rank.
package timeline

import (
	"strings"
	"sync/atomic"
	"time"

	"fluentps/internal/core/shard"
)

// Limits bound a timeline.
type Limits struct {
	Events int   // of a rank; the rest is left out
	First  int64 // the first iterations are all recorded; then every tenth up to ten times as many, then every hundredth, and so on
}

// EventsMax bounds the events of all ranks together, EventsOfRankMax those of one, and FirstMax the iterations that are all recorded.
const (
	EventsMax       = 1_000_000
	EventsOfRankMax = 100_000
	eventsOfRankMin = 100
	FirstMax        = 200
)

// EventBytes is the memory of an event.
const EventBytes = 64

// sixDecades is, in tenths, how many times the first iterations are recorded until there have been a million times as many: each decade
// adds nine tenths.
const sixDecades = 10 + 6*9

// LimitsOf are the limits of a run with so many ranks, whose busiest rank has so many events in an iteration.
func LimitsOf(ranks, eventsPerIteration int) Limits {
	events := min(EventsOfRankMax, max(eventsOfRankMin, EventsMax/max(1, ranks)))
	first := int64(events) * 10 / sixDecades / int64(max(1, eventsPerIteration))
	return Limits{Events: events, First: min(FirstMax, max(1, first))}
}

// Samples says whether an iteration is recorded: the same on all ranks.
func (l Limits) Samples(iter int64) bool {
	stride := int64(1)
	for left := iter / max(1, l.First); left > 0; left /= 10 {
		stride *= 10
	}
	return iter%stride == 0
}

// Kind is what a span shows.
type Kind uint8

// The kinds of spans. What is a layer, a shard or a bucket.
const (
	Forward       Kind = iota // of a whole batch
	Backward                  // likewise
	LayerForward              // What: the layer
	LayerBackward             // likewise
	HandOver                  // of a layer's gradients to the transport
	Blocked                   // waiting for a reply, until its header arrived
	Read                      // after that, until the parameters were there
	Step                      // an optimizer step of the rank's own
	Task                      // computing that is not told apart
	Push                      // of a shard, from its first piece until the last one has left
	Pull                      // of a shard, from the request until the last piece has landed
	Sum                       // of a bucket, by all ranks
	Fold                      // of a push of Worker
	Commit                    // Iter: the new version
	Reply                     // to Worker
	kinds
)

// Streams are the rows of a rank. Spans of pushes, and of pulls, overlap each other, so these have several rows.
const (
	streamCompute = 1
	streamServe   = 2
	streamPush    = 100 // and the next lanesMax
	streamPull    = 200 // likewise
	lanesMax      = 64
)

// event is the place of a span. It is written once.
type event struct {
	ready atomic.Bool // the span is written
	span
}

// span is what a rank did in a time.
type span struct {
	kind       Kind
	arrow      bool // part of the way of a push
	stream     int16
	what       int32
	worker     int32
	iter       int64
	push       int64 // the iteration of the push whose way this is part of, if arrow
	from, till time.Duration
	tip        time.Duration // where the arrows of the push touch the span, if arrow; it lies within
}

// Rank records the spans of one rank. Its methods may be called by any goroutine; those of a nil Rank do nothing.
type Rank struct {
	Limits
	Names
	Me     int
	Now    func() time.Duration // the clock of all ranks
	events []event
	used   atomic.Int64 // may be larger than len(events)
}

// Names are what a rank's spans are called by.
type Names struct {
	Layers, Shards []string
	Workers        int
}

// NamesOf are the names of a plan. A layer is called by its first parameter, without the last word: fc1 of fc1.weight.
func NamesOf(p *shard.Plan, workers int) Names {
	n := Names{Workers: workers}
	for i := range p.Params {
		q := &p.Params[i]
		for len(n.Layers) <= q.Layer {
			n.Layers = append(n.Layers, "")
		}
		if name := q.Name; n.Layers[q.Layer] == "" {
			n.Layers[q.Layer] = name[:max(strings.LastIndexByte(name, '.'), 0)]
		}
	}
	for i := range p.Shards {
		n.Shards = append(n.Shards, p.Shards[i].Name)
	}
	return n
}

// NewRank makes the recorder of a rank, with its memory.
func NewRank(me int, names Names, l Limits, now func() time.Duration) *Rank {
	return &Rank{Limits: l, Names: names, Me: me, Now: now, events: make([]event, l.Events)}
}

func (r *Rank) add(s span) {
	i := r.used.Add(1) - 1
	if i >= int64(len(r.events)) {
		return
	}
	r.events[i].span = s
	r.events[i].ready.Store(true)
}

// LeftOut is the number of spans that found no room.
func (r *Rank) LeftOut() int64 { return max(0, r.used.Load()-int64(len(r.events))) }

// Len is the number of spans kept.
func (r *Rank) Len() int { return int(min(r.used.Load(), int64(len(r.events)))) }

// lanes finds a free row for a span that others may overlap.
type lanes struct{ until [lanesMax]time.Duration }

// take returns the row of a span, or -1: the span is not drawn. Spans are taken in the order of their ends, so a row is free for a span
// that begins after the last one there.
func (l *lanes) take(from, till time.Duration) int16 {
	for i := range l.until {
		if l.until[i] <= from {
			l.until[i] = till
			return int16(i)
		}
	}
	return -1
}

// spanMin keeps spans apart from the arrows that begin and end inside them.
const spanMin = 4 * time.Nanosecond
