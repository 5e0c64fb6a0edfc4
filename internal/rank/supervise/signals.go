package supervise

import (
	"os"
	"syscall"
	"time"
)

// Stages counts the signals that ask a run to stop. The first one asks for a checkpoint and a stop, the second for a
// stop without a checkpoint, the third ends the run at once.
type Stages struct {
	n  int
	at time.Time
}

// Apart is the least time between two signals that count as two: a rank may receive one key press both from the
// terminal and from its launcher.
const Apart = time.Second

// Next returns the stage of a signal, 0 if the signal repeats the last one.
func (s *Stages) Next(now time.Time) int {
	if s.n > 0 && now.Sub(s.at) < Apart {
		return 0
	}
	s.n, s.at = s.n+1, now
	return s.n
}

// askedToEnd returns whether a signal asked the run to end between two starts. SIGUSR2, which asks for the state, is
// ignored: there is none then.
func (s *supervisor) askedToEnd() bool {
	for len(s.Signals) > 0 {
		if <-s.Signals != syscall.SIGUSR2 {
			return true
		}
	}
	return false
}

// forwardAs returns the signal to send to the launcher, if any. Open MPI's launcher kills its ranks a second after
// SIGTERM, and at once after SIGHUP or a second SIGTERM, and a batch system that signals every process sends it one. So
// the first request to end is forwarded as SIGUSR1, which means the same to the ranks and leaves them their time.
func (s *supervisor) forwardAs(sig os.Signal, now time.Time) (as os.Signal, on bool) {
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT:
	case syscall.SIGHUP:
		return syscall.SIGUSR1, true
	default:
		return sig, true
	}
	switch s.stages.Next(now) {
	case 0:
		return nil, false
	case 1:
		return syscall.SIGUSR1, true
	}
	return sig, true
}
