package metrics

import (
	"slices"
	"time"
)

// Pace is how long a worker's iterations took to compute, kept so that workers can be compared when the run is over: in
// windows over the whole run, and the first iterations one by one. It belongs to one goroutine at a time.
type Pace struct {
	Every   int64           `json:"every"`   // iterations in each window
	Windows []time.Duration `json:"windows"` // the mean of each; a last one that is not full is left out
	First   []time.Duration `json:"first"`   // single iterations, without the very first one, in which caches are cold

	firstMax int
	added    int64
	sum      time.Duration // of the window that is not full
	in       int64         // iterations in it
}

// paceWindows bounds the windows of a worker: where there would be more, each two become one.
const paceWindows = 64

// The single iterations of all workers are bounded together, and of one between these.
const (
	paceFirstAll = 1 << 19
	paceFirstMin = 64
	paceFirstMax = 512
)

// NewPace is for one of so many workers.
func NewPace(workers int) Pace {
	return Pace{Every: 1, firstMax: min(paceFirstMax, max(paceFirstMin, paceFirstAll/max(1, workers)))}
}

// Add takes the computing of the next iteration.
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

// seen says whether there are as many iterations as n parts of a run.
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

// A replay says how long the first iterations of all workers would have taken by what they computed alone, had they waited
// for each other in another way. Rows are workers, all of the same length.

// replayLead is under a bound on the lead: a worker starts iteration i when it has finished the one before, and all have
// finished iteration i-1-lead. With 0 that is bsp.
func replayLead(first [][]time.Duration, lead int) time.Duration {
	free := make([]time.Duration, len(first))
	over := make([]time.Duration, len(first[0])) // when all have finished iteration i
	for i := range over {
		gate := time.Duration(0)
		if k := i - 1 - lead; k >= 0 {
			gate = over[k]
		}
		for w, of := range first {
			free[w] = max(free[w], gate) + of[i]
			over[i] = max(over[i], free[w])
		}
	}
	return over[len(over)-1]
}

// replayRequired is under drop: an iteration closes with the first pushes, as many as required; who is late goes on at the one
// that is open when it has finished. It returns the time of one iteration.
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
