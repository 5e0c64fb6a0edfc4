// Package sim is the engine of the simulator. It drives the Worker and Server nodes of internal/core over virtual time, on one
// goroutine and without a clock. The cluster is modelled, the decisions are those of a real run. The same options and seed give the
// same run, bit for bit.
//
//	until all nodes are done: take the next event, step its node with it; each effect makes events of later times
//
// Read sim.go first (the loop), then queue.go and net.go (events and transfers), worker.go and server.go (effects), compute.go (how long
// a worker computes). In timing mode there are no parameters and gradients, only their sizes. Every result lists its models with their
// numbers (Summary.CostModel), and is labelled "simulated".
//
// The other rooms lie above this one, and it knows none of them. internal/sim/check hears what happens as an Observer and ends a run
// that breaks a law: who shows a result to people runs check.Run. internal/sim/real computes real gradients as Values; these change no
// decision, except for schemes that use norms. internal/sim/calibrate fits the models to a real run. They see a run on its way through
// the methods of Simulation (rooms.go).
package sim

import (
	"fmt"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/core/servernode"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/build"
	"fluentps/internal/policy/work"
	"fluentps/internal/policy/work/code"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/records"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/show/timeline"
)

// Options determine a run completely.
type Options struct {
	Config     *configs.Config // Simulate holds the models, Simulate.Workers the workers, Cluster.Servers the servers
	Plan       *shard.Plan     // cut for shard.Serving of Config.Cluster.Servers
	Rows       int             // training rows: the samples of an epoch
	Losses     []Loss
	Joins      []Join
	Pauses     []Pause
	Traces     configs.Traces // of the faults that replay a run
	Record     work.Record    // what was measured in a run whose batches come again; nil: none is replayed
	Axes       build.Axes     // policies that are not those of the configuration; tests have some
	CheckEvery int64          // node steps between two checks of a node's invariants; 0: only at the end
	Replay     string         // the command that repeats this run, for the report of a failure

	// Values make the parameters and gradients of the run when all nodes are made; nil: timing mode. Observer then makes who hears what
	// happens in the run; nil: nobody does.
	Values   func(*Simulation) (Values, error)
	Observer func(*Simulation) (Observer, error)

	// Iterations get the times of the iterations of each worker; nil: nobody wants them.
	Iterations []timings.Recorder

	Timeline bool // Result.Timeline is wanted

	// Decided gets the decisions of the schemes of all servers; may be nil.
	Decided servernode.Decided

	// Computed is called for every iteration that a worker has computed, with the virtual times of its start and end; may
	// be nil.
	Computed func(worker int, iter int64, from, until time.Duration)

	// Dealt is called for every assignment after the first, where batches change; may be nil.
	Dealt func(work.Assignment)
}

// Loss is the death of a worker: the worker stops, its messages in flight are lost, and the servers learn of the death.
type Loss struct {
	Worker int
	At     time.Duration
}

// Pause is a pause of a worker: it computes nothing, but its messages move.
type Pause struct {
	Worker  int
	At, For time.Duration
}

// Result is the result of a run.
type Result struct {
	Summary  *metrics.Summary
	Steps    int64          // node steps on a push, a pull or a reply
	Trace    uint64         // hash of every input and effect of every node with its time
	Delayed  int64          // delayed pulls, over all shards
	Leads    []metrics.Hist // per shard: c - v of its replies
	Lags     []metrics.Hist // per shard: c - clock of the copy with which a worker starts iteration c; by check.Run only
	Ages     []metrics.Hist // per shard: v - clock of that copy, which a pull would have gained then; by check.Run only
	Stale    []metrics.Hist // per shard: version at commit minus version at pull
	Lost     int            // deaths of workers
	Joined   int            // workers that rejoined
	Duration time.Duration  // virtual, from the first pull until the last worker is done
	Timeline []*timeline.Rank
	Roles    []string // of the ranks; with Options.Timeline only

	// The next fields are set with real gradients only.
	Parameters []float32        // final, in model order
	Records    []records.Record // one per evaluation; their times are virtual
	LeftOut    int              // snapshots of a shard that were not evaluated for lack of memory
}

// Failure is a run that broke a law, because of a bug in fluentps. Its text ends with the command that repeats the run.
type Failure struct {
	At     time.Duration // virtual
	What   string
	Replay string
}

func (f *Failure) Error() string {
	text := fmt.Sprintf("simulated run failed at %v of virtual time: %s", f.At, f.What)
	if f.Replay != "" {
		text += "\n  to reproduce it: " + f.Replay
	}
	return text
}

