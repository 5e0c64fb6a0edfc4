package supervise

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"fluentps/internal/disk/checkpoint"
	"fluentps/internal/disk/durable"
	"fluentps/internal/rank/station"
	"fluentps/internal/show/metrics"
)

// word is what the summary of a start says about its end.
type word int

const (
	wordNone     word = iota // there is no summary, or another start has left it
	wordFailed               // the run has failed, and would again
	wordTarget               // it has missed its target
	wordStopped              // it was asked to stop, or its time was over
	wordUnheard              // it stopped because its launcher was killed: nobody read its output any more, or the supervisor said so
	wordFinished             // it has finished
)

// evidence is what a start has left of its end. Only what names this start counts.
type evidence struct {
	word  word
	whole error // why the checkpoint that the summary names is not whole; nil if it is, or if a finished run keeps none
}

// errNoCheckpoint: the run names no checkpoint to resume from.
var errNoCheckpoint = fmt.Errorf("it names no checkpoint")

// readEvidence reads what the start with that token has left in a run folder.
func readEvidence(dir, token string) (e evidence) {
	var s struct{ Start, Finished, Checkpoint string }
	data, err := durable.ReadFile(filepath.Join(dir, metrics.SummaryName), metrics.SummaryMax)
	if err != nil || json.Unmarshal(data, &s) != nil || s.Start != token {
		return evidence{}
	}
	switch {
	case s.Finished == metrics.FinishedOK:
		e.word = wordFinished
	case strings.HasPrefix(s.Finished, metrics.FinishedStopped+metrics.OutputClosed):
		e.word = wordUnheard
	case strings.HasPrefix(s.Finished, metrics.FinishedStopped):
		e.word = wordStopped
	case strings.HasPrefix(s.Finished, "target "):
		e.word = wordTarget
	default:
		e.word = wordFailed
	}
	switch {
	case s.Checkpoint != "":
		e.whole = checkpoint.Whole(filepath.Join(dir, checkpoint.Folder, filepath.Base(s.Checkpoint)))
	case e.word != wordFinished:
		e.whole = errNoCheckpoint
	}
	return e
}

// judge returns whether a run is over with a start, and its exit code then, from the exit code of the launcher and from what
// the start has left. asked: a signal asked the run to end. What a run itself said last counts for more than how its
// processes ended after that; FAULTS.md has the table.
func judge(launcher int, e evidence, asked bool) (code int, over bool) {
	byLauncher := endingOf(launcher)
	switch {
	case e.word == wordFinished && e.whole == nil:
		return 0, true
	case e.word == wordTarget, e.word == wordFailed && launcher == station.CodeTarget: // it missed another demand of --require
		return station.CodeTarget, true
	case e.word == wordFailed:
		return codeFailed, true
	case byLauncher.byRun: // also where it had no room to write a summary
		return byLauncher.code, true
	case e.word == wordStopped && e.whole == nil && launcher != codeFailed: // 1 is its own, at a standstill
		return codeStopped, true
	case e.word == wordUnheard && e.whole == nil && asked:
		return codeStopped, true
	case asked && launcher == station.CodeStall:
		return byLauncher.code, true
	}
	return codeFailed, asked || e.word == wordStopped
}

// conclude is judge for the start with that token, which has just ended. left: its launcher had left processes behind, and
// the supervisor asked them to stop.
func (s *supervisor) conclude(launcher int, token string, left bool) (end End, over bool) {
	e := readEvidence(s.Dir, token)
	if left && e.word == wordStopped { // nobody else may have wanted that
		e.word = wordUnheard
	}
	code, over := judge(launcher, e, s.stopped)
	if over && code == 0 && launcher != 0 {
		s.Say(fmt.Sprintf("WARNING: the launcher left with code %d after the run had finished; %s says ok, and nothing is missing",
			launcher, filepath.Join(s.Dir, metrics.SummaryName)))
	}
	if e.word == wordFinished && e.whole != nil {
		s.Say(fmt.Sprintf("WARNING: %s says ok, but its checkpoint is not whole, so the run has not finished: %v",
			filepath.Join(s.Dir, metrics.SummaryName), e.whole))
	}
	return End{Code: code}, over
}
