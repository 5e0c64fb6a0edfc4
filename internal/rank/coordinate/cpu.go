package coordinate

import (
	"bytes"
	"fmt"
	"os"
	"syscall"
	"time"

	"fluentps/internal/comm"
	"fluentps/internal/show/metrics"
)

// ProcessCPU is the user and system time that this process has used.
func ProcessCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0 // Getrusage fails only for a wrong argument
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// processPeak is the most memory that this process has had at once in bytes, shared memory that it has touched
// included; 0 if the system does not tell.
func processPeak() (peak int64) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		if _, err := fmt.Sscanf(string(line), "VmHWM: %d kB", &peak); err == nil {
			return peak << 10
		}
	}
	return 0
}

// process is the process of a rank. Ranks may be goroutines of one process.
type process struct {
	host string
	pid  int
}

func (r *Run) processOf(rank int) process { return process{r.station.Hosts[rank], r.PIDs[rank]} }

// memory lists the peaks of the ranks, and counts their processes. It returns nil if a rank does not know its peak.
func (r *Run) memory(reports []report) *metrics.Memory {
	m := &metrics.Memory{}
	processes := map[process]bool{}
	for rank, rep := range reports {
		if rep.Peak == 0 {
			return nil
		}
		processes[r.processOf(rank)] = true
		if rep.Peak > m.PeakBytesMax {
			m.PeakBytesMax, m.Rank, m.Role, m.Host = rep.Peak, rank, r.station.Roles.Name(rank), r.station.Hosts[rank]
		}
		m.PeakBytes = append(m.PeakBytes, rep.Peak)
	}
	m.Processes = len(processes)
	return m
}

// cpuTime adds up the CPU times of processes. Ranks that are goroutines of one process report the time of the same process.
func (r *Run) cpuTime(reports []report) time.Duration {
	counted := map[process]time.Duration{}
	var sum time.Duration
	for rank, rep := range reports {
		p := r.processOf(rank)
		if more := rep.CPU - counted[p]; more > 0 {
			counted[p] += more
			sum += more
		}
	}
	return sum
}

// crowded says whether the ranks of this host outnumber its cores.
func crowded(t comm.Transport) bool {
	c, asks := t.(comm.Crowded)
	return asks && c.Crowded()
}
