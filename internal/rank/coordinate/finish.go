package coordinate

import (
	"errors"
	"fmt"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/plan/layout"
	"fluentps/internal/plan/network"
	"fluentps/internal/rank/evaluate"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/serve"
	"fluentps/internal/rank/station"
	"fluentps/internal/rank/train"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
	"fluentps/internal/show/timeline"
	"fluentps/ps/workload"
)

// Result is the result of a run. All fields but Code are set on rank 0 only.
type Result struct {
	Code       int
	Summary    *metrics.Summary
	Dir        string                // run folder, "" if none was asked for
	Start      string                // token of this start
	Parameters []float32             // final, in model order
	Iterations [][]timings.Iteration // of each worker, the first layout.RecordsMax; set only if Options.Iterations
}

// report is what every rank reports to rank 0 at the end of training.
type report struct {
	Server *serve.Report
	Worker *train.Report
	Sent   int64
	Cross  int64 // bytes of Sent that went to other hosts
	Recv   int64
	Shared int64
	Drift  time.Duration // of the rank's clock against rank 0's since the start
	Clock  time.Duration // error of the rank's times against rank 0's clock
	CPU    time.Duration // user and system time of the rank's process while it trained
	Peak   int64         // the most memory of the rank's process at once, in bytes; 0: not known

	Timeline *timelineReport // nil: none was recorded
}

func (r *Run) report() report {
	rep := report{Sent: r.station.Net.Traffic.Sent, Cross: r.station.Net.Traffic.Between,
		Recv: r.station.Net.Traffic.Received, Shared: r.station.Net.Traffic.Shared, CPU: r.CPU.End - r.CPU.Start, Peak: processPeak()}
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
	Snapshots    []int64 // for all ranks to evaluate; -1 is the final version
	Code         int
	DropReplicas bool // the replicas of checkpoints are not needed any more
}

// Finish gathers the reports, evaluates, and has rank 0 write the summary. All ranks return the same code.
func (r *Run) Finish() (Result, error) {
	own := r.report()
	var err error
	if own.Drift, own.Clock, err = r.measureClock(); err != nil {
		return Result{}, err
	}
	if own.Timeline, err = r.endTimeline(own.Drift); err != nil {
		r.station.Log.Warn("this rank's timeline is not all in its part", "error", err)
	}
	reports, err := link.Gather(r.station.Net, own)
	if err != nil {
		return Result{}, err
	}
	if r.Lead != nil {
		r.Lead.nameOrigin(reports)
	}
	recorded, iterationsErr, err := r.iterations(reports)
	if err != nil {
		return Result{}, err
	}
	timelineErr, err := r.timeline(reports)
	if err != nil {
		return Result{}, err
	}
	saveErr, err := r.saveLast()
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
	sums, final, err := r.evaluateAtEnd(c.Snapshots)
	if err != nil {
		return Result{}, err
	}
	res := Result{}
	if r.station.Me == 0 {
		res, err = r.conclude(reports, c.Snapshots, sums, final, time.Since(from), errors.Join(iterationsErr, timelineErr, saveErr))
		if err != nil {
			r.station.Log.Error("some files were not written: " + err.Error())
		}
		c.Code = res.Code
		c.DropReplicas = saveErr == nil && (c.Code == station.CodeOK || r.Lead.checkpoints.final != "")
	}
	if err := link.Spread(r.station.Net, &c); err != nil {
		return Result{}, err
	}
	res.Code, res.Iterations = c.Code, recorded
	r.station.Log.Info("end", "code", c.Code)
	if err := r.Replicas.Close(c.DropReplicas); err != nil {
		return Result{}, err
	}
	r.EndDecided = true                       // a Halt sent from here on might find no receiver
	return res, r.station.Transport.Barrier() // no rank leaves while another may still fetch from it
}

