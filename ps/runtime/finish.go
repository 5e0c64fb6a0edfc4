package runtime

import (
	"errors"
	"fmt"
	"time"

	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
	"fluentps/ps/workload"
)

// report is what every rank tells rank 0 when training is over.
type report struct {
	Server *serverReport
	Worker *workerReport
	Sent   int64
	Cross  int64 // of Sent, to other hosts
	Recv   int64
	Shared int64
	Drift  time.Duration // of the rank's clock against rank 0's since the start
	CPU    time.Duration // user and system time of the rank's process while it trained
}

type serverReport struct {
	Spans   metrics.Spans
	Shards  []shardReport
	Told    int64 // messages that rank 0 must have had
	Unheard unheard
}

type shardReport struct {
	State core.ShardState
	Stale metrics.Hist
	Lead  metrics.Hist
}

type workerReport struct {
	Worker     int // of a member, its leader's
	Index      int // among those that compute
	Member     bool
	Spans      metrics.Spans
	Iterations int64
	Samples    int64
	LeadMax    int64
	WaitedLast []int64
	Records    int   // iterations whose times are kept
	LeftOut    int64 // iterations whose times found no room
	Cached     []int64
	Pace       *metrics.Pace
	Hash       string // of the parameters, where every rank has all of them
}

func (r *rank) report() report {
	rep := report{Sent: r.net.Traffic.Sent, Cross: r.net.Traffic.Between, Recv: r.net.Traffic.Received, Shared: r.net.Traffic.Shared, CPU: r.cpuEnd - r.cpuStart}
	if s := r.server; s != nil {
		rep.Server = &serverReport{Spans: s.spans, Told: s.told, Unheard: s.unheard}
		for _, id := range s.node.Shards() {
			st := s.stores[id]
			rep.Server.Shards = append(rep.Server.Shards, shardReport{State: s.node.Shard(id), Stale: st.stale, Lead: st.lead})
		}
	}
	if w := r.worker; w != nil {
		rep.Worker = &workerReport{Worker: w.me, Index: w.index, Spans: w.spans, Samples: w.samples, Records: w.records.Len(), LeftOut: w.records.LeftOut, Pace: &w.pace}
		if n := w.node; n != nil {
			rep.Worker.Iterations, rep.Worker.LeadMax, rep.Worker.WaitedLast, rep.Worker.Cached = n.Started, n.LeadMax, n.WaitedLast, n.Cached
		} else {
			rep.Worker.Iterations, rep.Worker.Member = w.member.started, true
		}
		if r.reduce != nil {
			rep.Worker.Hash = r.reduce.hash()
		}
	}
	return rep
}

// closing is what rank 0 decides about the end.
type closing struct {
	Snapshots []int64 // to be evaluated by all ranks; -1 is the final version
	Code      int
	Forget    bool // there is nothing that replicas of checkpoints would be needed for
}

// finish gathers the reports, evaluates, and lets rank 0 write the summary. All ranks return the same code.
func (r *rank) finish() (Result, error) {
	own := r.report()
	var err error
	if own.Drift, err = r.t.SyncClock(); err != nil {
		return Result{}, err
	}
	reports, err := link.Gather(r.net, own)
	if err != nil {
		return Result{}, err
	}
	recorded, unwritten, err := r.iterations(reports)
	if err != nil {
		return Result{}, err
	}
	unsaved, err := r.saveLast()
	if err != nil {
		return Result{}, err
	}
	var c closing
	if r.me == 0 {
		if c.Snapshots, err = r.lead.toEvaluate(reports); err != nil {
			return Result{}, err
		}
	}
	if err := link.Spread(r.net, &c); err != nil {
		return Result{}, err
	}
	from := time.Now()
	sums, final, err := r.look(c.Snapshots)
	if err != nil {
		return Result{}, err
	}
	res := Result{}
	if r.me == 0 {
		res, err = r.conclude(reports, c.Snapshots, sums, final, time.Since(from), errors.Join(unwritten, unsaved))
		if err != nil {
			r.log.Error("not all was written: " + err.Error())
		}
		c.Code = res.Code
		c.Forget = unsaved == nil && (c.Code == CodeOK || r.lead.saved != "")
	}
	if err := link.Spread(r.net, &c); err != nil {
		return Result{}, err
	}
	res.Code, res.Iterations = c.Code, recorded
	r.log.Info("end", "code", c.Code)
	if err := r.closeReplicas(c.Forget); err != nil {
		return Result{}, err
	}
	r.over = true             // a Halt that is sent from here on might find nobody who receives it
	return res, r.t.Barrier() // nobody leaves while another may still fetch from it
}

