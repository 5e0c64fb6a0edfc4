package runtime

import (
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"fluentps/comm/wire"
	"fluentps/kernels"
	"fluentps/ps/core"
	"fluentps/ps/liveness"
)

// beatEvery is how often a rank looks at the clock when nothing else happens.
const beatEvery = 100 * time.Millisecond

// watch posts beats and interrupts to the goroutine that drives, until stop is closed.
func (r *rank) watch(stop <-chan struct{}) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	last := time.Now()
	for {
		select {
		case <-stop:
			return
		case name := <-r.o.Interrupt:
			if strings.HasSuffix(name, SignalAgain) { // also where the goroutine that drives is busy for long
				r.hurried.Store(true)
			}
			r.t.Post(func() { r.interrupted(name) })
		case <-tick.C:
			now := time.Now()
			if now.Sub(last) >= liveness.PauseMin { // this process was stopped
				r.t.Post(func() { r.awake = r.t.Now() })
			}
			last = now
			r.t.Post(r.beat)
		}
	}
}

// interrupted ends the run early and orderly, or only prints the state. A launcher sends its signal to every rank, but a person may send
// one to a single rank: whoever gets it tells rank 0, which acts on the first.
func (r *rank) interrupted(name string) {
	r.log.Info("signal", "name", name)
	if name == SignalState {
		r.printState()
		return
	}
	if r.over {
		return
	}
	r.halted.Store(true)
	name, again := strings.CutSuffix(name, SignalAgain)
	switch {
	case r.lead != nil:
		r.lead.cutShort(name)
		if again {
			r.lead.hurry()
		}
		r.lead.beat()
	default:
		h := wire.StopAsked{Rank: int32(r.me), Again: again}.Header()
		r.net.Send(0, &h)
	}
}

func (r *rank) beat() {
	if r.lead != nil && !r.over {
		r.lead.timeUp()
	}
	if r.trainEnd > 0 || r.trainStart == 0 {
		return
	}
	if r.server != nil {
		r.server.tell(r.now())
	}
	if r.lead != nil {
		r.lead.beat()
		r.lead.snapshots.tick()
		if limit := r.cfg.Train.Stop.Time; limit > 0 && r.now() >= limit {
			r.lead.stop()
		}
	}
	r.stall()
}

// openLiveness begins to beat and to listen.
func (r *rank) openLiveness() *liveness.Liveness {
	o := liveness.Options{Code: CodeStall, Separate: r.me == 0 || r.o.Mode == "mpi", Log: r.log, Guard: r.guarded, Mute: r.o.mute,
		State: func() { r.printState(); r.explainWaits() }}
	if r.cfg != nil {
		o.Limit = r.cfg.Stall.Peer
	}
	return liveness.Open(r.t, o)
}

// known tells whoever listens who the ranks are.
func (r *rank) known() {
	names := make([]string, len(r.hosts))
	for rank := range names {
		names[rank] = fmt.Sprintf("%s (%s)", r.net.Place(rank), r.roles.Name(rank))
	}
	r.live.Know(names, r.log)
}

// giveUp ends the run with all nodes' states, after this rank has said why.
func (r *rank) giveUp() {
	switch {
	case r.live == nil:
		r.t.Abort(CodeStall)
	case !r.gaveUp:
		r.gaveUp = true
		r.live.GiveUp()
	}
}

// stall explains a wait that is too long, once, and ends the job when it is far too long. A worker says which shards
// it waits for, a server whom it waits for.
func (r *rank) stall() {
	limits := r.cfg.Stall
	if r.gaveUp {
		return
	}
	if r.reduce != nil {
		r.reduce.stall(limits)
		return
	}
	if s := r.server; s != nil && !s.done && !s.warned && s.node.Waiting() {
		if silent := r.now() - max(s.last, r.awake-r.trainStart+r.before); limits.Warn > 0 && silent >= limits.Warn {
			s.warned = true
			r.log.Warn("stall: " + s.explain(silent))
		}
	}
	w := r.worker
	if w == nil || w.done || !w.waiting() {
		return
	}
	waited := r.t.Now() - max(w.waitFrom, r.trainStart, r.awake)
	if limits.Warn > 0 && waited >= limits.Warn && w.warned != w.iter() {
		w.warned = w.iter()
		r.log.Warn("stall: " + r.explainWait(waited))
	}
	if limits.Abort > 0 && waited >= limits.Abort {
		r.log.Error("stall: " + r.explainWait(waited) + "; giving up after stall.abort " + limits.Abort.String())
		r.giveUp()
	}
}