// measureClock measures the rank's clock for the last time. It takes what the clock has gained on rank 0's off the starts of the rank's
// iterations, as if it went evenly. bound is the error that is left: that of the worse of the two measurements, and
// what the clock gained while the last one was made, for it is not known when in that time.
func (r *Run) measureClock() (drift, bound time.Duration, err error) {
	first, before := clockError(r.station.Transport), r.station.Transport.Now()
	if drift, err = r.station.Transport.SyncClock(); err != nil {
		return 0, 0, err
	}
	now := r.station.Transport.Now()
	bound = max(first, clockError(r.station.Transport)) + time.Duration(float64(drift.Abs())*float64(now-before)/float64(now))
	if r.Worker != nil && drift != 0 {
		clock := timeline.Clock{Drift: drift, Measured: now}
		since := r.station.Began - r.station.Before
		r.Worker.Records().Correct(func(start time.Duration) time.Duration { return clock.At(start+since) - since })
	}
	return drift, bound, nil
}

// clockError bounds the error of this rank's clock, as it was measured last.
func clockError(t comm.Transport) time.Duration {
	if c, ok := t.(comm.Clocked); ok {
		return c.ClockError()
	}
	return 0
}

// evaluateAtEnd evaluates snapshots, and returns the final parameters in model order on rank 0.
func (r *Run) evaluateAtEnd(indices []int64) ([]evaluate.Sum, []float32, error) {
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
	if err := e.FetchAndWait(-1); err != nil {
		return nil, nil, err
	}
	flat := make([]float32, 0, r.station.Plan.Arena) // growing would take as much again
	for _, v := range r.station.Plan.Views(e.Params()) {
		flat = append(flat, v...)
	}
	return sums, flat, nil
}

// toEvaluate lists the snapshots that every server kept and that were not evaluated, and the final version. It first waits
// until all messages of the servers have arrived, and for the evaluation in progress. A run that was cut short evaluates
// nothing.
func (l *Lead) toEvaluate(reports []report) ([]int64, error) {
	var sent int64
	for _, rep := range reports {
		if rep.Server != nil {
			sent += rep.Server.SentToRank0
		}
	}
	from := 0
	if l.evals.online != nil {
		l.evals.online.closed = true
	}
	err := l.station.Net.Drive(func() bool { return l.serverMessages == sent && (l.evals.online == nil || !l.evals.online.busy) })
	if err != nil || l.station.Set.Test.Rows() == 0 {
		return nil, err
	}
	if l.evals.online != nil {
		from = l.evals.online.nextIndex
	}
	if l.end.reason != "" {
		if lost := len(l.evals.complete) - from; lost > 0 {
			l.station.Log.Warn(metrics.Count(lost, "evaluation") +
				" of versions of this part of the run are not made, and a run that resumes does not have these versions: " +
				"evaluate.where: online makes evaluations during training")
		}
		return nil, nil
	}
	return append(l.evals.complete[from:len(l.evals.complete):len(l.evals.complete)], -1), nil
}