// look evaluates, and gives rank 0 the final parameters in model order.
func (r *rank) look(indices []int64) ([]sum, []float32, error) {
	if len(indices) == 0 && r.me != 0 {
		return nil, nil, nil
	}
	e, err := newEvaluator(r)
	if err != nil {
		return nil, nil, err
	}
	defer e.close()
	var sums []sum
	if len(indices) > 0 {
		if sums, err = r.together(e, indices); err != nil {
			return nil, nil, err
		}
	}
	if r.me != 0 {
		return nil, nil, nil
	}
	here := false
	e.fetch(-1, func() { here = true })
	if err := r.net.Drive(func() bool { return here }); err != nil {
		return nil, nil, err
	}
	var flat []float32
	for _, v := range r.plan.Views(e.arena.F32()) {
		flat = append(flat, v...)
	}
	return sums, flat, nil
}

// toEvaluate lists the snapshots that every server kept and nobody has looked at, and the final version. It first
// waits until all that the servers said has arrived, and until rank 0 has looked its own evaluation to the end.
// A run that was cut short leaves at once.
func (l *lead) toEvaluate(reports []report) ([]int64, error) {
	var told int64
	for _, rep := range reports {
		if rep.Server != nil {
			told += rep.Server.Told
		}
	}
	from := 0
	if l.online != nil {
		l.online.closed = true
	}
	err := l.r.net.Drive(func() bool { return l.heard == told && (l.online == nil || !l.online.busy) })
	if err != nil || l.r.set.Test.Rows() == 0 || l.reason != "" {
		return nil, err
	}
	if l.online != nil {
		from = l.online.i
	}
	return append(l.complete[from:len(l.complete):len(l.complete)], -1), nil
}

// conclude is rank 0's: it makes and writes the summary and decides the exit code. The summary is the last file, so that one
// that says ok stands for all of them; with lacks, or a checkpoint that cannot be amended, it does not say so.
func (r *rank) conclude(reports []report, indices []int64, sums []sum, final []float32, evalTook time.Duration, lacks error) (Result, error) {
	l := r.lead
	if err := l.progress.Finish(); err != nil { // that there was nothing left to print says of room nothing
		l.told(&l.unprinted, err)
	}
	over := r.trainEnd - r.trainStart + r.before
	l.collect(reports)
	l.rest(over)
	s := r.summary(reports, final)
	rows := int64(r.set.Test.Rows())
	end := mark{at: over, samples: l.samples, iteration: l.iteration()}
	whole, concluded := len(sums) > 0 && len(sums) == len(indices), false
	for i, v := range sums {
		if k := indices[i]; k >= 0 {
			// A snapshot is cut per shard, so the last one may lack a few pushes of the final version with its count
			// of samples; the final version stands for both.
			if !whole || l.marks[k].samples != end.samples {
				l.evaluated(l.marks[k], v.loss, v.correct, rows)
			}
			continue
		}
		if n := len(l.evals); n > 0 && l.evals[n-1].Samples == end.samples {
			l.evals = l.evals[:n-1]
		}
		l.evaluated(end, v.loss, v.correct, rows)
		concluded = true
	}
	if s.Evaluations = l.evals; concluded {
		s.Conclude()
	}
	if l.online != nil {
		evalTook += l.online.took
	}
	s.EvalS = metrics.Float(evalTook.Seconds())
	res := Result{Summary: s, Dir: r.dir, Parameters: final}
	s.Finished = metrics.FinishedOK
	if goal := r.cfg.Train.Stop.Target; goal > 0 {
		s.Target = metrics.Some(goal)
		if l.target != nil {
			s.TargetReachedS = metrics.Some(*l.target)
		} else if r.o.Require {
			s.Finished = fmt.Sprintf("target %g not reached", goal)
			res.Code = CodeTarget
		}
	}
	if l.reason == "" {
		l.reason = r.differ(reports)
	}
	if l.reason != "" {
		s.Finished, res.Code = l.reason, l.code()
	}
	lacks = errors.Join(lacks, l.amend(), l.judgeLast())
	if lacks != nil && s.Finished == metrics.FinishedOK {
		s.Finished = "failed: " + lacks.Error()
	}
	r.over = true
	s.WallS = metrics.Float(time.Since(r.o.Start).Seconds())
	lacks = errors.Join(lacks, r.writeEnd(s))
	if lacks != nil && res.Code != CodeAgain { // which says that there is a checkpoint to go on from, whatever else is missing
		res.Code = CodeFailed
	}
	return res, lacks
}

