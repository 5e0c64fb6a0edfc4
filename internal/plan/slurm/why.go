package slurm

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"fluentps/internal/disk/foreign"
)

// warnedMax is the longest time before the end of a job at which Slurm may send the signal of --signal that job scripts ask for: it
// sends it up to a minute early.
const warnedMax = warningTime + time.Minute

// standing is what scontrol tells of a job.
type standing struct {
	state, reason string
	restarts      int
	ran, limit    time.Duration // limit is 0 without one
	preempted     bool
}

// WhyStopped says what Slurm knows about a signal that has just stopped a run: whether it ends the job, and why. It asks scontrol,
// and where that does not answer looks at the end of the job that its environment tells.
func (j *Job) WhyStopped(ctx context.Context, now time.Time, ask Asker) string {
	out, err := ask(ctx, "scontrol", "show", "job", j.name())
	for wasKilled(err) && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond)
		out, err = ask(ctx, "scontrol", "show", "job", j.name())
	}
	s, ok := readStanding(out)
	if err != nil || !ok {
		if left := j.End.Sub(now); !j.End.IsZero() && left <= warnedMax {
			return j.nearLimit(left)
		}
		return fmt.Sprintf("Slurm does not say why (job %s)", j.ID)
	}
	left := s.limit - s.ran
	atLimit := s.limit > 0 && left <= 0
	switch state := s.state; {
	case s.restarts > j.Restarts, state == "REQUEUED":
		return fmt.Sprintf("job %s was requeued", j.ID)
	case s.reason == "TimeLimit", state == "TIMEOUT", atLimit:
		return fmt.Sprintf("job %s has reached its time limit of %s", j.ID, s.limit)
	case state == "PREEMPTED", s.preempted:
		return fmt.Sprintf("job %s was preempted: another job gets its nodes", j.ID)
	case state == "NODE_FAIL", s.reason == "NodeDown":
		return fmt.Sprintf("a node of job %s has failed", j.ID)
	case state != "RUNNING" && state != "SUSPENDED" && s.reason != "None":
		return fmt.Sprintf("Slurm ends job %s: %s", j.ID, foreign.Word(s.reason))
	case state != "RUNNING" && state != "SUSPENDED":
		return fmt.Sprintf("job %s was cancelled (scancel)", j.ID)
	case s.limit > 0 && left <= warnedMax:
		return j.nearLimit(left)
	case s.limit > 0:
		return fmt.Sprintf("Slurm does not end job %s, which has %s left", j.ID, left)
	}
	return fmt.Sprintf("Slurm does not end job %s, which has no time limit", j.ID)
}

// wasKilled says whether a signal has ended a command. Slurm sends the signal that stops a run to all processes of
// the job's step, one after the other, so it may also reach a command that the run has just started.
func wasKilled(err error) bool {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled()
}

// nearLimit says how long before its time limit the job is.
func (j *Job) nearLimit(left time.Duration) string {
	if left <= 0 {
		return fmt.Sprintf("job %s has reached its time limit", j.ID)
	}
	return fmt.Sprintf("job %s reaches its time limit in %s", j.ID, left.Round(time.Second))
}

// readStanding reads the output of scontrol show job; of a heterogeneous job, its first part. Only lines that hold no text of a user
// are read: the name of a job may look like a state.
func readStanding(out string) (s standing, ok bool) {
	for line := range strings.Lines(out) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		switch first, _, _ := strings.Cut(words[0], "="); first {
		case "JobState", "Requeue", "RunTime", "PreemptEligibleTime":
		default:
			continue
		}
		for _, word := range words {
			key, value, _ := strings.Cut(word, "=")
			switch key {
			case "JobState":
				if ok { // the next part
					return s, true
				}
				s.state, ok = value, true
			case "Reason":
				s.reason = value
			case "Restarts":
				s.restarts, _ = strconv.Atoi(value) // 0 if it cannot be read, and so below
			case "RunTime":
				s.ran, _ = parseLeft(value)
			case "TimeLimit":
				s.limit, _ = parseLeft(value)
			case "PreemptTime":
				s.preempted = value != "None"
			}
		}
	}
	return s, ok
}
