package gpucheck

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// Check is a line of the table of checks.
type Check struct {
	Name string
	// Budget is how long the check may take. A check with budget 0 takes an equal share of the time that is left when it starts,
	// with the checks behind it.
	Budget time.Duration
	// Elastic: beyond its budget, the check may take what the checks before it have left over of theirs.
	Elastic bool
	// Size says at what size the check works.
	Size func(Sizes) string
	// Run is the check, in the process of its own. It sends at least one row. An error is a row that fails.
	Run func(*Report) error
	// Gate: if the check fails, those behind it cannot succeed and are skipped.
	Gate bool
}

// Ending says how the process of a check ended.
type Ending struct {
	Over    bool      // its budget was spent
	Stopped os.Signal // gpu-check got it, and is to end; nil: none
	Err     error     // it could not be started, or it ended with an error
	Stderr  string    // the last lines of what it wrote there
}

// Runner runs checks and prints the table.
type Runner struct {
	Out, Err io.Writer
	Checks   []Check
	Limit    time.Duration // for all checks together
	Reserve  time.Duration // of the limit, which no check gets
	// Start runs a check, for at most the budget. It passes on the rows that the check sends.
	Start func(c Check, sizes Sizes, budget time.Duration, emit func(Row)) Ending
	Now   func() time.Time

	began    time.Time
	counts   map[Outcome]int
	emulated bool
}

// Run runs all checks and returns the exit code: 1 if a row failed or was over its budget.
func (r *Runner) Run() int {
	r.began, r.counts = r.Now(), map[Outcome]int{}
	fmt.Fprint(r.Out, "| check | size | outcome | at s |\n|---|---|---|---|\n")
	closed := "" // the gate that failed
	for i, c := range r.Checks {
		if closed != "" {
			r.print(Row{Name: c.Name, Size: c.Size(r.sizes()), Outcome: Skipped, Text: "the row \"" + closed + "\" says why"})
			continue
		}
		if failed, stopped := r.check(c, r.Checks[i+1:]); failed && c.Gate || stopped {
			closed = c.Name
		}
	}
	fmt.Fprintf(r.Out, "\n%d ok, %d failed, %d over budget, %d skipped, in %.0f of %.0f s\n", r.counts[OK],
		r.counts[Failed], r.counts[Over], r.counts[Skipped],
		r.Now().Sub(r.began).Seconds(), r.Limit.Seconds())
	if r.counts[Failed]+r.counts[Over] > 0 {
		return 1
	}
	return 0
}

func (r *Runner) sizes() Sizes {
	if r.emulated {
		return Emulated
	}
	return Card
}

// shareMin is what an elastic check leaves of the time for each check behind it that has no budget of its own.
const shareMin = 30 * time.Second

// budget is how long a check may take: of the time that is left, and with these checks behind it.
func (c Check) budget(left time.Duration, behind []Check) time.Duration {
	if c.Budget == 0 {
		return left / time.Duration(len(behind)+1)
	}
	rest := left
	for _, other := range behind {
		if rest -= other.Budget; other.Budget == 0 {
			rest -= shareMin
		}
	}
	if !c.Elastic {
		rest = 0
	}
	return min(max(c.Budget, rest), left)
}

// check runs one check. It says whether it failed, and whether no other may run.
func (r *Runner) check(c Check, behind []Check) (failed, stopped bool) {
	budget := c.budget(r.Limit-r.Reserve-r.Now().Sub(r.began), behind)
	if budget <= 0 {
		r.print(Row{Name: c.Name, Size: c.Size(r.sizes()), Outcome: Over, Text: fmt.Sprintf("no time left of %v", r.Limit)})
		return true, false
	}
	rows := 0
	ending := r.Start(c, r.sizes(), budget, func(row Row) {
		rows++
		r.emulated = r.emulated || row.Emulated
		failed = failed || row.Outcome == Failed
		r.print(row)
	})
	last := Row{Name: c.Name, Size: c.Size(r.sizes()), Outcome: Failed}
	switch {
	case ending.Stopped != nil:
		last.Text = fmt.Sprintf("gpu-check was ended: %v", ending.Stopped)
	case ending.Over:
		last.Outcome, last.Text = Over, fmt.Sprintf("ended after %v", budget.Round(time.Millisecond))
	case ending.Err != nil && !failed:
		last.Text = ending.Err.Error()
	case rows == 0:
		last.Text = "it ended without an outcome"
	default:
		last.Outcome = ""
	}
	if last.Outcome != "" {
		failed = true
		r.print(last)
	}
	if failed && ending.Stderr != "" {
		fmt.Fprintf(r.Err, "%s:\n    %s\n", c.Name, strings.ReplaceAll(strings.TrimSpace(ending.Stderr), "\n", "\n    "))
	}
	return failed, ending.Stopped != nil
}

func (r *Runner) print(row Row) {
	r.counts[row.Outcome]++
	fmt.Fprintf(r.Out, "| %s | %s | %s | %.0f |\n", cell(row.Name), cell(row.Size), row.outcome(), r.Now().Sub(r.began).Seconds())
}
