package train

import (
	"fmt"
	"strings"
	"time"

	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/show/status"
)

// waiting says whether the rank can compute nothing until another rank acts.
func (w *Side) waiting() bool {
	switch {
	case !w.idle.on:
		return false
	case w.node == nil:
		return true
	case w.leader != nil && w.leader.explain() != "":
		return true
	}
	return w.node.State() == core.Waiting || w.node.State() == core.Pushing
}

// iter is the current iteration, or the last one.
func (w *Side) iter() int64 {
	if w.node == nil {
		return w.member.iter
	}
	return w.node.Iter()
}

// explainWait names the shards and the grants of servers that the worker waits for.
func (w *Side) explainWait(waited time.Duration) string {
	r := w.station
	if w.member != nil {
		return w.member.explain(waited)
	}
	text := fmt.Sprintf("worker %d has waited %s to start iteration %d", w.me, waited.Round(time.Second), w.node.Iter()+1)
	if w.leader != nil {
		text += w.leader.explain()
	}
	text += w.dealing.explain()
	for _, m := range w.node.Ungranted() {
		text += fmt.Sprintf("; its turn to push to server %d, %s", m, r.Net.Place(r.Roles.Servers[m]))
	}
	if w.node.AtBarrier() {
		text += "; the other workers at the barrier of rank 0"
	}
	if tasks := w.node.Tasks(); tasks != "" {
		text += "; " + tasks
	}
	missing := w.node.Missing()
	for i, id := range missing {
		if i == 4 {
			text += fmt.Sprintf(" and %d more", len(missing)-i)
			break
		}
		sh := &r.Plan.Shards[id]
		text += fmt.Sprintf("; shard %d %s (%s) of server %d, %s", id, sh.Name, r.Config.Sync[sh.Rule].Schemes(), sh.Server,
			r.Net.Place(r.ServerRank(id)))
	}
	return text
}

// Stalled returns a warning if the worker has waited for at least limits.Warn and has not warned in this iteration, and the
// reason to abort if it has waited for at least limits.Abort; else "". A wait counts from the time awake at the earliest.
func (w *Side) Stalled(limits configs.Stall, awake time.Duration) (warning, abort string) {
	if w.done || !w.waiting() {
		return "", ""
	}
	waited := w.station.Transport.Now() - max(w.idle.from, w.station.Began, awake)
	if limits.Warn > 0 && waited >= limits.Warn && w.idle.warned != w.iter() {
		w.idle.warned = w.iter()
		warning = w.explainWait(waited)
	}
	if limits.Abort > 0 && waited >= limits.Abort {
		abort = w.explainWait(waited)
	}
	return warning, abort
}

// WaitsFor says what the worker waits for, however short the wait; "" if it does not wait.
func (w *Side) WaitsFor() string {
	if w.done || !w.waiting() {
		return ""
	}
	return w.explainWait(w.station.Transport.Now() - max(w.idle.from, w.station.Began))
}

// Status is what the worker does now.
func (w *Side) Status() *status.Worker {
	r := w.station
	of := &status.Worker{Name: fmt.Sprintf("w%d", w.me), Iteration: w.iter(), Doing: status.Computes}
	if w.member != nil {
		of.Name = r.Roles.Name(r.Me)
	}
	switch {
	case w.done:
		of.Doing = status.IsDone
	case w.waiting():
		of.Doing, of.ForS = status.Waits, (r.Transport.Now() - max(w.idle.from, r.Began)).Seconds()
		w.addWaits(of)
	case w.node != nil && w.node.State() == core.Pushing:
		of.Doing = status.Pushes
	}
	return of
}

// addWaits adds what the worker waits for.
func (w *Side) addWaits(of *status.Worker) {
	r := w.station
	add := func(text string) {
		if text = strings.TrimPrefix(text, "; "); text != "" {
			of.Others = append(of.Others, text)
		}
	}
	if w.member != nil {
		add("its leader, " + r.Roles.Name(w.member.leader))
		return
	}
	if w.leader != nil {
		add(w.leader.explain())
	}
	add(w.dealing.explain())
	for _, m := range w.node.Ungranted() {
		add(fmt.Sprintf("its turn to push to s%d", m))
	}
	if w.node.AtBarrier() {
		add("the other workers at the barrier of rank 0")
	}
	add(w.node.Tasks())
	for _, id := range w.node.Missing() {
		sh := &r.Plan.Shards[id]
		of.Shards = append(of.Shards, status.Shard{Shard: id, Scheme: r.Config.Sync[sh.Rule].Schemes(), Server: sh.Server})
	}
}

// Text describes the state of the worker.
func (w *Side) Text() string {
	switch {
	case w.leader != nil:
		return w.node.String() + "; " + w.leader.team.String()
	case w.node != nil:
		return w.node.String()
	}
	return fmt.Sprintf("member iter=%d readable=%d/%d busy=%t", w.member.iter, w.member.readable, len(w.pieces), w.member.busy)
}
