package coordinate

import (
	"syscall"
	"time"
)

// ProcessCPU is the user and system time that this process has used.
func ProcessCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // only a wrong argument fails
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpuOf adds up the processes. Ranks that are goroutines of one process have all measured the same one.
func (r *Run) cpuOf(reports []report) time.Duration {
	type process struct {
		host string
		pid  int
	}
	of := map[process]time.Duration{}
	var sum time.Duration
	for rank, rep := range reports {
		p := process{r.station.Hosts[rank], r.PIDs[rank]}
		if more := rep.CPU - of[p]; more > 0 {
			of[p] += more
			sum += more
		}
	}
	return sum
}
