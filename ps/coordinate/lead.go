package coordinate

import (
	"fmt"
	"io"
	"math"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/checkpoint"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/metrics"
	"fluentps/ps/station"
	"fluentps/ps/workload"
)

// Lead is what rank 0 knows beside its server: it owns the lead shard, so it counts the budget, prints the
// progress, writes the metrics, and decides about online evaluation.
type Lead struct {
	r       *Run
	station *station.Station // that of it
	budget  core.Budget
	out     output
	window  window
	counts  counts
	looks   looks
	end     end
	kept    kept
	heard   int64 // messages of servers so far: Ready and Stale
	// delayed is what the other servers told, by server: pulls and pushes that were held back so far.
	delayed map[int32]int64
}

// output is what rank 0 prints and writes while the run trains.
type output struct {
	sinks    metrics.Sink // nil without a run folder
	progress *metrics.Progress
	first    bool          // a record was made
	redraw   time.Duration // a terminal's bar is not redrawn before
	// Whether the last of what was to go to the metrics files, or to be printed, could not be.
	unwritten, unprinted bool
}

// counts are those of the run.
type counts struct {
	accepted int64 // pushes of the lead shard
	samples  int64
	version  int64 // of the lead shard
	leadMax  int64
	lr       float64
	epoch    metrics.EpochLoss
	before   int64 // samples before this part of the run
}

// looks is what rank 0 knows of evaluations.
type looks struct {
	marks  map[int64]mark // by snapshot index
	readyN map[int64]int  // by snapshot index: servers that have kept it
	// complete lists the snapshots that every server has kept. It ascends: a server keeps them in order, so a
	// later one is never complete before an earlier one that will be.
	complete []int64
	owners   int     // servers that own a shard
	online   *online // nil unless evaluate.where is online
	evals    []metrics.Evaluation
	classes  bool // samples have classes, so that there is an accuracy
	target   *float64
}

// end is how the run ends.
type end struct {
	reason   string // why the run was cut short, empty if it was not
	early    bool   // at somebody's wish
	hasty    bool   // and did not want to wait for a checkpoint
	diverged bool   // and its parameters are worth nothing
	// stopping is a stop that the node is told at the next beat: a reason may come up inside one of its steps.
	stopping bool
	ended    bool // the node was told to stop, for good
}

// kept is what rank 0 knows of checkpoints.
type kept struct {
	saved    string               // the checkpoint of the end, "": none
	newest   string               // the last one that is whole, of this part of the run or an earlier one, "": none
	manifest *checkpoint.Manifest // of it
	// snapshots coordinates the checkpoints on the way; nil: there are none.
	snapshots *snapshots
}

// window sums what came since the last record.
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

// NewLead makes what rank 0 has beside its sides.
func NewLead(r *Run) *Lead {
	rows := r.station.Set.Train.Rows()
	l := &Lead{r: r, station: r.station, budget: layout.BudgetOf(r.station.Config, rows, r.station.Roles), counts: counts{epoch: metrics.EpochLoss{Rows: int64(rows)}},
		looks:   looks{classes: !workload.TakesRatings(r.station.Config.Model.Name), marks: map[int64]mark{}, readyN: map[int64]int{}},
		delayed: map[int32]int64{}, window: newWindow(0, len(r.station.Config.Sync))}
	for m := range r.station.Roles.Servers {
		if len(r.station.Plan.OfServer(int32(m))) > 0 {
			l.looks.owners++
		}
	}
	l.out.progress = metrics.NewProgress(r.o.Lead.Out, r.o.Lead.Terminal, r.o.Lead.Width, r.station.Config.Metrics.Interval)
	return l
}

// Folded counts a push that entered the lead shard.
func (l *Lead) Folded(m wire.Header) {
	l.counts.accepted++
	w := &l.window
	w.loss += m.Loss
	w.samples += m.Samples
	w.correct += m.Correct
	w.blocked += m.Blocked
	l.counts.leadMax = max(l.counts.leadMax, m.Iter-m.Clock)
	if math.IsNaN(m.Loss) || math.IsInf(m.Loss, 0) {
		l.end.diverged = true
		l.halt(fmt.Sprintf("diverged: the train loss of worker %d is %v in iteration %d; lower train.optimizer.lr (now %g) or add train.schedule.warm_up",
			m.Worker, m.Loss, m.Iter, l.station.Config.Train.Optimizer.LR))
	}
	l.counts.epoch.Add(m.Loss, m.Samples)
}

// Committed follows the lead shard's versions.
func (l *Lead) Committed(version, samples int64, rate float64) {
	l.counts.version = version
	l.counts.samples += samples
	l.counts.lr = rate
	l.Beat()
	l.kept.snapshots.tick()
}

// Beat makes a record when it is time to: the first at once, then one per interval, and as often as a
// terminal's bar wants to be redrawn.
func (l *Lead) Beat() {
	if l.end.stopping {
		l.end.stopping = false
		l.station.Transport.Post(l.Stop)
	}
	if l.counts.version == 0 {
		return
	}
	now := l.station.Now()
	due := !l.out.first || now-l.window.from >= l.station.Config.Metrics.Interval
	if !due && (!l.r.o.Lead.Terminal || now < l.out.redraw) {
		return
	}
	l.out.redraw = now + station.BeatEvery
	rec := l.record(now)
	if due {
		l.write(rec)
		l.out.first = true
		l.window = newWindow(now, len(l.station.Config.Sync))
	}
	l.told(&l.out.unprinted, l.out.progress.Update(rec, l.fraction(now)))
}

