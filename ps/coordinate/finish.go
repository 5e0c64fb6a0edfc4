package coordinate

import (
	"errors"
	"fmt"
	"time"

	"fluentps/ps/core"
	"fluentps/ps/evaluate"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
	"fluentps/ps/serve"
	"fluentps/ps/station"
	"fluentps/ps/train"
	"fluentps/ps/workload"
)

// Result is what a run came to. All but Code are rank 0's only.
type Result struct {
	Code       int
	Summary    *metrics.Summary
	Dir        string                // run folder, empty if none was asked for
	Parameters []float32             // final, in model order
	Iterations [][]metrics.Iteration // of each worker, the first layout.RecordsMax; only if Options asked for them
}

// report is what every rank tells rank 0 when training is over.
type report struct {
	Server *serve.Report
	Worker *train.Report
	Sent   int64
	Cross  int64 // of Sent, to other hosts
	Recv   int64
	Shared int64
	Drift  time.Duration // of the rank's clock against rank 0's since the start
	CPU    time.Duration // user and system time of the rank's process while it trained
}

func (r *Run) report() report {
	rep := report{Sent: r.station.Net.Traffic.Sent, Cross: r.station.Net.Traffic.Between, Recv: r.station.Net.Traffic.Received, Shared: r.station.Net.Traffic.Shared, CPU: r.CPUEnd - r.CPUStart}
	if r.Server != nil {
		rep.Server = r.Server.Report()
	}
	if r.Worker != nil {
		rep.Worker = r.Worker.Report()
		if r.Reduce != nil {
			rep.Worker.Hash = r.Reduce.Hash()
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

// Finish gathers the reports, evaluates, and lets rank 0 write the summary. All ranks return the same code.
func (r *Run) Finish() (Result, error) {
	own := r.report()
	var err error
	if own.Drift, err = r.station.Transport.SyncClock(); err != nil {
		return Result{}, err
	}
	reports, err := link.Gather(r.station.Net, own)
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
	if r.station.Me == 0 {
		if c.Snapshots, err = r.Lead.toEvaluate(reports); err != nil {
			return Result{}, err
		}
	}
	if err := link.Spread(r.station.Net, &c); err != nil {
		return Result{}, err
	}
	from := time.Now()
	sums, final, err := r.look(c.Snapshots)
	if err != nil {
		return Result{}, err
	}
	res := Result{}
	if r.station.Me == 0 {
		res, err = r.conclude(reports, c.Snapshots, sums, final, time.Since(from), errors.Join(unwritten, unsaved))
		if err != nil {
			r.station.Log.Error("not all was written: " + err.Error())
		}
		c.Code = res.Code
		c.Forget = unsaved == nil && (c.Code == station.CodeOK || r.Lead.kept.saved != "")
	}
	if err := link.Spread(r.station.Net, &c); err != nil {
		return Result{}, err
	}
	res.Code, res.Iterations = c.Code, recorded
	r.station.Log.Info("end", "code", c.Code)
	if err := r.Replicas.Close(c.Forget); err != nil {
		return Result{}, err
	}
	r.Over = true                             // a Halt that is sent from here on might find nobody who receives it
	return res, r.station.Transport.Barrier() // nobody leaves while another may still fetch from it
}

// look evaluates, and gives rank 0 the final parameters in model order.
func (r *Run) look(indices []int64) ([]evaluate.Sum, []float32, error) {
	if len(indices) == 0 && r.station.Me != 0 {
		return nil, nil, nil
	}
	e, err := evaluate.New(r.station, evaluate.Options{Device: r.o.Device, Halted: &r.Halted})
	if err != nil {
		return nil, nil, err
	}
	defer e.Close()
	var sums []evaluate.Sum
	if len(indices) > 0 {
		if sums, err = e.Together(indices, func() bool { return r.Lead.end.reason == "" }); err != nil {
			return nil, nil, err
		}
	}
	if r.station.Me != 0 {
		return nil, nil, nil
	}
	if err := e.Fetched(-1); err != nil {
		return nil, nil, err
	}
	var flat []float32
	for _, v := range r.station.Plan.Views(e.Params()) {
		flat = append(flat, v...)
	}
	return sums, flat, nil
}

// toEvaluate lists the snapshots that every server kept and nobody has looked at, and the final version. It first
// waits until all that the servers said has arrived, and until rank 0 has looked its own evaluation to the end.
// A run that was cut short leaves at once.
func (l *Lead) toEvaluate(reports []report) ([]int64, error) {
	var told int64
	for _, rep := range reports {
		if rep.Server != nil {
			told += rep.Server.SentToRank0
		}
	}
	from := 0
	if l.looks.online != nil {
		l.looks.online.closed = true
	}
	err := l.station.Net.Drive(func() bool { return l.heard == told && (l.looks.online == nil || !l.looks.online.busy) })
	if err != nil || l.station.Set.Test.Rows() == 0 || l.end.reason != "" {
		return nil, err
	}
	if l.looks.online != nil {
		from = l.looks.online.i
	}
	return append(l.looks.complete[from:len(l.looks.complete):len(l.looks.complete)], -1), nil
}

// conclude is rank 0's: it makes and writes the summary and decides the exit code. The summary is the last file, so that one
// that says ok stands for all of them; with lacks, or a checkpoint that cannot be amended, it does not say so.
func (r *Run) conclude(reports []report, indices []int64, sums []evaluate.Sum, final []float32, evalTook time.Duration, lacks error) (Result, error) {
	l := r.Lead
	if err := l.out.progress.Finish(); err != nil { // that there was nothing left to print says of room nothing
		l.told(&l.out.unprinted, err)
	}
	over := r.TrainEnd - r.station.Began + r.station.Before
	l.collect(reports)
	l.rest(over)
	s := r.summary(reports, final)
	rows := int64(r.station.Set.Test.Rows())
	end := mark{at: over, samples: l.counts.samples, iteration: l.iteration()}
	whole, concluded := len(sums) > 0 && len(sums) == len(indices), false
	for i, v := range sums {
		if k := indices[i]; k >= 0 {
			// A snapshot is cut per shard, so the last one may lack a few pushes of the final version with its count
			// of samples; the final version stands for both.
			if !whole || l.looks.marks[k].samples != end.samples {
				l.evaluated(l.looks.marks[k], v.Loss, v.Correct, rows)
			}
			continue
		}
		if n := len(l.looks.evals); n > 0 && l.looks.evals[n-1].Samples == end.samples {
			l.looks.evals = l.looks.evals[:n-1]
		}
		l.evaluated(end, v.Loss, v.Correct, rows)
		concluded = true
	}
	if s.Evaluations = l.looks.evals; concluded {
		s.Conclude()
	}
	if l.looks.online != nil {
		evalTook += l.looks.online.took
	}
	s.EvalS = metrics.Float(evalTook.Seconds())
	res := Result{Summary: s, Dir: r.Dir(), Parameters: final}
	s.Finished = metrics.FinishedOK
	if goal := r.station.Config.Train.Stop.Target; goal > 0 {
		s.Target = metrics.Some(goal)
		if l.looks.target != nil {
			s.TargetReachedS = metrics.Some(*l.looks.target)
		} else if r.o.Lead.Require {
			s.Finished = fmt.Sprintf("target %g not reached", goal)
			res.Code = station.CodeTarget
		}
	}
	if l.end.reason == "" {
		l.end.reason = r.differ(reports)
	}
	if l.end.reason != "" {
		s.Finished, res.Code = l.end.reason, l.code()
	}
	lacks = errors.Join(lacks, l.amend(), l.judgeLast())
	if lacks != nil && s.Finished == metrics.FinishedOK {
		s.Finished = "failed: " + lacks.Error()
	}
	r.Over = true
	s.WallS = metrics.Float(time.Since(r.o.Lead.Start).Seconds())
	lacks = errors.Join(lacks, r.writeEnd(s))
	if lacks != nil && res.Code != station.CodeAgain { // which says that there is a checkpoint to go on from, whatever else is missing
		res.Code = station.CodeFailed
	}
	return res, lacks
}

func (r *Run) summary(reports []report, final []float32) *metrics.Summary {
	l := r.Lead
	train := (r.TrainEnd - r.station.Began).Seconds()
	s := &metrics.Summary{
		Name: r.station.Config.Name, Mode: r.o.Mode, Servers: len(r.station.Roles.Servers), Workers: len(r.station.Roles.Workers),
		Iterations: l.iteration(), Updates: l.counts.version, Samples: l.counts.samples, TrainLoss: l.counts.epoch.Value(), Seed: r.station.Config.Seed,
		SetupS: metrics.Float(r.SetupEnd.Sub(r.o.Lead.Start).Seconds()), TrainS: metrics.Float(train), SamplesPerS: metrics.Float(float64(l.counts.samples-l.counts.before) / train),
		CPUS:             metrics.Some(r.cpuOf(reports).Seconds()),
		Payload:          r.station.Config.Payload.Summary(),
		ParametersSHA256: workload.HashOf(final), PerShard: make([]metrics.ShardSummary, len(r.station.Plan.Shards)),
	}
	s.Unjudged(l.looks.classes)
	if r.station.Config.Train.Optimizer.L1 > 0 {
		s.Sparsity = metrics.SparsityOf(final)
	}
	if r.From != nil {
		s.Resumed = &metrics.Resumed{Checkpoint: r.From.Dir, Iteration: r.From.Manifest.Iteration, Samples: r.From.Manifest.Samples, TrainedS: metrics.Float(r.station.Before.Seconds()), Unrecorded: r.From.Unrecorded}
	}
	if r.station.Config.InRounds() || r.Reduce != nil {
		s.Baseline, s.BaselineKeys = r.station.Config.Baseline, r.station.Config.BaselineKeys
	}
	if r.Reduce != nil {
		s.PerShard = nil
	}
	if layout.Teams(r.station.Config) {
		s.Hierarchy, s.Computing = r.station.Config.Cluster.Hierarchy, len(r.station.Computes)
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
				_, reply := r.station.Plan.Shards[id].WireBytes()
				s.PerShard[id].AddCached(w.Cached[id], reply)
			}
			row := metrics.WorkerSummary{Worker: w.Worker, Rank: rank, Host: r.station.Hosts[rank], Device: r.Units[rank].Name, Iterations: w.Iterations, Samples: w.Samples,
				Pace: w.Pace, ComputeS: metrics.Float(w.Spans.Times[metrics.Compute].Seconds()), BlockedS: metrics.Float(w.Spans.Times[metrics.Blocked].Seconds()), MaxLead: w.LeadMax}
			if w.Member { // behind its leader's, because a leader is the first rank of its team
				s.PerWorker[w.Worker].AddMember(row)
			} else {
				s.PerWorker = append(s.PerWorker, row)
			}
		}
	}
	if r.Reduce == nil { // what moves inside a collective is the MPI library's affair
		s.BytesBetween = &between
	}
	s.PerRole = map[string]metrics.RoleTimes{metrics.RoleServer: metrics.OverRanks(servers), metrics.RoleWorker: metrics.OverRanks(workers)}
	return s
}

func turnCounts(t core.Turns) metrics.TurnCounts {
	return metrics.TurnCounts{DelayedGrants: t.Delayed, DelayedGrantsS: metrics.Float(t.DelayedFor.Seconds()), MissedTurns: t.Missed, Strays: t.Strays}
}

func (r *Run) sumShard(s *metrics.ShardSummary, rep serve.ShardReport) {
	sh := &r.station.Plan.Shards[rep.State.ID]
	st := rep.State.Stats
	s.Shard, s.Name, s.Server, s.Bytes = int(sh.ID), sh.Name, int(sh.Server), sh.Bytes()
	s.Scheme, s.BoundKey = r.station.Config.Sync[sh.Rule].Schemes(), r.station.Config.Sync[sh.Rule].BoundKey()
	s.Pushes, s.Pulls, s.DelayedPulls, s.DelayedS = st.Pushes, st.Pulls, st.Delayed, metrics.Float(st.DelayedFor.Seconds())
	s.Dropped, s.DroppedFor, s.Skipped, s.Duplicates = st.Dropped, st.Reasons(), st.Skipped, st.Duplicates
	s.SetHists(&rep.Stale, &rep.Lead)
	s.Published, s.TurnCounts = st.Published, turnCounts(st.Turns)
}
