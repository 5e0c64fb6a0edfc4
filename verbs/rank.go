package verbs

import (
	"errors"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"time"

	"fluentps/comm"
	"fluentps/kernels"
	ps "fluentps/ps/runtime"
)

// outcome is how one rank ended.
type outcome struct {
	code  int
	ended bool // with the whole world, and not in order
}

// drive runs one rank to its end and closes its transport, or ends the whole world. Over MPI the latter does not return.
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
		late := j.endBy(t, res.Code)
		err = t.Close()
		late.Stop()
		if err == nil {
			return outcome{code: res.Code}
		}
		if errors.Is(err, comm.ErrStuck) { // the run itself is over, and all ranks know its code
			t.Abort(outward(res.Code, os.Args))
		}
		if !errors.As(err, &aborted) {
			return j.abort(t, err)
		}
	}
	if errors.As(err, &aborted) { // by another rank, which has said why
		return outcome{code: aborted.Code, ended: true}
	}
	t.Abort(codeFailed) // Run has said why
	return outcome{code: codeFailed, ended: true}
}

// endBy has this process leave with the code of the run, which is over for all, where the ranks cannot take leave of each other
// within stall.peer: one may be stopped, and none listens to heartbeats any more.
func (j *job) endBy(t comm.Transport, code int) *time.Timer {
	never := time.Duration(math.MaxInt64)
	limit := never
	if j.cfg != nil && j.cfg.Stall.Peer > 0 {
		limit = j.cfg.Stall.Peer
	}
	return time.AfterFunc(limit, func() {
		printError(j.warn, fmt.Sprintf("rank %d: the run is over, but not all ranks have left within stall.peer %s; leaving with code %d", t.Rank(), limit, code))
		t.Abort(outward(code, os.Args))
	})
}

// abort says why this rank ends the world, and ends it.
func (j *job) abort(t comm.Transport, why error) outcome {
	printError(j.warn, fmt.Sprintf("rank %d: %v", t.Rank(), why))
	t.Abort(codeFailed)
	return outcome{code: codeFailed, ended: true}
}

// crash is a panic: a device that failed, or a bug of ours.
func crash(p any) error {
	var device *kernels.Failure
	if err, ok := p.(error); ok && errors.As(err, &device) {
		return device
	}
	return fmt.Errorf("bug in fluentps: %v\n%s", p, debug.Stack())
}
