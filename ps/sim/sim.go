// Package sim drives the Worker and Server nodes of ps/core over virtual time, on one goroutine and without a clock. The cluster is
// modelled, the decisions are those of a real run. The same options and seed give the same run, bit for bit.
//
// In timing mode there are no parameters and gradients, only their sizes. With real gradients (Options.Gradients) the messages
// carry values, and the result has the accuracy against virtual time. Values change no decision, except for schemes that use
// norms. Every result lists its models with their numbers (Summary.CostModel), and is labelled "simulated".
//
//	until all nodes are done: take the next event, step its node with it; each effect makes events of later times
//
// A checker (check.go) counts the events of a run independently of the nodes, and fails the run if a law is broken.
package sim

import (
	"fmt"
	"time"

	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/ps/build"
	"fluentps/ps/core"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
	"fluentps/ps/timeline"
	"fluentps/ps/work"
	"fluentps/ps/work/code"
)

// Options determine a run completely.
type Options struct {
	Config     *configs.Config // Simulate holds the models, Simulate.Workers the workers, Cluster.Servers the servers
	Plan       *shard.Plan     // cut for shard.Serving of Config.Cluster.Servers
	Rows       int             // training rows: the samples of an epoch
	Losses     []Loss
	Joins      []Join
	Pauses     []Pause
	Gradients  *Gradients     // nil: timing mode
	Traces     configs.Traces // of the faults that replay a run
	Record     work.Record    // what was measured in a run whose batches come again; nil: none is replayed
	Axes       build.Axes     // policies that are not those of the configuration; tests have some
	CheckEvery int64          // node steps between two checks of a node's invariants; 0: only at the end
	Replay     string         // the command that repeats this run, for the report of a failure

	// Iterations get the times of the iterations of each worker; nil: nobody wants them.
	Iterations []metrics.Recorder

	Timeline bool // Result.Timeline is wanted

	// Decided gets the decisions of the schemes of all servers; may be nil.
	Decided core.Decided

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
	Lags     []metrics.Hist // per shard: c - clock of the copy with which a worker starts iteration c
	Ages     []metrics.Hist // per shard: v - clock of that copy: the clocks that a pull at that moment would have gained
	Stale    []metrics.Hist // per shard: version at commit minus version at pull
	Lost     int            // deaths of workers
	Joined   int            // workers that rejoined
	Duration time.Duration  // virtual, from the first pull until the last worker is done
	Timeline []*timeline.Rank
	Roles    []string // of the ranks; with Options.Timeline only

	// The next fields are set with real gradients only.
	Parameters []float32        // final, in model order
	Records    []metrics.Record // one per evaluation; their times are virtual
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

// simulation is the state of a run.
type simulation struct {
	o         Options
	cfg       *configs.Config
	plan      *shard.Plan
	roles     shard.Roles
	now       int64 // virtual nanoseconds
	ended     int64 // when the last worker finished or died
	latency   int64
	q         queue
	net       *network
	workers   []worker
	servers   []server
	tallies   []tally // per shard
	messages  slab[message]
	transfers slab[transfer]
	replies   slab[transfer]       // replies that have left, but the server does not know yet
	ahead     map[[2]int32][]int32 // by shard and worker: landed pieces of pushes that are not staged
	moving    int                  // transfers that have not landed
	undone    int                  // nodes that are neither done nor dead, and future joins
	lost      int
	joined    int
	out       []core.Effect // scratch
	check     *checker
	real      *floats // nil in timing mode
	steps     int64
	trace     uint64
	passes    passes
	scheduler *core.Scheduler   // with baseline pslite
	dealer    *work.Coordinator // nil: batches never change
	changes   []metrics.Change
	fragments *shard.Fragments // nil: all shards are exchanged together
	code      *code.Code       // nil: pushes are not coded
	timelines []*timeline.Rank // of the ranks; nil: none is wanted
	axes      build.Axes       // policies that say which samples the workers compute, watched by the checker
}

// transfer is the bytes of a message in flight: a piece of a push, a whole reply, a piece of a reply, or the keys of a pull.
type transfer struct {
	reply          bool
	asks           bool   // the keys of a pull, whose message is in slot piece
	apart          bool   // one piece of a reply
	published      bool   // a reply without a pull
	life           uint16 // of the worker
	worker, server int32
	shard, piece   int32
	iter           int64 // of a push
	buf            int32
	bytes          int64
}

// Run simulates until every node is done.
func Run(o Options) (*Result, error) {
	if o.Config.Baseline == configs.BaselineAllreduce {
		return runAllReduce(o)
	}
	s, err := newSimulation(o)
	if err != nil {
		return nil, err
	}
	s.begin()
	return s.run()
}

func (s *simulation) run() (res *Result, err error) {
	defer func() {
		if p := recover(); p != nil { // the panic of a node is a failure of the run, too
			res, err = nil, s.failure(fmt.Sprint(p))
		}
	}()
	for s.undone > 0 || s.moving > 0 {
		if !s.next() {
			return nil, s.failure(s.stuck())
		}
		if s.check.hasFailed() {
			return nil, s.failure(s.check.broken)
		}
		if s.real.hasFailed() {
			return nil, s.failure(s.real.failed)
		}
	}
	if s.check.end(s); s.check.broken != "" {
		return nil, s.failure(s.check.broken)
	}
	if res = s.result(); s.real.hasFailed() { // in the last evaluation
		return nil, s.failure(s.real.failed)
	}
	return res, nil
}

func (s *simulation) failure(what string) *Failure {
	return &Failure{At: time.Duration(s.now), What: what, Replay: s.o.Replay}
}

// begin makes the initial events.
func (s *simulation) begin() {
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

// next handles the next event, and returns false if there is none. At the same time, events come before the ends of transfers, and
// these before changes of the shares of the network.
func (s *simulation) next() bool {
	e, from := s.q.first()
	if e == nil || e.at > s.now {
		s.net.settle(s.now)
		if at, ok := s.net.next(); ok && (e == nil || at < e.at) {
			s.now = max(s.now, at)
			s.net.finished(s.now, s.sent)
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

// arrived delivers a control message. It drops messages from and to a dead worker.
func (s *simulation) arrived(ev event) {
	m := &s.messages.all[ev.arg]
	if m.head.Kind != wire.Closed && !s.workers[m.head.Worker].isAlive(m.life) {
		s.messages.take(ev.arg)
		return
	}
	if m.head.Kind == wire.Barrier {
		s.atBarrier(s.messages.take(ev.arg))
		return
	}
	if int(ev.node) >= len(s.workers) {
		s.serve(ev)
		return
	}
	head := s.messages.take(ev.arg).head
	if !s.workers[ev.node].dead { // else it is a message of another worker
		s.deliver(ev.node, head)
	}
}

// deliver gives a worker a message.
func (s *simulation) deliver(me int32, m wire.Header) {
	w := &s.workers[me]
	if m.Kind == wire.Reply || m.Kind == wire.Publish {
		w.lastHead = s.now
	}
	s.stepWorker(me, core.Input{Kind: core.Arrived, Msg: m})
}

// landed delivers the last byte of a transfer.
func (s *simulation) landed(ev event) {
	t := &s.transfers.all[ev.arg]
	s.moving--
	if !s.workers[t.worker].isAlive(t.life) {
		s.check.lost += t.bytes
		s.transfers.take(ev.arg)
		if s.real != nil {
			s.real.lost(ev.arg)
		}
		return
	}
	s.check.received += t.bytes
	if t.asks {
		s.serve(event{at: ev.at, kind: evControl, node: ev.node, arg: s.transfers.take(ev.arg).piece})
		return
	}
	if !t.reply {
		s.serve(ev)
		return
	}
	reply := s.transfers.take(ev.arg)
	if s.real != nil && !reply.published {
		s.real.replyLanded(&reply)
	}
	pieces := s.carries(&reply)
	if !reply.apart || s.check.pieceLanded(reply.shard, reply.worker) {
		s.check.replyLanded(reply.shard, reply.worker)
	}
	for _, p := range pieces {
		s.stepWorker(ev.node, core.Input{Kind: core.PieceLanded, Piece: p.ID})
	}
}

// carries lists the pieces of a reply that a transfer carries.
func (s *simulation) carries(t *transfer) []shard.Piece {
	if t.apart {
		return s.plan.Pieces[t.piece : t.piece+1]
	}
	return s.plan.Shards[t.shard].Pieces
}

// control sends a message to a node.
func (s *simulation) control(to int32, m message, local bool) {
	d := s.latency
	if local {
		d = 0
	}
	s.q.after(s.now, d, evControl, to, s.messages.put(m))
}

// move starts a transfer between a worker and a server, and returns its slot.
func (s *simulation) move(t transfer) int32 {
	s.moving++
	s.check.sent += t.bytes
	w, m := &s.workers[t.worker], &s.servers[t.server]
	i := s.transfers.put(t)
	switch {
	case w.host == m.host:
		s.q.after(s.now, nanoseconds(t.bytes, s.cfg.Simulate.Network.Memory), evSent, 0, i)
	case s.cfg.Simulate.Network.Bandwidth == 0:
		s.q.after(s.now, 0, evSent, 0, i)
	case t.reply:
		s.net.start(m.host, w.host, t.bytes, s.q.seq, i)
	default:
		s.net.start(w.host, m.host, t.bytes, s.q.seq, i)
	}
	return i
}

// sent handles the moment at which the last byte of a transfer has left.
func (s *simulation) sent(i int32) {
	t := s.transfers.all[i]
	server := int32(len(s.workers)) + t.server
	to, d := server, s.latency
	if t.reply {
		to = t.worker
	}
	if s.workers[t.worker].host == s.servers[t.server].host {
		d = 0
	}
	s.q.after(s.now, d, evLanded, to, i)
	if t.reply {
		if s.real != nil && s.workers[t.worker].isAlive(t.life) {
			s.real.replySent(&t)
		}
		s.serve(event{at: s.now, kind: evSent, node: server, arg: s.replies.put(t)})
	} else if !t.asks && s.workers[t.worker].isAlive(t.life) {
		if s.real != nil {
			s.real.pushLeft(i, &t)
		}
		s.stepWorker(t.worker, core.Input{Kind: core.PieceSent, Piece: t.piece})
	}
}

// nanoseconds is how long bytes take at a rate in bytes per second. A rate of 0 is without limit.
func nanoseconds(bytes, rate int64) int64 {
	if rate == 0 {
		return 0
	}
	return int64(float64(bytes) / float64(rate) * 1e9)
}
