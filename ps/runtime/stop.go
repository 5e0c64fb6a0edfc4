package runtime

import (
	"encoding/json"
	"fmt"
	"time"

	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/ps/metrics"
)

// How a run ends that somebody outside stops early: a signal, or the time that it was given.

// SignalState is the signal at which a rank prints where it stands, and goes on.
const SignalState = "SIGUSR2"

// SignalAgain behind the name of a signal makes it the second one: the run leaves no checkpoint any more.
const SignalAgain = " again"

// cutShort ends training, or the evaluation after it, at somebody's wish. What was trained so far is good to go on with.
func (l *lead) cutShort(why string) {
	if l.reason == "" {
		l.early = true
	}
	l.halt("stopped by " + why)
}

// stopAsked is told that a signal came to a rank.
func (l *lead) stopAsked(s wire.StopAsked) {
	l.cutShort("a signal to " + l.r.net.Place(int(s.Rank)))
	if s.Again {
		l.hurry()
	}
}

// hurry gives up the checkpoint of the end. One whose files are being written already is finished.
func (l *lead) hurry() {
	if l.hasty || l.r.over {
		return
	}
	l.hasty = true
	l.r.hurried.Store(true)
	l.told(&l.unprinted, l.progress.Println("fluentps: asked again to stop: leaving without a checkpoint"))
}

// timeUp stops a run that has had its time. Rank 0 alone looks at the clock, so that all ranks stop in the same way.
func (l *lead) timeUp() {
	if limit := l.r.o.MaxTime; limit > 0 && l.reason == "" && time.Since(l.r.o.Start) >= limit {
		l.cutShort("--max-time, after " + limit.String())
	}
}

// code is the exit code of a run that was cut short: whoever may simply try it again is told apart.
func (l *lead) code() int {
	if !l.early {
		return CodeFailed
	}
	if why := l.nothingLeft(); why != "" {
		l.r.log.Warn("no checkpoint to go on from, and so exit code 1 in place of 75: " + why)
		return CodeFailed
	}
	if l.standsStill() {
		return CodeFailed
	}
	return CodeAgain
}

// standstillMax is how many runs in a row may go on from a checkpoint and come no further. Whoever tries again at
// code 75, as job scripts do, would do so for ever.
const standstillMax = 3

// standsStill says whether this run is the last of so many, and notes in the checkpoint how many there were.
func (l *lead) standsStill() bool {
	r := l.r
	if r.from == nil || l.version != r.from.state.Version {
		return false
	}
	s := &r.from.state
	s.Standstills++
	var err error
	if r.from.manifest.State, err = json.Marshal(s); err == nil {
		err = r.amend(r.from.dir, r.from.manifest)
	}
	if err != nil {
		r.log.Warn("cannot count how often the run came no further", "error", err)
	}
	if s.Standstills < standstillMax {
		return false
	}
	r.log.Warn(fmt.Sprintf("%s in a row went on from %s and came no further; getting ready took %s of this one's %s: give it more time, by --max-time or the time limit of the job; exit code 1 in place of 75",
		metrics.Count(s.Standstills, "run"), r.from.dir, r.setupEnd.Sub(r.o.Start).Round(time.Millisecond), time.Since(r.o.Start).Round(time.Millisecond)))
	return true
}

// nothingLeft says why there is no checkpoint with what was trained, or with some of it for who wanted no more; "" if there is one.
func (l *lead) nothingLeft() string {
	r := l.r
	switch {
	case l.saved != "" || r.from != nil && l.version == r.from.state.Version:
		return ""
	case r.hurried.Load() && l.newest != "":
		return ""
	case r.hurried.Load():
		return "a second signal asked to leave without one"
	case r.dir == "":
		return "there is no run folder"
	case r.cfg.Baseline == configs.BaselineAllreduce:
		return "baseline allreduce has no servers that could write one"
	case r.cfg.Checkpoint.Keep == 0:
		return "checkpoint.keep is 0; set it to 1 or more"
	case l.diverged:
		return "the parameters have diverged"
	}
	return "it could not be written" + l.newestText()
}

// newestText names the checkpoint that there is all the same, if there is one.
func (l *lead) newestText() string {
	if l.newest == "" {
		return ""
	}
	return "; the newest is " + l.newest
}

// printState says where the nodes of this rank stand, and lets them go on.
func (r *rank) printState() {
	if r.trainStart == 0 {
		r.log.Warn("state: not training yet")
		return
	}
	text := ""
	say := func(s string) { text += "; " + s }
	if r.server != nil {
		say(r.server.node.String())
	}
	if w := r.worker; w != nil {
		switch {
		case w.node != nil:
			say(w.node.String())
		case w.member != nil:
			say(fmt.Sprintf("member iter=%d readable=%d/%d busy=%t", w.member.iter, w.member.readable, len(w.pieces), w.member.busy))
		}
		if w.lead != nil {
			say(w.lead.team.String())
		}
	}
	if a := r.reduce; a != nil {
		say(fmt.Sprintf("allreduce version=%d begun=%d/%d open=%d", a.version, a.next, len(a.buckets), a.open))
	}
	r.log.Warn("state after " + r.now().Round(time.Millisecond).String() + " of training" + text)
}