func (r *rank) summary(reports []report, final []float32) *metrics.Summary {
	l := r.lead
	train := (r.trainEnd - r.trainStart).Seconds()
	s := &metrics.Summary{
		Name: r.cfg.Name, Mode: r.o.Mode, Servers: len(r.roles.Servers), Workers: len(r.roles.Workers),
		Iterations: l.iteration(), Updates: l.version, Samples: l.samples, TrainLoss: l.epoch.Value(), Seed: r.cfg.Seed,
		SetupS: metrics.Float(r.setupEnd.Sub(r.o.Start).Seconds()), TrainS: metrics.Float(train), SamplesPerS: metrics.Float(float64(l.samples-l.before) / train),
		CPUS:             metrics.Some(r.cpuOf(reports).Seconds()),
		Payload:          r.cfg.Payload.Summary(),
		ParametersSHA256: workload.HashOf(final), PerShard: make([]metrics.ShardSummary, len(r.plan.Shards)),
	}
	s.Unjudged(l.classes)
	if r.cfg.Train.Optimizer.L1 > 0 {
		s.Sparsity = metrics.SparsityOf(final)
	}
	if r.from != nil {
		s.Resumed = &metrics.Resumed{Checkpoint: r.from.dir, Iteration: r.from.manifest.Iteration, Samples: r.from.manifest.Samples, TrainedS: metrics.Float(r.before.Seconds()), Unrecorded: r.from.unrecorded}
	}
	if r.cfg.InRounds() || r.reduce != nil {
		s.Baseline, s.BaselineKeys = r.cfg.Baseline, r.cfg.BaselineKeys
	}
	if r.reduce != nil {
		s.PerShard = nil
	}
	if layout.Teams(r.cfg) {
		s.Hierarchy, s.Computing = r.cfg.Cluster.Hierarchy, len(r.computes)
	}
	var between int64
	var servers, workers []metrics.Spans
	for rank, rep := range reports {
		s.BytesSent += rep.Sent
		s.BytesReceived += rep.Recv
		s.BytesShared += rep.Shared
		s.ClockDriftNS = max(s.ClockDriftNS, rep.Drift.Abs().Nanoseconds())
		between += rep.Cross
		if rep.Server != nil {
			servers = append(servers, rep.Server.Spans)
			for _, sh := range rep.Server.Shards {
				r.sumShard(&s.PerShard[sh.State.ID], sh)
			}
		}
		if w := rep.Worker; w != nil {
			workers = append(workers, w.Spans)
			s.MaxLead = max(s.MaxLead, w.LeadMax)
			for id, n := range w.WaitedLast {
				s.PerShard[id].WaitedLast += n
				_, reply := r.plan.Shards[id].WireBytes()
				s.PerShard[id].AddCached(w.Cached[id], reply)
			}
			row := metrics.WorkerSummary{Worker: w.Worker, Rank: rank, Host: r.hosts[rank], Device: r.units[rank].Name, Iterations: w.Iterations, Samples: w.Samples,
				Pace: w.Pace, ComputeS: metrics.Float(w.Spans.Times[metrics.Compute].Seconds()), BlockedS: metrics.Float(w.Spans.Times[metrics.Blocked].Seconds()), MaxLead: w.LeadMax}
			if w.Member { // behind its leader's, because a leader is the first rank of its team
				s.PerWorker[w.Worker].AddMember(row)
			} else {
				s.PerWorker = append(s.PerWorker, row)
			}
		}
	}
	if r.reduce == nil { // what moves inside a collective is the MPI library's affair
		s.BytesBetween = &between
	}
	s.PerRole = map[string]metrics.RoleTimes{metrics.RoleServer: metrics.OverRanks(servers), metrics.RoleWorker: metrics.OverRanks(workers)}
	return s
}

func turnCounts(t core.Turns) metrics.TurnCounts {
	return metrics.TurnCounts{DelayedGrants: t.Delayed, DelayedGrantsS: metrics.Float(t.DelayedFor.Seconds()), MissedTurns: t.Missed, Strays: t.Strays}
}

func (r *rank) sumShard(s *metrics.ShardSummary, rep shardReport) {
	sh := &r.plan.Shards[rep.State.ID]
	st := rep.State.Stats
	s.Shard, s.Name, s.Scheme, s.Server, s.Bytes = int(sh.ID), sh.Name, r.cfg.Sync[sh.Rule].Schemes(), int(sh.Server), sh.Bytes()
	s.Pushes, s.Pulls, s.DelayedPulls, s.DelayedS = st.Pushes, st.Pulls, st.Delayed, metrics.Float(st.DelayedFor.Seconds())
	s.Dropped, s.DroppedFor, s.Skipped, s.Duplicates = st.Dropped, st.Reasons(), st.Skipped, st.Duplicates
	s.SetHists(&rep.Stale, &rep.Lead)
	s.Published, s.TurnCounts = st.Published, turnCounts(st.Turns)
}
