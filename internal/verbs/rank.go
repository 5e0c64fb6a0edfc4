package verbs

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"time"

	"fluentps/internal/comm"
	ps "fluentps/internal/rank/runtime"
	"fluentps/kernels"
)

// outcome is how one rank ended.
type outcome struct {
	code  int
	ended bool // the whole world was aborted
}

// drive runs one rank to its end and closes its transport. If that fails it aborts the whole world, and over MPI does not
// return.
func (j *job) drive(t comm.Transport, o ps.Options) (end outcome) {
	defer func() {
		if p := recover(); p != nil {
			end = j.abort(t, crash(p))
		}
	}()
	res, err := ps.Run(o)
	var agreed *ps.ExitError
	var aborted *comm.AbortError
	if err == nil || errors.As(err, &agreed) {
		if agreed != nil && t.Rank() == 0 {
			printError(j.warn, agreed.Text)
		}
		timeout := j.abortAfterTimeout(t, res.Code)
		err = t.Close()
		timeout.Stop()
		if err == nil {
			if t.Rank() == 0 {
				j.whatIf(&res)
			}
			j.report(res.Dir, res.Start)
			if res.Dir != "" {
				j.sweepEnds(res.Dir)
			}
			return outcome{code: res.Code}
		}
		if errors.Is(err, comm.ErrStuck) { // the run itself is over, and all ranks know its code
			t.Abort(exitCodeFor(res.Code, os.Args))
		}
		if !errors.As(err, &aborted) {
			return j.abort(t, err)
		}
	}
	if errors.As(err, &aborted) { // another rank aborted, and has reported the cause
		return outcome{code: aborted.Code, ended: true}
	}
	t.Abort(codeFailed) // Run has reported the cause
	return outcome{code: codeFailed, ended: true}
}

// abortAfterTimeout starts a timer of stall.peer for closing the transport. When the timer fires, this process exits with the
// code of the run, which is over for all ranks: one rank may be stopped, and no failure detector runs any more.
func (j *job) abortAfterTimeout(t comm.Transport, code int) *time.Timer {
	never := time.Duration(math.MaxInt64)
	limit := never
	if j.cfg != nil && j.cfg.Stall.Peer > 0 {
		limit = j.cfg.Stall.Peer
	}
	return time.AfterFunc(limit, func() {
		printError(j.warn, fmt.Sprintf("rank %d: the run is over, but not all ranks have left within stall.peer %s; this "+
			"rank exits with code %d", t.Rank(), limit, code))
		t.Abort(exitCodeFor(code, os.Args))
	})
}

// abort reports why this rank aborts the world, and aborts it.
func (j *job) abort(t comm.Transport, why error) outcome {
	printError(j.warn, fmt.Sprintf("rank %d: %v", t.Rank(), why))
	t.Abort(codeFailed)
	return outcome{code: codeFailed, ended: true}
}

// crash turns the value of a panic into an error: a device that failed, or a bug of fluentps.
func crash(p any) error {
	var device *kernels.Failure
	if err, ok := p.(error); ok && errors.As(err, &device) {
		return device
	}
	return fmt.Errorf("bug in fluentps: %v\n%s", p, debug.Stack())
}
