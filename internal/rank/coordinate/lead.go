package coordinate

import (
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/servernode"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/evaluate"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/records"
	"fluentps/internal/show/status"
)

// Lead is what rank 0 does beside its server: it owns the lead shard, so it counts the budget, prints the progress, writes
// the metrics, and decides about online evaluation.
type Lead struct {
	r              *Run
	station        *station.Station // of rank 0
	budget         servernode.Budget
	out            output
	window         window
	counts         counts
	alike          alike
	evals          evaluations
	end            end
	checkpoints    checkpoints
	deals          deals
	changes        []metrics.Change // of schemes, for stragglers
	serverMessages int64            // number of messages of servers so far: of snapshots and of staleness
	// delayed is, by server other than rank 0's: pulls and pushes delayed so far, as last reported.
	delayed map[int32]int64
}

// output is what rank 0 prints and writes during training.
type output struct {
	sinks     records.Sink // nil without a run folder
	progress  *metrics.Progress
	hasRecord bool           // a record was made
	last      records.Record // the last one
	recorded  float64        // the used share of the budget at the last record; NaN without a budget
	redrawAt  time.Duration  // a terminal's bar is not redrawn earlier
	// The last write to the metrics files, or the last print, failed.
	writeFailing, printFailing bool
	kept                       *finished // the summary of a finished run that has nothing left to train; nil in all other runs
}

// counts are the counters of the run.
type counts struct {
	accepted int64 // pushes of the lead shard
	samples  int64
	version  int64 // of the lead shard
	leadMax  int64
	lr       float64
	epoch    metrics.EpochLoss
	before   int64 // samples of earlier parts of the run
}

// evaluations is what rank 0 knows of evaluations.
type evaluations struct {
	marks  map[int64]mark // by snapshot
	keptBy map[int64]int  // by snapshot: number of servers that have kept it
	// complete lists the snapshots that every server has kept. It ascends: a server keeps snapshots in order, so a later
	// one is never complete before an earlier one that will be.
	complete       []int64
	owners         int     // number of servers that own a shard
	online         *online // nil unless evaluate.where is online
	results        []metrics.Evaluation
	judge          metrics.Judge
	targetReachedS *float64 // nil: not reached
}

// end is how the run ends.
type end struct {
	reason         string // why the run was cut short; "": it was not
	stoppedEarly   bool   // a user, the batch system or a limit stopped the run
	skipCheckpoint bool   // the user asked to leave without a checkpoint
	diverged       bool   // the parameters are useless
	// stopPending has the node told to stop at the next beat: the reason may arise inside one of its steps.
	stopPending bool
	isFinal     bool // the node was told to stop for good
	// why will have what the batch system knows of the signal that stops the run; nil: it was not asked.
	why chan string
}

// checkpoints is what rank 0 knows of checkpoints.
type checkpoints struct {
	final    string               // the final checkpoint; "": none
	newest   string               // the last complete one, of this part of the run or an earlier one; "": none
	manifest *checkpoint.Manifest // of the final checkpoint
	// snapshots coordinates the checkpoints during training; nil: there are none.
	snapshots *snapshots
}

// window sums up what has happened since the last record.
type window struct {
	from    time.Duration
	loss    float64
	samples int64
	correct int64
	blocked int64          // nanoseconds over all workers
	stale   []metrics.Hist // by rule of sync
}

func newWindow(from time.Duration, rules int) window {
	return window{from: from, stale: make([]metrics.Hist, rules)}
}

// mark is when a snapshot was taken.
type mark struct {
	at        time.Duration // since the start of training
	samples   int64
	iteration int64
}

// NewLead makes the lead of rank 0.
func NewLead(r *Run) *Lead {
	rows := r.station.Set.Train.Rows()
	l := &Lead{r: r, station: r.station, budget: layout.BudgetOf(r.station.Config, rows, r.station.Roles),
		counts:  counts{epoch: metrics.EpochLoss{Rows: int64(rows)}},
		evals:   evaluations{judge: layout.Judge(r.station.Config, r.station.Set), marks: map[int64]mark{}, keptBy: map[int64]int{}},
		delayed: map[int32]int64{}, window: newWindow(0, len(r.station.Config.Sync))}
	l.alike = newAlike(r.station.Config, len(r.station.Roles.Workers))
	for m := range r.station.Roles.Servers {
		if len(r.station.Plan.OfServer(int32(m))) > 0 {
			l.evals.owners++
		}
	}
	l.out.progress = metrics.NewProgress(r.o.Lead.Out, r.o.Lead.Terminal, r.o.Lead.Width, r.station.Config.Metrics.Interval)
	return l
}

