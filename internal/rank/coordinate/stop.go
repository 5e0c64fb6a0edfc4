package coordinate

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/plan/origin"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
)

// The end of a run that is stopped early from outside: by a signal, or by its time limit.

// CutShort ends training early, or the evaluation after it. The run can be resumed.
func (l *Lead) CutShort(why string) {
	if l.end.reason == "" {
		l.end.stoppedEarly = true
	}
	l.halt(metrics.FinishedStopped + why)
}

// SignalStops is CutShort after a signal. The batch system may have sent it, and is asked why.
func (l *Lead) SignalStops(signal string) {
	if ask := l.r.o.Lead.WhyStopped; ask != nil && l.end.reason == "" && !l.r.EndDecided {
		l.end.why = make(chan string, 1)
		go func(to chan<- string) { to <- ask() }(l.end.why)
	}
	l.CutShort(signal)
}

// whyMax is how long the end of a run waits for the batch system's answer: it kills its job soon.
const whyMax = 4500 * time.Millisecond

// explainSignal adds to the reason of the end what the batch system has answered. Most of the time the final checkpoint took longer.
func (l *Lead) explainSignal() {
	if l.end.why == nil || !strings.HasPrefix(l.end.reason, metrics.FinishedStopped) { // it diverged, too
		return
	}
	select {
	case why := <-l.end.why:
		if why != "" {
			reason, unevaluated := strings.CutSuffix(l.end.reason, metrics.Unevaluated)
			l.end.reason = reason + ": " + why
			if unevaluated {
				l.end.reason += metrics.Unevaluated
			}
		}
	case <-time.After(whyMax):
	}
}

// stopAsked handles a signal that a rank has received, or a value that it has found.
func (l *Lead) stopAsked(s wire.StopAsked) {
	if s.Diverged {
		l.diverged(l.station.Net.Place(int(s.Rank)) + " has found a value that is not finite")
		return
	}
	l.SignalStops("a signal to " + l.station.Net.Place(int(s.Rank)))
	if s.Again {
		l.SkipCheckpoint()
	}
}

// diverged ends training, because parameters are or will be useless. The findings of all ranks say where it began: see nameOrigin.
func (l *Lead) diverged(what string) {
	if l.end.diverged = true; l.r.TrainEnd == 0 && !l.r.stopping() {
		l.halt("diverged: " + what)
	}
}

// nameOrigin says where the first value that is not finite arose, if any did, once all ranks have told what they found.
func (l *Lead) nameOrigin(reports []report) {
	var all []origin.Finding
	for _, rep := range reports {
		if rep.Server != nil {
			all = append(all, rep.Server.Findings...)
		}
		if rep.Worker != nil {
			all = append(all, rep.Worker.Findings...)
		}
	}
	f, found := origin.First(all)
	if !found || l.end.reason != "" && !l.end.diverged {
		return
	}
	if _, pull := l.station.Config.Payload.Encoded(); f.Place == origin.Parameters && f.Caused && f.Server == origin.Nobody && pull {
		f.Place, f.Pull = origin.Payload, true
	}
	l.end.diverged, l.end.reason = true, origin.Explain(&f, l.station.Config, l.station.Set.Largest())
}

// besideConstant adds the loss of a constant prediction to the summary of a run that was not cut short, and says whether that of the run is
// far above it.
func (r *Run) besideConstant(s *metrics.Summary) string {
	table := r.station.Set.Test
	if s.TestLoss == nil {
		table = r.station.Set.Train
	}
	if r.Lead.end.reason != "" || table.Rows() == 0 || r.station.Set.Elsewhere {
		return ""
	}
	s.ConstantLoss = metrics.Some(r.station.Set.ConstantLoss(table, r.station.Config.Model.HuberDelta()))
	if s.BesideConstant() != "" {
		s.WorseHint = origin.Worse(r.station.Config, r.station.Set.Largest())
	}
	return s.BesideConstant()
}

// SkipCheckpoint gives up the final checkpoint. A checkpoint whose files are already being written is finished.
func (l *Lead) SkipCheckpoint() {
	if l.end.skipCheckpoint || l.r.EndDecided {
		return
	}
	l.end.skipCheckpoint = true
	l.r.SkipCheckpoint.Store(true)
	l.noteFailure(&l.out.printFailing, l.out.progress.Println("fluentps: asked again to stop: leaving without a checkpoint"))
}

// CheckMaxTime stops a run whose time is up. Rank 0 alone looks at the clock, so that all ranks stop in the same way.
func (l *Lead) CheckMaxTime() {
	if limit := l.r.o.Lead.MaxTime; limit > 0 && l.end.reason == "" && time.Since(l.r.o.Lead.Start) >= limit {
		l.CutShort("--max-time, after " + limit.String())
	}
}

// code is the exit code of a run that was cut short. CodeAgain says that the same command may be started again.
func (l *Lead) code() int {
	if !l.end.stoppedEarly {
		return station.CodeFailed
	}
	if why := l.noCheckpointReason(); why != "" {
		l.station.Log.Warn("no checkpoint to resume from, so exit code 1 in place of 75: " + why)
		return station.CodeFailed
	}
	if l.atStandstill() {
		return station.CodeFailed
	}
	return station.CodeAgain
}

// StandstillMax is how many runs in a row may resume from the same checkpoint without progress. A job script that starts
// the run again after code 75 would do so for ever.
const StandstillMax = 3

// atStandstill says whether this run is the last of so many, and counts it in the checkpoint.
func (l *Lead) atStandstill() bool {
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
		r.station.Log.Warn("cannot count the runs without progress", "error", err)
	}
	if s.Standstills < StandstillMax {
		return false
	}
	r.station.Log.Warn(fmt.Sprintf("%s in a row resumed from %s and made no progress; setup took %s of the %s of this "+
		"run: give it more time, by --max-time or the time limit of the job; exit code 1 in place of 75",
		metrics.Count(s.Standstills, "run"), r.From.Dir, r.SetupEnd.Sub(r.o.Lead.Start).Round(time.Millisecond),
		time.Since(r.o.Lead.Start).Round(time.Millisecond)))
	return true
}

// noCheckpointReason says why there is no checkpoint with the trained parameters, or, for a user who wanted no final one,
// with earlier ones; "" if there is one.
func (l *Lead) noCheckpointReason() string {
	r := l.r
	switch {
	case l.checkpoints.final != "" || r.From != nil && l.counts.version == r.From.State.Version:
		return ""
	case r.SkipCheckpoint.Load() && l.checkpoints.newest != "":
		return ""
	case r.SkipCheckpoint.Load():
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

// endsIn names the checkpoint that the run resumes from if it is continued, in the run folder; "" if there is none.
func (l *Lead) endsIn() string {
	r := l.r
	dir := l.checkpoints.final
	switch {
	case dir != "" || r.Folder == nil || l.end.diverged:
	case r.From != nil && l.counts.version == r.From.State.Version && r.Search.Adopted == "":
		dir = r.From.Dir
	case r.SkipCheckpoint.Load():
		dir = l.checkpoints.newest
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(checkpoint.Folder, filepath.Base(dir))
}

// newestText names the newest checkpoint, if there is one.
func (l *Lead) newestText() string {
	if l.checkpoints.newest == "" {
		return ""
	}
	return "; the newest is " + l.checkpoints.newest
}