// explainWaits says who is waited for, where that is known, however short the wait.
func (r *rank) explainWaits() {
	if r.trainStart == 0 || r.trainEnd > 0 || r.reduce != nil {
		return
	}
	if s := r.server; s != nil && !s.done && s.node.Waiting() {
		r.log.Warn(s.explain(r.now() - s.last))
	}
	if w := r.worker; w != nil && !w.done && w.waiting() {
		r.log.Warn(r.explainWait(r.t.Now() - max(w.waitFrom, r.trainStart)))
	}
}

// waiting says whether the rank can compute nothing before others have done something.
func (w *workerSide) waiting() bool {
	switch {
	case !w.waits:
		return false
	case w.node == nil:
		return true
	case w.lead != nil && w.lead.explain() != "":
		return true
	}
	return w.node.State() == core.Waiting || w.node.State() == core.Pushing
}

// iter is the iteration being computed, or the last one.
func (w *workerSide) iter() int64 {
	if w.node == nil {
		return w.member.iter
	}
	return w.node.Iter()
}

// explain names, for each shard that holds pulls back, the workers at the smallest clock: they are waited for.
func (s *serverSide) explain(silent time.Duration) string {
	text := fmt.Sprintf("server %d has heard nothing for %s", s.node.Me(), silent.Round(time.Second))
	for _, id := range s.node.Shards() {
		slowest, clock := s.node.Slowest(id)
		if len(slowest) == 0 {
			continue
		}
		sh := &s.r.plan.Shards[id]
		text += fmt.Sprintf("; shard %d %s (%s) waits for", id, sh.Name, s.r.cfg.Sync[sh.Rule].Schemes())
		for i, w := range slowest {
			if i == 4 {
				text += fmt.Sprintf(" and %d more", len(slowest)-i)
				break
			}
			text += fmt.Sprintf(" worker %d (%s)", w, s.r.net.Place(s.r.roles.Workers[w]))
		}
		text += fmt.Sprintf(": no push of iteration %d", clock)
	}
	return text
}

// explainWait says which shards this rank's worker waits for, and which servers' grants.
func (r *rank) explainWait(waited time.Duration) string {
	w := r.worker
	if w.member != nil {
		return w.member.explain(waited)
	}
	text := fmt.Sprintf("worker %d has waited %s to start iteration %d", w.me, waited.Round(time.Second), w.node.Iter()+1)
	if w.lead != nil {
		text += w.lead.explain()
	}
	for _, m := range w.node.Ungranted() {
		text += fmt.Sprintf("; its turn to push to server %d, %s", m, r.net.Place(r.roles.Servers[m]))
	}
	if w.node.AtBarrier() {
		text += "; the other workers at the barrier of rank 0"
	}
	missing := w.node.Missing()
	for i, id := range missing {
		if i == 4 {
			text += fmt.Sprintf(" and %d more", len(missing)-i)
			break
		}
		sh := &r.plan.Shards[id]
		text += fmt.Sprintf("; shard %d %s (%s) of server %d, %s", id, sh.Name, r.cfg.Sync[sh.Rule].Schemes(), sh.Server, r.net.Place(r.serverRank(id)))
	}
	return text
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
		r.log.Error(device.Error())
		r.t.Abort(CodeFailed)
		return
	}
	if res != nil {
		*res, *err = Result{Code: CodeFailed}, fmt.Errorf("bug in fluentps: %v", p)
	}
	seed := uint64(0)
	if r.cfg != nil {
		seed = r.cfg.Seed
	}
	r.log.Error(fmt.Sprintf("bug in fluentps: %v", p), "seed", seed, "stack", string(debug.Stack()))
	r.t.Abort(CodeFailed)
}