// Simulation is a run on its way.
type Simulation struct {
	o         Options
	cfg       *configs.Config
	plan      *shard.Plan
	roles     shard.Roles
	now       int64 // virtual nanoseconds
	ended     int64 // when the last worker finished or died
	latency   int64 // of the network
	q         queue
	traffic   traffic
	workers   []worker
	servers   []server
	tallies   []tally       // per shard
	stages    stages        // of an iteration
	undone    int           // nodes that are neither done nor dead, and future joins
	out       []core.Effect // of the present step
	policies  policies
	observer  Observer
	values    Values // nil in timing mode
	broken    string // the first law that was broken; "": none
	counts    counts
	changes   []metrics.Change
	timelines []*timeline.Rank // of the ranks; nil: none is wanted
}

// policies decide beside the nodes.
type policies struct {
	scheduler *core.Scheduler   // of the barrier; nil but for baseline pslite
	dealer    *work.Coordinator // nil: batches never change
	fragments *shard.Fragments  // nil: all shards are exchanged together
	code      *code.Code        // nil: pushes are not coded
	axes      build.Axes        // that say which samples the workers compute; the observer hears of them
}

// counts are of the whole run.
type counts struct {
	steps  int64  // of nodes, on a push, a pull or a reply
	trace  uint64 // hash of all inputs and effects with their times
	lost   int    // deaths of workers
	joined int    // workers that rejoined
}

// Run simulates a run.
func Run(o Options) (*Result, error) {
	if o.Config.Baseline == configs.BaselineAllreduce {
		return runAllReduce(o)
	}
	s, err := New(o)
	if err != nil {
		return nil, err
	}
	return s.Run()
}

// Run simulates until every node is done.
func (s *Simulation) Run() (res *Result, err error) {
	defer func() {
		if p := recover(); p != nil { // the panic of a node is a failure of the run, too
			res, err = nil, s.failure(fmt.Sprint(p))
		}
	}()
	for s.undone > 0 || s.traffic.moving > 0 {
		if !s.Next() {
			return nil, s.failure(s.stuck())
		}
		if s.broken != "" {
			return nil, s.failure(s.broken)
		}
	}
	if s.observer.End(); s.broken != "" {
		return nil, s.failure(s.broken)
	}
	if res = s.result(); s.broken != "" { // in the last evaluation
		return nil, s.failure(s.broken)
	}
	return res, nil
}

func (s *Simulation) failure(what string) *Failure {
	return &Failure{At: time.Duration(s.now), What: what, Replay: s.o.Replay}
}

// begin makes the initial events.
func (s *Simulation) begin() {
	for w := range s.workers {
		s.q.after(0, 0, evBegin, int32(w), 0)
	}
	for _, l := range s.o.Losses {
		s.q.after(0, int64(l.At), evLost, int32(l.Worker), 0)
	}
	s.undone += len(s.o.Joins)
	for _, j := range s.o.Joins {
		s.q.after(0, int64(j.At), evJoin, int32(j.Worker), 0)
	}
	for i, p := range s.o.Pauses {
		s.q.after(0, int64(p.At), evPause, int32(p.Worker), int32(i))
	}
	if d := s.cfg.Train.Stop.Time; d > 0 {
		s.q.after(0, int64(d), evStop, 0, 0)
	}
}

// Next handles the next event, and returns false if there is none. At the same time, events come before the ends of transfers, and
// these before changes of the shares of the network.
func (s *Simulation) Next() bool {
	e, from := s.q.first()
	if e == nil || e.at > s.now {
		s.traffic.net.settle(s.now)
		if at, ok := s.traffic.net.next(); ok && (e == nil || at < e.at) {
			s.now = max(s.now, at)
			s.traffic.net.finished(s.now, s.sent)
			return true
		}
		if e == nil {
			return false
		}
		s.now = e.at
	}
	ev := s.q.pop(from)
	switch ev.kind {
	case evBegin:
		s.stepWorker(ev.node, core.Input{Kind: core.Begin})
	case evComputed:
		s.computed(ev.node, ev.arg)
	case evLost:
		s.lose(ev.node)
	case evJoin:
		s.rejoin(ev.node)
	case evMeasured:
		s.measured(ev.node, ev.arg == 1)
	case evDealt:
		s.takesBatch(ev.node, work.Answer(ev.arg))
	case evPeerLost:
		s.peerLost(ev.node, ev.arg)
	case evPause:
		s.pause(ev.node, s.o.Pauses[ev.arg])
	case evSent:
		s.sent(ev.arg)
	case evControl:
		s.arrived(ev)
	case evLanded:
		s.landed(ev)
	default: // an event of a server
		s.serve(ev)
	}
	return true
}
