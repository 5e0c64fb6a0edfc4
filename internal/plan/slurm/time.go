package slurm

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Asker runs a command of Slurm and returns its output.
type Asker func(ctx context.Context, name string, args ...string) (string, error)

// Ask is the Asker for this machine.
func Ask(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = 100 * time.Millisecond // a child of the command may hold its output open
	out, err := cmd.Output()
	return string(out), err
}

// Remaining returns how long the job may still run. It asks squeue if the environment does not say: Slurm before 23.02
// does not tell a job when it ends. limited is false for a job without a time limit.
func (j *Job) Remaining(ctx context.Context, now time.Time, ask Asker) (left time.Duration, limited bool, err error) {
	if !j.End.IsZero() {
		return j.End.Sub(now), true, nil
	}
	out, err := ask(ctx, "squeue", "--noheader", "--jobs="+j.name(), "--format=%L")
	if err != nil {
		return 0, false, fmt.Errorf("slurm: the end of job %s is not in SLURM_JOB_END_TIME, and squeue does not give it: "+
			"%w; give the time yourself", j.ID, err)
	}
	word, _, _ := strings.Cut(strings.TrimSpace(out), "\n") // the parts of a heterogeneous job end together
	switch word {
	case "UNLIMITED", "NOT_SET":
		return 0, false, nil
	}
	left, err = parseLeft(word)
	if err != nil {
		return 0, false, fmt.Errorf("slurm: squeue says that job %s has %s left: %w; give the time yourself", j.ID, clip(word), err)
	}
	return left, true, nil
}

// parseLeft reads a duration as Slurm prints it: days-hours:minutes:seconds, without leading parts that are zero.
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

// marginMax is reserved for the end of a run: final evaluation, summary, and the exit of all ranks.
const marginMax = time.Minute

// MaxTime returns how long a run may train, for a job that ends after left and needs checkpoint for writing one: left
// without one checkpoint and a margin of a minute or a tenth of left. It is not negative.
func MaxTime(left, checkpoint time.Duration) time.Duration {
	return max(0, left-checkpoint-min(marginMax, left/10))
}