// conclude makes and writes the summary on rank 0, and decides the exit code. The summary is the last file to be written,
// so a summary that says ok vouches for all files; it does not say ok if there is a writeErr or the checkpoint could not be
// amended.
func (r *Run) conclude(reports []report, indices []int64, sums []evaluate.Sum, final []float32,
	evalTook time.Duration, writeErr error) (Result, error) {
	l := r.Lead
	if err := l.out.progress.Finish(); err != nil { // nil may mean that there was nothing to print, and does not end a failure
		l.noteFailure(&l.out.printFailing, err)
	}
	trainedFor := r.TrainEnd - r.station.Began + r.station.Before
	l.collect(reports)
	l.writeRest(trainedFor)
	s := r.summary(reports, final)
	end := mark{at: trainedFor, samples: l.counts.samples, iteration: l.iteration()}
	complete, hasFinal := len(sums) > 0 && len(sums) == len(indices), false
	for i, v := range sums {
		if k := indices[i]; k >= 0 {
			// A snapshot is taken per shard, so the last one may lack a few pushes of the final version although both
			// have the same count of samples; the final version stands for both.
			if !complete || l.evals.marks[k].samples != end.samples {
				l.evaluated(l.evals.marks[k], v)
			}
			continue
		}
		if n := len(l.evals.results); n > 0 && l.evals.results[n-1].Samples == end.samples {
			l.evals.results = l.evals.results[:n-1]
		}
		l.evaluated(end, v)
		hasFinal = true
	}
	s.Changes = l.changes
	if s.Evaluations = l.evals.results; hasFinal {
		s.Conclude()
	}
	if l.evals.online != nil {
		evalTook += l.evals.online.evalTime
	}
	s.EvalS = metrics.Float(evalTook.Seconds())
	res := Result{Summary: s, Dir: r.Dir(), Start: r.Token, Parameters: final}
	s.Finished = metrics.FinishedOK
	if goal := r.station.Config.Train.Stop.Target; goal > 0 {
		s.Target = metrics.Some(goal)
		if l.evals.targetReachedS != nil {
			s.TargetReachedS = metrics.Some(*l.evals.targetReachedS)
		} else if r.o.Lead.Require {
			s.Finished = fmt.Sprintf("target %g not reached", goal)
			res.Code = station.CodeTarget
		}
	}
	if worse := r.besideConstant(s); worse != "" && r.o.Lead.Require {
		s.Finished, res.Code = worse, station.CodeTarget
	}
	if l.end.reason == "" {
		l.end.reason = r.differingRanks(reports)
	}
	l.explainSignal()
	if l.end.reason != "" {
		s.Finished, res.Code = l.end.reason, l.code()
	}
	writeErr = errors.Join(writeErr, l.amend(), l.judgeLast())
	if writeErr != nil && s.Finished == metrics.FinishedOK {
		s.Finished = "failed: " + writeErr.Error()
	}
	r.EndDecided = true
	s.Checkpoint = l.endsIn()
	s.WallS = metrics.Float(time.Since(r.o.Lead.Start).Seconds())
	writeErr = errors.Join(writeErr, r.writeEnd(s))
	if writeErr != nil && res.Code != station.CodeAgain { // CodeAgain: the run can be resumed, whatever else is missing
		res.Code = station.CodeFailed
	}
	return res, writeErr
}

// countsOf makes a summary of what rank 0 knows by itself.
func (r *Run) countsOf(reports []report, final []float32) *metrics.Summary {
	l := r.Lead
	train := (r.TrainEnd - r.station.Began).Seconds()
	return &metrics.Summary{
		Job: metrics.Job{
			Name: r.station.Config.Name, Start: r.Token, Mode: r.o.Mode, Crowded: crowded(r.station.Transport),
			Servers: len(r.station.Roles.Servers), Workers: len(r.station.Roles.Workers),
		},
		Extent:  metrics.Extent{Iterations: l.iteration(), Updates: l.counts.version, Samples: l.counts.samples},
		Quality: metrics.Quality{TrainLoss: l.counts.epoch.Value()},
		Seed:    r.station.Config.Seed,
		Costs: metrics.Costs{
			SetupS: metrics.Float(r.SetupEnd.Sub(r.o.Lead.Start).Seconds()), TrainS: metrics.Float(train),
			SamplesPerS: metrics.Float(float64(l.counts.samples-l.counts.before) / train),
			CPUS:        metrics.Some(r.cpuTime(reports).Seconds()), Memory: r.memory(reports),
		},
		Work:             r.station.Config.WorkText(),
		Local:            r.station.Config.Local.Text(),
		Payload:          r.station.Config.Payload.Summary(),
		ParametersSHA256: workload.HashOf(final),
		PerShard:         make([]metrics.ShardSummary, len(r.station.Plan.Shards)),
	}
}

