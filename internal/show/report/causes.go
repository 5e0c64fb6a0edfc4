package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
)

// cause is what a worker's time was spent on.
type cause int

const (
	computing cause = iota
	injected        // the sleep of injected faults
	pushing
	behind    // blocked until a slower worker's push
	turns     // blocked until its turn, where workers push in turns
	answering // blocked by servers and the wire
	blocked   // blocked, and the file of iterations is not there to say why
	pulling
	causeCount
)

var causeNames = [causeCount]string{"computing", "slept for faults", "push", "waits for a slower worker",
	"waits for its turn", "waits for servers and wire", "blocked, cause unknown", "pull"}

// causeSpans is the span of summary.json that a cause is part of.
var causeSpans = [causeCount]metrics.Span{metrics.Compute, metrics.Compute, metrics.Push, metrics.Blocked,
	metrics.Blocked, metrics.Blocked, metrics.Blocked, metrics.Pull}

// times are seconds by cause.
type times [causeCount]float64

func (t times) waits() float64 { return t[behind] + t[turns] + t[answering] + t[blocked] }

// causes are the times of a run's workers.
type causes struct {
	workers []times
	waited  map[int]float64 // seconds that others waited for each worker
}

// end is when a worker had handed over an iteration, which lets others go on.
type end struct {
	at     time.Duration
	early  time.Duration // when the push may have landed: the last gradients leave before computing is over
	worker int
}

// earlyShare is the part of computing by which a push may land before the end that the worker recorded.
const earlyShare = 10

// causesOf splits the times of each worker. The file of iterations says how long a worker was blocked, and not why: the cause is
// reconstructed. While a worker is blocked, pushes of others land. The last of them that may have landed before it went on released it:
// it waited for that worker until then, and for servers and wire after it. In a run whose schemes never delayed a pull, nobody waited for
// another worker.
func causesOf(r *Run) causes {
	c := causes{workers: make([]times, len(r.Iterations)), waited: map[int]float64{}}
	if len(r.Iterations) == 0 {
		return untold(r)
	}
	ends, turn := releases(r)
	for w, all := range r.Iterations {
		t := &c.workers[w]
		for i := range all {
			it := &all[i]
			slept := min(it.Injected, it.Compute)
			t[computing] += (it.Compute - slept).Seconds()
			t[injected] += slept.Seconds()
			t[pushing] += it.Push.Seconds()
			t[pulling] += it.Pull.Seconds()
			if turn || r.Cut {
				t[map[bool]cause{true: blocked, false: turns}[r.Cut]] += it.Blocked.Seconds()
				continue
			}
			by, waited := releasedBy(ends, w, it)
			t[behind] += waited.Seconds()
			t[answering] += (it.Blocked - waited).Seconds()
			if by >= 0 {
				c.waited[by] += waited.Seconds()
			}
		}
	}
	return c
}

// endsOf are the ends of all iterations in the order in which pushes may have landed.
func endsOf(r *Run) (ends []end) {
	for w, all := range r.Iterations {
		for i := range all {
			at := all[i].End()
			ends = append(ends, end{at, at - all[i].Compute/earlyShare, w})
		}
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.early, b.early) })
	return ends
}

// untold are the times that the summary has, without the causes of waits.
func untold(r *Run) (c causes) {
	if r.Summary == nil {
		return c
	}
	role, ok := r.Summary.PerRole[metrics.RoleWorker]
	if !ok {
		return c
	}
	var t times
	for _, k := range []cause{computing, pushing, blocked, pulling} {
		if v := float64(role[causeSpans[k].String()].Avg); v > 0 {
			t[k] = v
		}
	}
	c.workers = []times{t}
	return c
}

// releasedBy finds the last push of another worker that landed while a worker was blocked after an iteration.
func releasedBy(ends []end, worker int, it *timings.Iteration) (by int, waited time.Duration) {
	from, to := it.End(), it.End()+it.Blocked
	for k := sort.Search(len(ends), func(k int) bool { return ends[k].early > to }) - 1; k >= 0 && ends[k].early > from; k-- {
		if ends[k].worker != worker {
			return ends[k].worker, min(ends[k].at, to) - from
		}
	}
	return -1, 0
}

