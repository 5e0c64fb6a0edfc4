package runtime

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"fluentps/comm/wire"
	"fluentps/kernels"
	"fluentps/ps/liveness"
	"fluentps/ps/station"
)

// watch posts beats and interrupts to the goroutine that drives, until stop is closed.
func (r *rank) watch(stop <-chan struct{}) {
	tick := time.NewTicker(station.BeatEvery)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-stop:
			return
		case name := <-r.o.Interrupt:
			if strings.HasSuffix(name, SignalAgain) { // also where the goroutine that drives is busy for long
				r.run.Hurried.Store(true)
			}
			r.station.Transport.Post(func() { r.interrupted(name) })
		case <-tick.C:
			now := time.Now()
			if now.Sub(last) >= liveness.PauseMin { // this process was stopped
				r.station.Transport.Post(func() { r.awake = r.station.Transport.Now() })
			}
			last = now
			r.station.Transport.Post(r.beat)
		}
	}
}

// interrupted ends the run early and orderly, or only prints the state. A launcher sends its signal to every rank, but a person may send
// one to a single rank: whoever gets it tells rank 0, which acts on the first.
func (r *rank) interrupted(name string) {
	r.station.Log.Info("signal", "name", name)
	if name == SignalState {
		r.printState()
		return
	}
	if r.run.Over {
		return
	}
	r.run.Halted.Store(true)
	name, again := strings.CutSuffix(name, SignalAgain)
	switch {
	case r.run.Lead != nil:
		r.run.Lead.CutShort(name)
		if again {
			r.run.Lead.Hurry()
		}
		r.run.Lead.Beat()
	default:
		h := wire.StopAsked{Rank: int32(r.station.Me), Again: again}.Header()
		r.station.Net.Send(0, &h)
	}
}

func (r *rank) beat() {
	if r.run.Lead != nil && !r.run.Over {
		r.run.Lead.TimeUp()
	}
	if r.run.TrainEnd > 0 || r.station.Began == 0 {
		return
	}
	if r.run.Server != nil {
		r.run.Server.Tell(r.station.Now())
	}
	if r.run.Lead != nil {
		r.run.Lead.Beat()
		r.run.Lead.Tick()
		if limit := r.station.Config.Train.Stop.Time; limit > 0 && r.station.Now() >= limit {
			r.run.Lead.Stop()
		}
	}
	r.stall()
}

// openLiveness begins to beat and to listen.
func (r *rank) openLiveness() *liveness.Liveness {
	o := liveness.Options{Code: CodeStall, Separate: r.station.Me == 0 || r.o.Mode == "mpi", Log: r.station.Log, Guard: r.guarded, Mute: r.o.mute,
		State: func() { r.printState(); r.explainWaits() }}
	if r.station.Config != nil {
		o.Limit = r.station.Config.Stall.Peer
	}
	return liveness.Open(r.station.Transport, o)
}

// known tells whoever listens who the ranks are.
func (r *rank) known() {
	names := make([]string, len(r.station.Hosts))
	for rank := range names {
		names[rank] = fmt.Sprintf("%s (%s)", r.station.Net.Place(rank), r.station.Roles.Name(rank))
	}
	r.live.Know(names, r.station.Log)
}

// giveUp ends the run with all nodes' states, after this rank has said why.
func (r *rank) giveUp() {
	switch {
	case r.live == nil:
		r.station.Transport.Abort(CodeStall)
	case !r.gaveUp:
		r.gaveUp = true
		r.live.GiveUp()
	}
}

// stall explains a wait that is too long, once, and ends the job when it is far too long. A worker says which shards
// it waits for, a server whom it waits for.
func (r *rank) stall() {
	limits := r.station.Config.Stall
	if r.gaveUp {
		return
	}
	if s := r.run.Server; s != nil {
		if text := s.Stalled(limits.Warn, r.awake-r.station.Began+r.station.Before); text != "" {
			r.station.Log.Warn("stall: " + text)
		}
	}
	var warning, over string
	switch {
	case r.run.Reduce != nil:
		warning, over = r.run.Reduce.Stalled(limits, r.awake)
	case r.run.Worker != nil:
		warning, over = r.run.Worker.Stalled(limits, r.awake)
	}
	if warning != "" {
		r.station.Log.Warn("stall: " + warning)
	}
	if over != "" {
		r.station.Log.Error("stall: " + over + "; giving up after stall.abort " + limits.Abort.String())
		r.giveUp()
	}
}

// explainWaits says who is waited for, where that is known, however short the wait.
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

// guard turns a panic, which is a bug of ours, into a report with rank and seed and the end of all ranks.
// Without it the other ranks would wait for this one.
// res and err, where there are any, become what the caller of a rank that panicked gets.
func (r *rank) guard(res *Result, err *error) { r.panicked(recover(), res, err) }

// guarded is guard on a goroutine, which returns nothing.
func (r *rank) guarded() { r.panicked(recover(), nil, nil) }

func (r *rank) panicked(p any, res *Result, err *error) {
	if p == nil {
		return
	}
	why, _ := p.(error)
	var device *kernels.Failure
	if errors.As(why, &device) { // which is nobody's mistake
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

// printState says where the nodes of this rank stand, and lets them go on.
func (r *rank) printState() {
	if r.station.Began == 0 {
		r.station.Log.Warn("state: not training yet")
		return
	}
	text := ""
	say := func(s string) { text += "; " + s }
	if r.run.Server != nil {
		say(r.run.Server.Text())
	}
	if r.run.Worker != nil {
		say(r.run.Worker.Text())
	}
	if a := r.run.Reduce; a != nil {
		say(a.Text())
	}
	r.station.Log.Warn("state after " + r.station.Now().Round(time.Millisecond).String() + " of training" + text)
}