func (r *Run) summary(reports []report, final []float32) *metrics.Summary {
	s := r.countsOf(reports, final)
	s.Unjudged(r.Lead.evals.judge.Measure)
	if r.station.Config.Train.Optimizer.L1 > 0 {
		s.Sparsity = metrics.SparsityOf(final)
	}
	if r.From != nil {
		s.Resumed = &metrics.Resumed{Checkpoint: r.From.Dir, Iteration: r.From.Manifest.Iteration,
			Samples: r.From.Manifest.Samples, TrainedS: metrics.Float(r.station.Before.Seconds()), Unrecorded: r.From.Unrecorded}
	}
	if r.station.Config.InRounds() || r.Reduce != nil {
		s.Baseline, s.BaselineKeys = r.station.Config.Baseline, r.station.Config.BaselineKeys
	}
	if r.Reduce != nil {
		s.BaselineAlgorithm = r.algorithm()
		s.PerShard = nil
		s.AddClipped(r.Reduce.Clipped())
	}
	if layout.Teams(r.station.Config) {
		s.Hierarchy, s.Computing = r.station.Config.Cluster.Hierarchy, r.station.Roles.Computes()
	}
	var between int64
	var servers, workers []metrics.Spans
	for rank, rep := range reports {
		s.BytesSent += rep.Sent
		s.BytesReceived += rep.Recv
		s.BytesShared += rep.Shared
		s.ClockDriftNS, s.ClockErrorNS = max(s.ClockDriftNS, rep.Drift.Abs().Nanoseconds()), max(s.ClockErrorNS, rep.Clock.Nanoseconds())
		between += rep.Cross
		if rep.Server != nil {
			servers = append(servers, rep.Server.Spans)
			s.AddClipped(rep.Server.Clipped.Clipped, rep.Server.Clipped.Of)
			for _, sh := range rep.Server.Shards {
				r.sumShard(&s.PerShard[sh.State.ID], sh)
			}
		}
		if w := rep.Worker; w != nil {
			workers = append(workers, w.Spans)
			s.MaxLead = max(s.MaxLead, w.LeadMax)
			s.AddClipped(w.Clipped, w.Gradients)
			for id, n := range w.WaitedLast {
				s.PerShard[id].WaitedLast += n
				_, reply := r.station.Plan.Shards[id].WireBytes()
				s.PerShard[id].AddCached(w.Cached[id], reply)
			}
			row := metrics.WorkerSummary{Worker: w.Worker, Rank: rank, Host: r.station.Hosts[rank], Device: r.Units[rank].Name,
				Iterations: w.Iterations, Steps: w.Steps, Samples: w.Samples, Threads: metrics.Mean(w.Threads, w.Iterations),
				Pace: w.Pace, ComputeS: metrics.Float(w.Spans.Times[metrics.Compute].Seconds()),
				BlockedS: metrics.Float(w.Spans.Times[metrics.Blocked].Seconds()), MaxLead: w.LeadMax}
			if w.Member { // its leader has a row already, because a leader is the first rank of its team
				s.PerWorker[w.Worker].AddMember(row)
			} else {
				s.PerWorker = append(s.PerWorker, row)
			}
		}
	}
	if r.Reduce == nil { // only the MPI library knows the bytes of a collective
		s.BytesBetween = &between
	}
	s.PerRole = map[string]metrics.RoleTimes{metrics.RoleServer: metrics.OverRanks(servers), metrics.RoleWorker: metrics.OverRanks(workers)}
	if rates := r.station.Rates(); rates != nil {
		bound := network.Least(layout.Cards(r.station.Config, r.station.Plan, r.station.Roles, r.station.Hosts), *rates)
		s.SetWire(bound.Time, bound.Card.Host,
			metrics.Wire{LinkBytesPerS: metrics.Float(r.station.Link.Rate), Measured: r.station.Link.Rate > 0 && !r.station.Link.Given})
	}
	return s
}

func (r *Run) sumShard(s *metrics.ShardSummary, rep serve.ShardReport) {
	sh := &r.station.Plan.Shards[rep.State.ID]
	st := rep.State.Stats
	s.Shard, s.Name, s.Server, s.Bytes = int(sh.ID), sh.Name, int(sh.Server), sh.Bytes()
	s.Scheme, s.BoundKey = r.station.Config.Sync[sh.Rule].Schemes(), r.station.Config.Sync[sh.Rule].BoundKey()
	s.Pushes, s.Pulls, s.DelayedPulls, s.DelayedS = st.Pushes, st.Pulls, st.Delayed, metrics.Float(st.DelayedFor.Seconds())
	s.Dropped, s.DroppedFor, s.Skipped, s.Duplicates = st.Dropped, st.Reasons(), st.Skipped, st.Duplicates
	s.Approximate = st.Approximate
	s.SetHists(&rep.Stale, &rep.Lead)
	s.Published = st.Published
	s.TurnCounts = metrics.TurnCounts{DelayedGrants: st.Turns.Delayed, DelayedGrantsS: metrics.Float(st.Turns.DelayedFor.Seconds()),
		MissedTurns: st.Turns.Missed, Strays: st.Turns.Strays}
}