// Tick looks whether a checkpoint is due.
func (l *Lead) Tick() { l.kept.snapshots.tick() }

// rest writes what came since the last record, when training is over.
func (l *Lead) rest(now time.Duration) {
	if l.window.samples > 0 && l.counts.version > 0 {
		l.write(l.record(now))
	}
}

func (l *Lead) write(rec metrics.Record) {
	if l.out.sinks != nil {
		l.told(&l.out.unwritten, l.out.sinks.Record(rec))
	}
}

// told warns of what could not be told of the run, once until it can again: a full disk is no reason to lose training.
func (l *Lead) told(failing *bool, err error) {
	if err != nil && !*failing {
		l.station.Log.Warn("left out, and training goes on: " + err.Error())
	}
	*failing = err != nil
}

// say prints what also stands in the run folder.
func (l *Lead) say(text string) {
	_, err := io.WriteString(l.r.o.Lead.Out, text)
	l.told(&l.out.unprinted, err)
}

func (l *Lead) record(now time.Duration) metrics.Record {
	workers := float64(len(l.station.Roles.Workers))
	rec := metrics.Record{At: now, Iteration: l.iteration(), Samples: l.counts.samples,
		Epoch: float64(l.counts.samples) / float64(l.station.Set.Train.Rows())}
	w := &l.window
	if w.samples > 0 {
		rec.Set(metrics.TrainLoss, w.loss/float64(w.samples))
		if l.looks.classes {
			rec.Set(metrics.TrainAccuracy, float64(w.correct)/float64(w.samples))
		}
	}
	rec.Set(metrics.TrainLR, l.counts.lr)
	if d := now - w.from; d > 0 {
		rec.Set(metrics.SamplesPerS, float64(w.samples)/d.Seconds())
		rec.Set(metrics.BlockedShare, min(1, float64(w.blocked)/float64(d)/workers))
	}
	l.setStale(&rec)
	rec.Set(metrics.LeadMax, float64(l.counts.leadMax))
	return rec
}

// iteration counts the run's: accepted pushes of the lead shard / workers.
func (l *Lead) iteration() int64 { return l.counts.accepted / int64(len(l.station.Roles.Workers)) }

// fraction is the share of the budget that is used; NaN if there is nothing to count by.
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

// halt cuts the run short, orderly, for a reason that the summary gives. The first reason counts.
func (l *Lead) halt(reason string) {
	if l.end.reason != "" || l.r.Over {
		return
	}
	if l.r.TrainEnd > 0 || l.r.stopping() {
		reason = "trained to the end, but evaluation was " + reason
	}
	l.end.reason = reason
	l.r.Halted.Store(true)
	if l.end.diverged {
		l.kept.snapshots.stopped(true, reason)
	} else {
		l.kept.snapshots.stopped(true, "")
	}
	if l.looks.online != nil {
		l.looks.online.next()
	}
	l.told(&l.out.unprinted, l.out.progress.Println("fluentps: "+reason))
	if l.r.TrainEnd == 0 {
		l.end.stopping = true
	}
}

// Stop ends the run for a reason that the node cannot see.
func (l *Lead) Stop() { l.r.stopNow() }

// Snapshot notes when a snapshot of the lead shard was taken.
func (l *Lead) Snapshot(k, samples int64) {
	l.looks.marks[k] = mark{at: l.station.Now(), samples: samples, iteration: l.iteration()}
}

// ready counts the servers that have kept snapshot k of all their shards.
func (l *Lead) ready(k int64) {
	l.heard++
	if l.looks.readyN[k]++; l.looks.readyN[k] == l.looks.owners {
		l.whole(k)
	}
}

// whole takes a snapshot of which nothing is missing.
func (l *Lead) whole(k int64) {
	l.looks.complete = append(l.looks.complete, k)
	if l.looks.online != nil {
		l.looks.online.next()
	}
}

// evaluated takes a result, in the order of the snapshots.
func (l *Lead) evaluated(m mark, loss float64, correct, rows int64) {
	acc := float64(correct) / float64(rows)
	mean := loss / float64(rows)
	epoch := float64(m.samples) / float64(l.station.Set.Train.Rows())
	e := metrics.Evaluation{Samples: m.samples, Epoch: metrics.Float(epoch), AtS: metrics.Float(m.at.Seconds())}
	e.Judge(mean, acc, l.looks.classes)
	l.looks.evals = append(l.looks.evals, e)
	rec := metrics.Record{At: m.at, Iteration: m.iteration, Epoch: epoch, Samples: m.samples}
	rec.Set(metrics.TestLoss, mean)
	if l.looks.classes {
		rec.Set(metrics.TestAccuracy, acc)
	}
	l.write(rec)
	if goal := l.station.Config.Train.Stop.Target; goal > 0 && acc >= goal && l.looks.target == nil {
		s := m.at.Seconds()
		l.looks.target = &s
	}
}
