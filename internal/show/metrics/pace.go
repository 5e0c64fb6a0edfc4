package metrics

import (
	"slices"
	"time"
)

// Pace records how long the iterations of a worker took to compute, so that workers can be compared after the run: as means over
// windows of the whole run, and one by one for the first iterations. It belongs to one goroutine at a time.
type Pace struct {
	Every   int64           `json:"every"`   // iterations in each window
	Windows []time.Duration `json:"windows"` // the mean of each full window
	First   []time.Duration `json:"first"`   // the first iterations, without the very first one, in which caches are cold

	firstMax int           // the most entries of First
	added    int64         // iterations in all
	sum      time.Duration // over the window that is not full yet
	in       int64         // iterations in that window
}

// paceWindows bounds the windows of a worker. When the bound is reached, each two windows become one.
const paceWindows = 64

// paceFirstAll bounds First over all workers together. The bound of one worker is within paceFirstMin and paceFirstMax.
const (
	paceFirstAll = 1 << 19
	paceFirstMin = 64
	paceFirstMax = 512
)

// NewPace returns the Pace of one of so many workers.
func NewPace(workers int) Pace {
	return Pace{Every: 1, firstMax: min(paceFirstMax, max(paceFirstMin, paceFirstAll/max(1, workers)))}
}

// Add records the computing time of the next iteration.
func (p *Pace) Add(computed time.Duration) {
	if p.added++; p.added > 1 && len(p.First) < p.firstMax {
		p.First = append(p.First, computed)
	}
	p.sum += computed
	if p.in++; p.in < p.Every {
		return
	}
	p.Windows = append(p.Windows, p.sum/time.Duration(p.in))
	p.sum, p.in = 0, 0
	if len(p.Windows) < paceWindows {
		return
	}
	for k := range paceWindows / 2 {
		p.Windows[k] = (p.Windows[2*k] + p.Windows[2*k+1]) / 2
	}
	p.Windows = p.Windows[:paceWindows/2]
	p.Every *= 2
}

// seen says whether there are enough iterations for n parts of a run. A nil Pace has none.
func (p *Pace) seen(n int) bool { return p != nil && len(p.Windows) >= n && len(p.First) >= n-1 }

// parts are the means over n equal parts of the run.
func (p *Pace) parts(n int) []float64 {
	all := make([]float64, n)
	for k := range all {
		from, to := k*len(p.Windows)/n, (k+1)*len(p.Windows)/n
		for _, d := range p.Windows[from:to] {
			all[k] += d.Seconds() / float64(to-from)
		}
	}
	return all
}

// A replay is the time that the first iterations of all workers would have taken under another rule of waiting. It counts their
// computing times alone. first has a row of the same length for each worker.

// replayLead replays a bound on the lead: a worker starts iteration i when it has finished iteration i-1, and all workers have
// finished iteration i-1-lead. A lead of 0 is bsp.
func replayLead(first [][]time.Duration, lead int) time.Duration {
	free := make([]time.Duration, len(first))        // when each worker has finished its last iteration
	finished := make([]time.Duration, len(first[0])) // when all workers have finished iteration i
	for i := range finished {
		gate := time.Duration(0)
		if k := i - 1 - lead; k >= 0 {
			gate = finished[k]
		}
		for w, of := range first {
			free[w] = max(free[w], gate) + of[i]
			finished[i] = max(finished[i], free[w])
		}
	}
	return finished[len(finished)-1]
}

// replayRequired replays drop: an iteration closes with its first required pushes. A worker that is late goes on with the iteration
// that is open when it has finished. It returns the mean time of one iteration.
func replayRequired(first [][]time.Duration, required int) time.Duration {
	free, used := make([]time.Duration, len(first)), make([]int, len(first))
	ends, sorted := make([]time.Duration, len(first)), make([]time.Duration, len(first))
	open, closed := time.Duration(0), int64(0)
	for {
		for w, of := range first {
			if used[w] == len(of) {
				return open / time.Duration(max(1, closed))
			}
			ends[w] = max(open, free[w]) + of[used[w]]
		}
		copy(sorted, ends)
		slices.Sort(sorted)
		close := sorted[required-1]
		for w := range first {
			if max(open, free[w]) < close || ends[w] <= close {
				used[w]++
				free[w] = ends[w]
			}
		}
		open = close
		closed++
	}
}
