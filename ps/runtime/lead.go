package runtime

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
	"fluentps/ps/workload"
)

// lead is what rank 0 knows beside its server: it owns the lead shard, so it counts the budget, prints the
// progress, writes the metrics, and decides about online evaluation.
type lead struct {
	r        *rank
	budget   core.Budget
	sinks    metrics.Sink // nil without a run folder
	progress *metrics.Progress

	window   window
	first    bool          // a record was made
	redraw   time.Duration // a terminal's bar is not redrawn before
	accepted int64
	samples  int64
	version  int64
	leadMax  int64
	lr       float64
	epoch    metrics.EpochLoss

	marks  map[int64]mark // by snapshot index
	readyN map[int64]int  // by snapshot index: servers that have kept it
	heard  int64          // messages of servers so far: Ready and Stale
	// delayed is what the other servers told, by server: pulls and pushes that were held back so far.
	delayed map[int32]int64
	// complete lists the snapshots that every server has kept. It ascends: a server keeps them in order, so a
	// later one is never complete before an earlier one that will be.
	complete []int64
	owners   int     // servers that own a shard
	online   *online // nil unless evaluate.where is online
	evals    []metrics.Evaluation
	reason   string // why the run was cut short, empty if it was not
	early    bool   // at somebody's wish
	hasty    bool   // and did not want to wait for a checkpoint
	diverged bool   // and its parameters are worth nothing
	// stopping is a stop that the node is told at the next beat: a reason may come up inside one of its steps.
	stopping bool
	classes  bool // samples have classes, so that there is an accuracy
	target   *float64

	before   int64                // samples before this part of the run
	saved    string               // the checkpoint of the end, "": none
	newest   string               // the last one that is whole, of this part of the run or an earlier one, "": none
	manifest *checkpoint.Manifest // of it
	// snapshots coordinates the checkpoints on the way; nil: there are none.
	snapshots *snapshots
	ended     bool // the node was told to stop, for good

	// Whether the last of what was to go to the metrics files, or to be printed, could not be.
	unwritten, unprinted bool
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

func newLead(r *rank) *lead {
	l := &lead{r: r, classes: !workload.TakesRatings(r.cfg.Model.Name), budget: layout.BudgetOf(r.cfg, r.set.Train.Rows(), r.roles), epoch: metrics.EpochLoss{Rows: int64(r.set.Train.Rows())}, marks: map[int64]mark{}, readyN: map[int64]int{},
		delayed: map[int32]int64{}, window: newWindow(0, len(r.cfg.Sync))}
	for m := range r.roles.Servers {
		if len(r.plan.OfServer(int32(m))) > 0 {
			l.owners++
		}
	}
	l.progress = metrics.NewProgress(r.o.Out, r.o.Terminal, r.o.Width, r.cfg.Metrics.Interval)
	return l
}

// folded counts a push that entered the lead shard.
func (l *lead) folded(m wire.Header) {
	l.accepted++
	w := &l.window
	w.loss += m.Loss
	w.samples += m.Samples
	w.correct += m.Correct
	w.blocked += m.Blocked
	l.leadMax = max(l.leadMax, m.Iter-m.Clock)
	if math.IsNaN(m.Loss) || math.IsInf(m.Loss, 0) {
		l.diverged = true
		l.halt(fmt.Sprintf("diverged: the train loss of worker %d is %v in iteration %d; lower train.optimizer.lr (now %g) or add train.schedule.warm_up",
			m.Worker, m.Loss, m.Iter, l.r.cfg.Train.Optimizer.LR))
	}
	l.epoch.Add(m.Loss, m.Samples)
}

// committed follows the lead shard's versions.
func (l *lead) committed(e *core.Effect, lr float64) {
	l.version = e.Iter
	l.samples += e.Samples
	l.lr = lr
	l.beat()
	l.snapshots.tick()
}

// beat makes a record when it is time to: the first at once, then one per interval, and as often as a
// terminal's bar wants to be redrawn.
func (l *lead) beat() {
	if l.stopping {
		l.stopping = false
		l.r.t.Post(l.stop)
	}
	if l.version == 0 {
		return
	}
	now := l.r.now()
	due := !l.first || now-l.window.from >= l.r.cfg.Metrics.Interval
	if !due && (!l.r.o.Terminal || now < l.redraw) {
		return
	}
	l.redraw = now + beatEvery
	rec := l.record(now)
	if due {
		l.write(rec)
		l.first = true
		l.window = newWindow(now, len(l.r.cfg.Sync))
	}
	l.told(&l.unprinted, l.progress.Update(rec, l.fraction(now)))
}

// rest writes what came since the last record, when training is over.
func (l *lead) rest(now time.Duration) {
	if l.window.samples > 0 && l.version > 0 {
		l.write(l.record(now))
	}
}

func (l *lead) write(rec metrics.Record) {
	if l.sinks != nil {
		l.told(&l.unwritten, l.sinks.Record(rec))
	}
}

// told warns of what could not be told of the run, once until it can again: a full disk is no reason to lose training.
func (l *lead) told(failing *bool, err error) {
	if err != nil && !*failing {
		l.r.log.Warn("left out, and training goes on: " + err.Error())
	}
	*failing = err != nil
}

// say prints what also stands in the run folder.
func (l *lead) say(text string) {
	_, err := io.WriteString(l.r.o.Out, text)
	l.told(&l.unprinted, err)
}

func (l *lead) record(now time.Duration) metrics.Record {
	workers := float64(len(l.r.roles.Workers))
	rec := metrics.Record{At: now, Iteration: l.iteration(), Samples: l.samples,
		Epoch: float64(l.samples) / float64(l.r.set.Train.Rows())}
	w := &l.window
	if w.samples > 0 {
		rec.Set(metrics.TrainLoss, w.loss/float64(w.samples))
		if l.classes {
			rec.Set(metrics.TrainAccuracy, float64(w.correct)/float64(w.samples))
		}
	}
	rec.Set(metrics.TrainLR, l.lr)
	if d := now - w.from; d > 0 {
		rec.Set(metrics.SamplesPerS, float64(w.samples)/d.Seconds())
		rec.Set(metrics.BlockedShare, min(1, float64(w.blocked)/float64(d)/workers))
	}
	l.setStale(&rec)
	rec.Set(metrics.LeadMax, float64(l.leadMax))
	return rec
}

// iteration counts the run's: accepted pushes of the lead shard / workers.
func (l *lead) iteration() int64 { return l.accepted / int64(len(l.r.roles.Workers)) }

// fraction is the share of the budget that is used; NaN if there is nothing to count by.
func (l *lead) fraction(now time.Duration) float64 {
	f := math.NaN()
	use := func(x float64) {
		if math.IsNaN(f) || x > f {
			f = x
		}
	}
	if l.budget.Samples > 0 {
		use(float64(l.samples) / float64(l.budget.Samples))
	}
	if l.budget.Updates > 0 {
		use(float64(l.version) / float64(l.budget.Updates))
	}
	if d := l.r.cfg.Train.Stop.Time; d > 0 {
		use(float64(now) / float64(d))
	}
	return f
}

// halt cuts the run short, orderly, for a reason that the summary gives. The first reason counts.
func (l *lead) halt(reason string) {
	if l.reason != "" || l.r.over {
		return
	}
	if l.r.trainEnd > 0 || l.r.stopping() {
		reason = "trained to the end, but evaluation was " + reason
	}
	l.reason = reason
	l.r.halted.Store(true)
	if l.diverged {
		l.snapshots.stopped(true, reason)
	} else {
		l.snapshots.stopped(true, "")
	}
	if l.online != nil {
		l.online.next()
	}
	l.told(&l.unprinted, l.progress.Println("fluentps: "+reason))
	if l.r.trainEnd == 0 {
		l.stopping = true
	}
}

// stop ends the run for a reason that the node cannot see.
func (l *lead) stop() { l.r.stopNow() }

func (l *lead) snapshotTaken(k, samples int64) {
	l.marks[k] = mark{at: l.r.now(), samples: samples, iteration: l.iteration()}
}

// ready counts the servers that have kept snapshot k of all their shards.
func (l *lead) ready(k int64) {
	l.heard++
	if l.readyN[k]++; l.readyN[k] == l.owners {
		l.whole(k)
	}
}

// whole takes a snapshot of which nothing is missing.
func (l *lead) whole(k int64) {
	l.complete = append(l.complete, k)
	if l.online != nil {
		l.online.next()
	}
}

// evaluated takes a result, in the order of the snapshots.
func (l *lead) evaluated(m mark, loss float64, correct, rows int64) {
	acc := float64(correct) / float64(rows)
	mean := loss / float64(rows)
	epoch := float64(m.samples) / float64(l.r.set.Train.Rows())
	e := metrics.Evaluation{Samples: m.samples, Epoch: metrics.Float(epoch), AtS: metrics.Float(m.at.Seconds())}
	e.Judge(mean, acc, l.classes)
	l.evals = append(l.evals, e)
	rec := metrics.Record{At: m.at, Iteration: m.iteration, Epoch: epoch, Samples: m.samples}
	rec.Set(metrics.TestLoss, mean)
	if l.classes {
		rec.Set(metrics.TestAccuracy, acc)
	}
	l.write(rec)
	if goal := l.r.cfg.Train.Stop.Target; goal > 0 && acc >= goal && l.target == nil {
		s := m.at.Seconds()
		l.target = &s
	}
}
