package runtime

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/rank/liveness"
	"fluentps/internal/rank/station"
	"fluentps/kernels"
)

// watch posts beats and interrupts to the goroutine that drives, until stop is closed.
func (r *rank) watch(stop <-chan struct{}) {
	tick := time.NewTicker(station.BeatEvery)
	defer tick.Stop()
	last := time.Now()
	r.tellIfDue(last)
	for {
		select {
		case <-stop:
			return
		case name := <-r.o.Interrupt:
			if strings.HasSuffix(name, SignalAgain) { // at once, because the driving goroutine may be busy for long
				r.run.SkipCheckpoint.Store(true)
			}
			r.station.Transport.Post(func() { r.interrupted(name) })
		case <-tick.C:
			now := time.Now()
			if now.Sub(last) >= liveness.PauseMin { // this process was stopped
				r.station.Transport.Post(func() { r.awakeSince = r.station.Transport.Now() })
			}
			last = now
			r.station.Transport.Post(r.beat)
			r.tellIfDue(now)
		}
	}
}

// interrupted ends the run early but in order, or only prints the state. A launcher signals every rank, but a user may
// signal a single one. Each rank that gets a signal tells rank 0, which acts on the first.
func (r *rank) interrupted(name string) {
	r.station.Log.Info("signal", "name", name)
	if name == SignalState {
		r.printState()
		return
	}
	if r.run.EndDecided {
		return
	}
	r.run.Halted.Store(true)
	name, again := strings.CutSuffix(name, SignalAgain)
	switch {
	case r.run.Lead != nil:
		r.run.Lead.SignalStops(name)
		if again {
			r.run.Lead.SkipCheckpoint()
		}
		r.run.Lead.Beat()
	default:
		h := wire.StopAsked{Rank: int32(r.station.Me), Again: again}.Header()
		r.station.Net.Send(0, &h)
	}
}

func (r *rank) beat() {
	if r.run.Lead != nil && !r.run.EndDecided {
		r.run.Lead.CheckMaxTime()
	}
	if r.run.TrainEnd > 0 || r.station.Began == 0 {
		return
	}
	if r.run.Server != nil {
		r.run.Server.ReportStaleness(r.station.Now())
	}
	if r.run.Lead != nil {
		r.run.Lead.Beat()
		r.run.Lead.Tick()
		if limit := r.station.Config.Train.Stop.Time; limit > 0 && r.station.Now() >= limit {
			r.run.Lead.Stop()
		}
	}
	r.checkStall()
}

// openLiveness starts the failure detector.
func (r *rank) openLiveness() *liveness.Liveness {
	o := liveness.Options{Code: CodeStall, Separate: r.station.Me == 0 || r.o.Mode == "mpi", Log: r.station.Log,
		Guard: r.guarded, Mute: r.o.testing.mute,
		State: func() { r.printState(); r.explainWaits() }}
	if r.station.Config != nil {
		o.Limit = r.station.Config.Stall.Peer
	}
	return liveness.Open(r.station.Transport, o)
}

// nameRanks gives the failure detector the names of the ranks.
func (r *rank) nameRanks() {
	names := make([]string, len(r.station.Hosts))
	for rank := range names {
		names[rank] = fmt.Sprintf("%s (%s)", r.station.Net.Place(rank), r.station.Roles.Name(rank))
	}
	r.live.Know(names, r.station.Log)
}

// giveUp ends the run and has all ranks print their states. This rank has logged the reason.
func (r *rank) giveUp() {
	switch {
	case r.live == nil:
		r.station.Transport.Abort(CodeStall)
	case !r.gaveUp:
		r.gaveUp = true
		r.live.GiveUp()
	}
}

// checkStall warns once of a wait that is too long, and ends the run when the wait is far too long. A worker names the
// shards that it waits for, a server the workers.
func (r *rank) checkStall() {
	limits := r.station.Config.Stall
	if r.gaveUp {
		return
	}
	if s := r.run.Server; s != nil {
		if text := s.Stalled(limits.Warn, r.awakeSince-r.station.Began+r.station.Before); text != "" {
			r.station.Log.Warn("stall: " + text)
		}
	}
	var warning, abort string
	switch {
	case r.run.Reduce != nil:
		warning, abort = r.run.Reduce.Stalled(limits, r.awakeSince)
	case r.run.Worker != nil:
		warning, abort = r.run.Worker.Stalled(limits, r.awakeSince)
	}
	if warning != "" {
		r.station.Log.Warn("stall: " + warning)
	}
	if abort != "" {
		r.station.Log.Error("stall: " + abort + "; giving up after stall.abort " + limits.Abort.String())
		r.giveUp()
	}
}

// explainWaits logs what the sides of this rank wait for, if known, however short the wait.
func (r *rank) explainWaits() {
	if r.station.Began == 0 || r.run.TrainEnd > 0 || r.run.Reduce != nil {
		return
	}
	var texts []string
	if r.run.Server != nil {
		texts = append(texts, r.run.Server.WaitsFor())
	}
	if r.run.Worker != nil {
		texts = append(texts, r.run.Worker.WaitsFor())
	}
	for _, text := range texts {
		if text != "" {
			r.station.Log.Warn(text)
		}
	}
}

// guard turns a panic, which is a bug of ours, into a report with rank and seed, and ends all ranks. Otherwise the other
// ranks would wait for this one. *res and *err become the return values of the rank that panicked; both may be nil.
func (r *rank) guard(res *Result, err *error) { r.panicked(recover(), res, err) }

// guarded is guard for a goroutine, which returns nothing.
func (r *rank) guarded() { r.panicked(recover(), nil, nil) }

func (r *rank) panicked(p any, res *Result, err *error) {
	if p == nil {
		return
	}
	why, _ := p.(error)
	var device *kernels.Failure
	if errors.As(why, &device) { // a broken device is no bug of ours
		if res != nil {
			*res, *err = Result{Code: CodeFailed}, why
		}
		r.station.Log.Error(device.Error())
		r.station.Transport.Abort(CodeFailed)
		return
	}
	if res != nil {
		*res, *err = Result{Code: CodeFailed}, fmt.Errorf("bug in fluentps: %v", p)
	}
	seed := uint64(0)
	if r.station.Config != nil {
		seed = r.station.Config.Seed
	}
	r.station.Log.Error(fmt.Sprintf("bug in fluentps: %v", p), "seed", seed, "stack", string(debug.Stack()))
	r.station.Transport.Abort(CodeFailed)
}

// printState logs the state of this rank's nodes; the run continues.
func (r *rank) printState() {
	if r.station.Began == 0 {
		r.station.Log.Warn("state: not training yet")
		return
	}
	r.station.Log.Warn("state after " + r.station.Now().Round(time.Millisecond).String() + " of training: " + r.words())
	var detail []any
	if r.run.Server != nil {
		detail = append(detail, "server", r.run.Server.Text())
	}
	if r.run.Worker != nil {
		detail = append(detail, "worker", r.run.Worker.Text())
	}
	if a := r.run.Reduce; a != nil {
		detail = append(detail, "all_reduce", a.Text())
	}
	r.station.Log.Info("state of the nodes", detail...) // for who knows the code, in the log of this rank
}
