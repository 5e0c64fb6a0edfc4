package coordinate

import (
	"syscall"
	"time"
)

// ProcessCPU is the user and system time that this process has used.
func ProcessCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // Getrusage fails only for a wrong argument
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpuTime adds up the CPU times of processes. Ranks that are goroutines of one process report the time of the same process.
func (r *Run) cpuTime(reports []report) time.Duration {
	type process struct {
		host string
		pid  int
	}
	counted := map[process]time.Duration{}
	var sum time.Duration
	for rank, rep := range reports {
		p := process{r.station.Hosts[rank], r.PIDs[rank]}
		if more := rep.CPU - counted[p]; more > 0 {
			counted[p] += more
			sum += more
		}
	}
	return sum
}
