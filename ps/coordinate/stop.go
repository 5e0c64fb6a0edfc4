package coordinate

import (
	"encoding/json"
	"fmt"
	"time"

	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/ps/metrics"
	"fluentps/ps/station"
)

// How a run ends that somebody outside stops early: a signal, or the time that it was given.

// CutShort ends training, or the evaluation after it, at somebody's wish. What was trained so far is good to go on with.
func (l *Lead) CutShort(why string) {
	if l.end.reason == "" {
		l.end.early = true
	}
	l.halt("stopped by " + why)
}

// stopAsked is told that a signal came to a rank.
func (l *Lead) stopAsked(s wire.StopAsked) {
	l.CutShort("a signal to " + l.station.Net.Place(int(s.Rank)))
	if s.Again {
		l.Hurry()
	}
}

// Hurry gives up the checkpoint of the end. One whose files are being written already is finished.
func (l *Lead) Hurry() {
	if l.end.hasty || l.r.Over {
		return
	}
	l.end.hasty = true
	l.r.Hurried.Store(true)
	l.told(&l.out.unprinted, l.out.progress.Println("fluentps: asked again to stop: leaving without a checkpoint"))
}

// TimeUp stops a run that has had its time. Rank 0 alone looks at the clock, so that all ranks stop in the same way.
func (l *Lead) TimeUp() {
	if limit := l.r.o.Lead.MaxTime; limit > 0 && l.end.reason == "" && time.Since(l.r.o.Lead.Start) >= limit {
		l.CutShort("--max-time, after " + limit.String())
	}
}

// code is the exit code of a run that was cut short: whoever may simply try it again is told apart.
func (l *Lead) code() int {
	if !l.end.early {
		return station.CodeFailed
	}
	if why := l.nothingLeft(); why != "" {
		l.station.Log.Warn("no checkpoint to go on from, and so exit code 1 in place of 75: " + why)
		return station.CodeFailed
	}
	if l.standsStill() {
		return station.CodeFailed
	}
	return station.CodeAgain
}

// StandstillMax is how many runs in a row may go on from a checkpoint and come no further. Whoever tries again at
// code 75, as job scripts do, would do so for ever.
const StandstillMax = 3

// standsStill says whether this run is the last of so many, and notes in the checkpoint how many there were.
func (l *Lead) standsStill() bool {
	r := l.r
	if r.From == nil || l.counts.version != r.From.State.Version {
		return false
	}
	s := &r.From.State
	s.Standstills++
	var err error
	if r.From.Manifest.State, err = json.Marshal(s); err == nil {
		err = r.amend(r.From.Dir, r.From.Manifest)
	}
	if err != nil {
		r.station.Log.Warn("cannot count how often the run came no further", "error", err)
	}
	if s.Standstills < StandstillMax {
		return false
	}
	r.station.Log.Warn(fmt.Sprintf("%s in a row went on from %s and came no further; getting ready took %s of this one's %s: give it more time, by --max-time or the time limit of the job; exit code 1 in place of 75",
		metrics.Count(s.Standstills, "run"), r.From.Dir, r.SetupEnd.Sub(r.o.Lead.Start).Round(time.Millisecond), time.Since(r.o.Lead.Start).Round(time.Millisecond)))
	return true
}

// nothingLeft says why there is no checkpoint with what was trained, or with some of it for who wanted no more; "" if there is one.
func (l *Lead) nothingLeft() string {
	r := l.r
	switch {
	case l.kept.saved != "" || r.From != nil && l.counts.version == r.From.State.Version:
		return ""
	case r.Hurried.Load() && l.kept.newest != "":
		return ""
	case r.Hurried.Load():
		return "a second signal asked to leave without one"
	case r.Folder == nil:
		return "there is no run folder"
	case r.station.Config.Baseline == configs.BaselineAllreduce:
		return "baseline allreduce has no servers that could write one"
	case r.station.Config.Checkpoint.Keep == 0:
		return "checkpoint.keep is 0; set it to 1 or more"
	case l.end.diverged:
		return "the parameters have diverged"
	}
	return "it could not be written" + l.newestText()
}

// newestText names the checkpoint that there is all the same, if there is one.
func (l *Lead) newestText() string {
	if l.kept.newest == "" {
		return ""
	}
	return "; the newest is " + l.kept.newest
}