// Folded counts a push that was folded into the lead shard.
func (l *Lead) Folded(m wire.Header) {
	l.counts.accepted++
	w := &l.window
	w.loss += m.Loss
	w.samples += m.Samples
	w.correct += m.Correct
	w.blocked += m.Blocked
	l.counts.leadMax = max(l.counts.leadMax, m.Iter-m.Clock)
	if math.IsNaN(m.Loss) || math.IsInf(m.Loss, 0) {
		l.diverged(fmt.Sprintf("the train loss of worker %d is %v in iteration %d", m.Worker, m.Loss, m.Iter))
	}
	l.counts.epoch.Add(m.Loss, m.Samples)
	if warning := l.alike.folded(&m); warning != "" {
		l.station.Log.Warn(warning)
	}
}

// Committed counts a version of the lead shard.
func (l *Lead) Committed(version, samples int64, rate float64) {
	l.counts.version = version
	if l.station.Config.Coded() { // the pushes folded stand for those of all
		l.counts.accepted = version * int64(len(l.station.Roles.Workers))
	}
	l.counts.samples += samples
	l.counts.lr = rate
	l.Beat()
	l.checkpoints.snapshots.tick()
}

// Changed logs a change of schemes, and keeps it for the summary.
func (l *Lead) Changed(e *core.Effect) {
	for _, c := range layout.Changes(l.station.Config, l.station.Plan, e) {
		l.station.Log.Info("scheme changes", "iteration", c.Iteration, "match", c.Match, "scheme", c.Scheme, "why", c.Why)
		l.changes = append(l.changes, c)
	}
}

// Records are further apart than recordEveryMin. They come at the latest after the interval, after recordShare of the budget, or, without
// a budget, after recordGrowth of the time since the start. So a short run, too, has a series of losses.
const (
	recordEveryMin = station.BeatEvery
	recordShare    = 0.01
	recordGrowth   = 0.05
)

// recordIsDue says whether it is time for a record.
func (l *Lead) recordIsDue(now time.Duration) bool {
	since := now - l.window.from
	switch {
	case !l.out.hasRecord || since >= l.station.Config.Metrics.Interval:
		return true
	case since < recordEveryMin:
		return false
	case math.IsNaN(l.out.recorded):
		return float64(since) >= recordGrowth*float64(now)
	}
	return l.fraction(now)-l.out.recorded >= recordShare
}

// Beat makes a record if one is due. It redraws a terminal's bar more often.
func (l *Lead) Beat() {
	if l.end.stopPending {
		l.end.stopPending = false
		l.station.Transport.Post(l.Stop)
	}
	if l.counts.version == 0 {
		return
	}
	now := l.station.Now()
	due := l.recordIsDue(now)
	if !due && (!l.r.o.Lead.Terminal || now < l.out.redrawAt) {
		return
	}
	l.out.redrawAt = now + station.BeatEvery
	rec := l.record(now)
	if due {
		l.write(rec)
		l.out.hasRecord, l.out.recorded, l.out.last = true, l.fraction(now), rec
		l.window = newWindow(now, len(l.station.Config.Sync))
	}
	l.noteFailure(&l.out.printFailing, l.out.progress.Update(rec, l.fraction(now)))
}

// Tick looks whether a checkpoint is due.
func (l *Lead) Tick() { l.checkpoints.snapshots.tick() }

// writeRest writes the record of what has happened since the last one, at the end of training.
func (l *Lead) writeRest(now time.Duration) {
	isStale := slices.ContainsFunc(l.window.stale, func(h metrics.Hist) bool { return h.N() > 0 })
	if (l.window.samples > 0 || isStale) && l.counts.version > 0 {
		l.write(l.record(now))
	}
}

func (l *Lead) write(rec records.Record) {
	if l.out.sinks != nil && l.r.Follower.Check() == nil { // a file that is open could still be written by a run that has lost its folder
		l.noteFailure(&l.out.writeFailing, l.out.sinks.Record(rec))
	}
}

// noteFailure warns of output that was left out, and warns again only after output has worked again: a full disk must not
// cost the training.
func (l *Lead) noteFailure(failing *bool, err error) {
	if err != nil && !*failing {
		l.station.Log.Warn("left out, and training goes on: " + err.Error())
	}
	*failing = err != nil
}

// print prints a text that is also in the run folder.
func (l *Lead) print(text string) {
	_, err := io.WriteString(l.r.o.Lead.Out, text)
	l.noteFailure(&l.out.printFailing, err)
}

func (l *Lead) record(now time.Duration) records.Record {
	workers := float64(len(l.station.Roles.Workers))
	rec := records.Record{At: now, Iteration: l.iteration(), Samples: l.counts.samples,
		Epoch: float64(l.counts.samples) / float64(l.station.Set.Train.Rows())}
	w := &l.window
	if w.samples > 0 {
		rec.Set(records.TrainLoss, w.loss/float64(w.samples))
		// a program of a user's own need not count hits in training
		if l.evals.judge.Measure == metrics.Hits && (w.correct > 0 || !l.station.Set.Elsewhere) {
			rec.Set(records.TrainAccuracy, float64(w.correct)/float64(w.samples))
		}
	}
	rec.Set(records.TrainLR, l.counts.lr)
	if d := now - w.from; d > 0 {
		rec.Set(records.SamplesPerS, float64(w.samples)/d.Seconds())
		rec.Set(records.BlockedShare, min(1, float64(w.blocked)/float64(d)/workers))
	}
	l.setStale(&rec)
	rec.Set(records.LeadMax, float64(l.counts.leadMax))
	return rec
}

