package supervise

import (
	"os"
	"syscall"
	"time"
)

// Stages counts the signals that ask a run to stop. The first one has a checkpoint written, the second has the run stop without, the
// third ends the run at once.
type Stages struct {
	n  int
	at time.Time
}

// Apart is how much later than the last stage a signal must come to count as the next: a rank may hear of one key press from
// the terminal and from its launcher.
const Apart = time.Second

// Next is the stage that a signal stands for, 0 if the signal repeats the last one.
func (s *Stages) Next(now time.Time) int {
	if s.n > 0 && now.Sub(s.at) < Apart {
		return 0
	}
	s.n, s.at = s.n+1, now
	return s.n
}

// ended says whether somebody asked the run to end between two starts. There is no state to print then.
func (s *supervisor) ended() bool {
	for len(s.Signals) > 0 {
		if <-s.Signals != syscall.SIGUSR2 {
			return true
		}
	}
	return false
}

// handOn is the signal that the launcher gets. Open MPI's launcher kills its ranks a second after SIGTERM, and at once after two, of
// which a batch system that signals every process sends it one, and after SIGHUP. So the first wish to end goes on as SIGUSR1,
// which means the same to the ranks and leaves them their time.
func (s *supervisor) handOn(sig os.Signal, now time.Time) (as os.Signal, on bool) {
	switch sig {
	case syscall.SIGTERM, syscall.SIGINT:
	case syscall.SIGHUP:
		return syscall.SIGUSR1, true
	default:
		return sig, true
	}
	switch s.asked.Next(now) {
	case 0:
		return nil, false
	case 1:
		return syscall.SIGUSR1, true
	}
	return sig, true
}
