package runtime

import (
	"fmt"
	"runtime/debug"
	"time"

	"fluentps/ps/core"
)

// beatEvery is how often a rank looks at the clock when nothing else happens.
const beatEvery = 100 * time.Millisecond

// watch posts beats and interrupts to the goroutine that drives, until stop is closed.
func (r *rank) watch(stop <-chan struct{}) {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case name := <-r.o.Interrupt:
			r.t.Post(func() { r.interrupted(name) })
		case <-tick.C:
			r.t.Post(r.beat)
		}
	}
}

// interrupted ends the run early and orderly. Launchers send their signal to every rank; rank 0 acts.
func (r *rank) interrupted(name string) {
	r.log.Info("signal", "name", name)
	if r.lead == nil || r.trainEnd > 0 {
		return
	}
	if r.lead.reason == "" {
		r.lead.reason = "stopped by " + name
		r.fail(r.lead.progress.Println("fluentps: " + name + ": finishing the running iterations"))
	}
	r.lead.stop()
}

func (r *rank) beat() {
	if r.trainEnd > 0 || r.trainStart == 0 {
		return
	}
	if r.lead != nil {
		r.lead.beat()
		if limit := r.cfg.Train.Stop.Time; limit > 0 && r.now() >= limit {
			r.lead.stop()
		}
	}
	r.stall()
}

// stall explains a wait that is too long, once per iteration, and ends the job when it is far too long.
func (r *rank) stall() {
	w := r.worker
	if w == nil || w.done || w.node.State() != core.Waiting {
		return
	}
	waited := r.t.Now() - max(w.waitFrom, r.trainStart)
	limits := r.cfg.Stall
	if limits.Warn > 0 && waited >= limits.Warn && w.warned != w.node.Iter() {
		w.warned = w.node.Iter()
		r.log.Warn("stall: " + r.explainWait(waited))
	}
	if limits.Abort > 0 && waited >= limits.Abort {
		r.log.Error("stall: " + r.explainWait(waited) + "; giving up after stall.abort " + limits.Abort.String())
		r.t.Abort(CodeStall)
	}
}

// explainWait says what this rank waits for, and why, as far as it knows.
func (r *rank) explainWait(waited time.Duration) string {
	w := r.worker
	text := fmt.Sprintf("worker %d has waited %s to start iteration %d", w.me, waited.Round(time.Second), w.node.Iter()+1)
	missing := w.node.Missing()
	for i, id := range missing {
		if i == 4 {
			text += fmt.Sprintf(" and %d more", len(missing)-i)
			break
		}
		sh := &r.plan.Shards[id]
		text += fmt.Sprintf("; shard %d %s (%s) of server %d, %s", id, sh.Name, r.cfg.Sync[sh.Rule].Scheme, sh.Server, r.place(r.serverRank(id)))
	}
	if r.server != nil {
		text += "; here: " + r.server.node.String()
	}
	return text
}

// guard turns a panic, which is a bug of ours, into a report with rank and seed and the end of all ranks.
// Without it the other ranks would wait for this one.
// res and err, where there are any, become what the caller of a rank that panicked gets.
func (r *rank) guard(res *Result, err *error) {
	p := recover()
	if p == nil {
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
