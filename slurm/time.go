package slurm

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Asker runs a command of Slurm and gives what it prints.
type Asker func(ctx context.Context, name string, args ...string) (string, error)

// Ask is the Asker of this machine.
func Ask(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	return string(out), err
}

// Remaining is how long the job may still run. Slurm before 23.02 does not tell a job when it ends, so squeue is asked
// then. limited is false for a job without a limit of time.
func (j *Job) Remaining(ctx context.Context, now time.Time, ask Asker) (left time.Duration, limited bool, err error) {
	if !j.End.IsZero() {
		return j.End.Sub(now), true, nil
	}
	out, err := ask(ctx, "squeue", "--noheader", "--jobs="+j.name(), "--format=%L")
	if err != nil {
		return 0, false, fmt.Errorf("slurm: when job %s ends is not in SLURM_JOB_END_TIME, and squeue does not say: %w; state the time yourself", j.ID, err)
	}
	word, _, _ := strings.Cut(strings.TrimSpace(out), "\n") // of a heterogeneous job: its parts end together
	switch word {
	case "UNLIMITED", "NOT_SET":
		return 0, false, nil
	}
	left, err = parseLeft(word)
	if err != nil {
		return 0, false, fmt.Errorf("slurm: squeue says that job %s has %s left: %w; state the time yourself", j.ID, clip(word), err)
	}
	return left, true, nil
}

// parseLeft reads a span of time as Slurm prints it: days-hours:minutes:seconds, without leading parts that are zero.
func parseLeft(text string) (time.Duration, error) {
	days, clock, hasDays := strings.Cut(text, "-")
	if !hasDays {
		days, clock = "0", text
	}
	parts := strings.Split(clock, ":")
	if len(parts) < 2 || len(parts) > 3 {
		return 0, fmt.Errorf("want days-hours:minutes:seconds")
	}
	if len(parts) == 2 {
		parts = append([]string{"0"}, parts...)
	}
	seconds := time.Duration(0)
	for i, part := range append([]string{days}, parts...) {
		n, err := strconv.ParseUint(part, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("want days-hours:minutes:seconds")
		}
		seconds = seconds*[]time.Duration{1, 24, 60, 60}[i] + time.Duration(n)
	}
	return seconds * time.Second, nil
}

// marginMax is kept for what comes after training: final evaluation, summary, and ranks that leave one after the other.
const marginMax = time.Minute

// MaxTime is how long a run may train that has left until the job ends and needs checkpoint to write one: what remains
// after one checkpoint and a margin, a minute or a tenth of what is left. It is not negative.
func MaxTime(left, checkpoint time.Duration) time.Duration {
	return max(0, left-checkpoint-min(marginMax, left/10))
}