// releases are the pushes that may have released others: none if no scheme delayed a pull, or if workers pushed in turns.
func releases(r *Run) (ends []end, turn bool) {
	delays, turn := delaysOf(r)
	if delays && !turn && !r.Cut {
		ends = endsOf(r)
	}
	return ends, turn
}

// delaysOf says whether schemes delayed anything, and whether the delays were turns. Without a summary they may have.
func delaysOf(r *Run) (delays, turn bool) {
	if r.Summary == nil || len(r.Summary.PerShard) == 0 {
		return true, false
	}
	var pulls, grants int64
	for _, s := range r.Summary.PerShard {
		pulls, grants = pulls+s.DelayedPulls, grants+s.DelayedGrants
	}
	return pulls+grants > 0, grants > pulls
}

// mean is the mean over workers.
func (c *causes) mean() (m times) {
	for _, t := range c.workers {
		for k, v := range t {
			m[k] += v / float64(len(c.workers))
		}
	}
	return m
}

// total is the sum of the mean times.
func (c *causes) total() (sum float64) {
	for _, v := range c.mean() {
		sum += v
	}
	return sum
}

// culprit is the worker that others waited for most, and its part of all waits for workers.
func (c *causes) culprit() (worker int, share float64) {
	worker, most, all := -1, 0.0, 0.0
	for w := range len(c.workers) {
		if all += c.waited[w]; c.waited[w] > most {
			worker, most = w, c.waited[w]
		}
	}
	if all == 0 {
		return -1, 0
	}
	return worker, most / all
}

// slowness has the mean computing time of each worker over the median of all workers' means; NaN for a worker without iterations.
func (r *Run) slowness() []float64 {
	means := make([]float64, len(r.Iterations))
	var known []float64
	for w, all := range r.Iterations {
		for i := range all {
			means[w] += all[i].Compute.Seconds() / float64(len(all))
		}
		if len(all) > 0 {
			known = append(known, means[w])
		}
	}
	median := math.NaN()
	if known != nil {
		slices.Sort(known)
		median = known[(len(known)-1)/2]
	}
	for w := range means {
		if means[w] /= median; len(r.Iterations[w]) == 0 {
			means[w] = math.NaN()
		}
	}
	return means
}

// whyBlocked says in words what the workers of runs waited for; "" if they hardly waited or nothing is known. Its shares are those of the
// blocked time.
func whyBlocked(runs []*Run) string {
	var m times
	whole, waited := 0.0, causes{waited: map[int]float64{}}
	for _, r := range runs {
		c := causesOf(r)
		for k, v := range c.mean() {
			m[k], whole = m[k]+v, whole+v
		}
		for w, v := range c.waited {
			waited.waited[w] += v
		}
		waited.workers = append(waited.workers[:0], make([]times, max(len(waited.workers), len(c.workers)))...)
	}
	all := m.waits()
	if whole <= 0 || all < 0.02*whole {
		return ""
	}
	switch {
	case m[blocked] > 0:
		return "for a cause that the files do not tell"
	case m[turns] >= max(m[behind], m[answering]):
		return fmt.Sprintf("waiting for their turn (%s of the blocked time)", percent(m[turns]/all))
	case m[behind] < m[answering]:
		return fmt.Sprintf("waiting for the answers of servers and the wire (%s of the blocked time)", percent(m[answering]/all))
	}
	text := fmt.Sprintf("waiting for slower workers (%s of the blocked time)", percent(m[behind]/all))
	if w, share := waited.culprit(); share >= 0.5 {
		text = fmt.Sprintf("waiting for worker %d (%s of the blocked time)", w, percent(share*m[behind]/all))
		if all := runs[0].slowness(); w < len(all) && all[w] >= 1.2 && all[w] < 1e6 {
			text += fmt.Sprintf(", which computes %s times as long as the median worker", short(all[w]))
		}
	}
	return text
}