// iteration is the run's: the accepted pushes of the lead shard divided by the workers.
func (l *Lead) iteration() int64 { return l.counts.accepted / int64(len(l.station.Roles.Workers)) }

// fraction is the used share of the budget; NaN if there is no budget.
func (l *Lead) fraction(now time.Duration) float64 {
	f := math.NaN()
	use := func(x float64) {
		if math.IsNaN(f) || x > f {
			f = x
		}
	}
	if l.budget.Samples > 0 {
		use(float64(l.counts.samples) / float64(l.budget.Samples))
	}
	if l.budget.Updates > 0 {
		use(float64(l.counts.version) / float64(l.budget.Updates))
	}
	if d := l.station.Config.Train.Stop.Time; d > 0 {
		use(float64(now) / float64(d))
	}
	return f
}

// Status is what rank 0 knows of the run.
func (l *Lead) Status() *status.Lead {
	now := l.station.Now()
	of := &status.Lead{Iteration: l.iteration(), Samples: l.counts.samples,
		Epoch: float64(l.counts.samples) / float64(l.station.Set.Train.Rows()), Done: -1, ETAS: -1}
	if f := l.fraction(now); !math.IsNaN(f) {
		of.Done = min(1, f)
		if eta, ok := metrics.ETA(now, f); ok {
			of.ETAS = eta.Seconds()
		}
	}
	loss, _ := l.out.last.Get(records.TrainLoss)
	speed, _ := l.out.last.Get(records.SamplesPerS)
	of.Loss, of.SamplesPerS = metrics.Float(loss), metrics.Float(speed)
	if l.checkpoints.newest != "" {
		of.Checkpoint = filepath.Base(l.checkpoints.newest)
	}
	return of
}

// halt cuts the run short in an orderly way, for a reason that the summary gives. The first reason counts.
func (l *Lead) halt(reason string) {
	if l.end.reason != "" || l.r.EndDecided {
		return
	}
	if l.r.TrainEnd > 0 || l.r.stopping() {
		reason += metrics.Unevaluated
	}
	l.end.reason = reason
	l.r.Halted.Store(true)
	if l.end.diverged {
		l.checkpoints.snapshots.stopped(true, reason)
	} else {
		l.checkpoints.snapshots.stopped(true, "")
	}
	if l.evals.online != nil {
		l.evals.online.next()
	}
	l.noteFailure(&l.out.printFailing, l.out.progress.Println("fluentps: "+reason))
	if l.r.TrainEnd == 0 {
		l.end.stopPending = true
	}
}

// Stop ends the run for a reason that the node cannot see.
func (l *Lead) Stop() { l.r.stopNow() }

// Snapshot notes when a snapshot of the lead shard was taken.
func (l *Lead) Snapshot(k, samples int64) {
	l.evals.marks[k] = mark{at: l.station.Now(), samples: samples, iteration: l.iteration()}
}

// snapshotKept counts the servers that have kept snapshot k of all their shards.
func (l *Lead) snapshotKept(k int64) {
	l.serverMessages++
	if l.evals.keptBy[k]++; l.evals.keptBy[k] == l.evals.owners {
		l.snapshotComplete(k)
	}
}

// snapshotComplete notes a snapshot that all servers have kept.
func (l *Lead) snapshotComplete(k int64) {
	l.evals.complete = append(l.evals.complete, k)
	if l.evals.online != nil {
		l.evals.online.next()
	}
}

// evaluated notes a result. Results come in the order of their snapshots.
func (l *Lead) evaluated(m mark, s evaluate.Sum) {
	epoch := float64(m.samples) / float64(l.station.Set.Train.Rows())
	e := metrics.Evaluation{Samples: m.samples, Epoch: metrics.Float(epoch), AtS: metrics.Float(m.at.Seconds())}
	e.Judge(l.evals.judge, s)
	l.evals.results = append(l.evals.results, e)
	rec := records.Record{At: m.at, Iteration: m.iteration, Epoch: epoch, Samples: m.samples}
	e.Record(&rec)
	l.write(rec)
	if l.r.TrainEnd == 0 {
		l.noteFailure(&l.out.printFailing, l.out.progress.Evaluated(&e))
	}
	if goal := l.station.Config.Train.Stop.Target; goal > 0 && e.Score() >= goal && l.evals.targetReachedS == nil {
		s := m.at.Seconds()
		l.evals.targetReachedS = &s
	}
}
