package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Workers wait for stragglers for one of two reasons, and each needs its own remedy. A worker that is always slow sets the pace
// under every bound on the lead: the other workers use up the bound once, and then wait as before. If the slow worker changes from
// iteration to iteration, a bound evens the times out. The computing times tell which reason it is. A replay of them estimates
// what another scheme would gain.

const (
	slowRatioMin = 1.5  // computing time over the lower median of all workers: with more, the worker is slow
	slowPartsMin = 0.9  // part of the run: a worker that is slow in more of it is always slow
	gainEnough   = 0.8  // part of the best bound's gain: the smallest bound with that much is preferred, as staleness has a price
	heldMax      = 1.25 // mean of the workers' iterations over those of a slow one: with more, it holds nobody back
)

// leadsToTry are the bounds on the lead to replay. Larger ones are close to no bound.
var leadsToTry = []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}

// pacing explains the waits of a run by its computing times.
type pacing struct {
	s      *Summary
	slow   []slowWorker      // workers that are always slow, the slowest first
	first  [][]time.Duration // computing times of the first iterations, a row of the same length for each worker
	lead   int               // the bound in effect, that of the strictest shard
	scheme string            // of that shard
	key    string            // the key of the configuration that bounds the lead of that shard; "": none does
	now    float64           // seconds per iteration, rest included
	rest   float64           // seconds per iteration that are not computing
}

type slowWorker struct {
	row   *WorkerSummary
	ratio float64 // mean computing time over the lower median of all workers
}

// newPacing returns nil if there are too few iterations, or if no worker waits for another.
func newPacing(s *Summary) *pacing {
	if len(s.PerWorker) < 2 || len(s.PerShard) == 0 || s.Baseline != "" {
		return nil
	}
	p := &pacing{s: s}
	n := -1
	for i := range s.PerWorker {
		pace := s.PerWorker[i].Pace
		if !pace.seen(seenMin) {
			return nil
		}
		if n < 0 || len(pace.First) < n {
			n = len(pace.First)
		}
	}
	for i := range s.PerWorker {
		p.first = append(p.first, s.PerWorker[i].Pace.First[:n])
	}
	strict := &s.PerShard[0]
	for i := range s.PerShard {
		if s.PerShard[i].LeadMax < strict.LeadMax {
			strict = &s.PerShard[i]
		}
	}
	if p.lead, p.scheme, p.key = int(min(strict.LeadMax, 1<<20)), strict.Scheme, strict.BoundKey; p.key == "" && p.scheme != "r2sp" {
		return nil
	}
	computing := replayLead(p.first, p.lead).Seconds() / float64(n)
	p.now = float64(s.TrainS) / float64(s.Iterations-resumedAt(s))
	p.rest = max(0, p.now-computing)
	p.now = computing + p.rest
	p.findSlow()
	return p
}

// findSlow compares the workers in each of seenMin parts of the run, and sets slow.
func (p *pacing) findSlow() {
	workers := p.s.PerWorker
	times := make([][]float64, len(workers))
	for i := range workers {
		times[i] = workers[i].Pace.parts(seenMin)
	}
	slowParts, ratio := make([]int, len(workers)), make([]float64, len(workers))
	sorted := make([]float64, len(workers))
	for k := range seenMin {
		for i := range workers {
			sorted[i] = times[i][k]
		}
		slices.Sort(sorted)
		usual := sorted[(len(sorted)-1)/2]
		for i := range workers {
			r := times[i][k] / usual
			ratio[i] += r / seenMin
			if r >= slowRatioMin {
				slowParts[i]++
			}
		}
	}
	for i := range workers {
		if float64(slowParts[i]) >= slowPartsMin*seenMin {
			p.slow = append(p.slow, slowWorker{&workers[i], ratio[i]})
		}
	}
	slices.SortStableFunc(p.slow, func(a, b slowWorker) int { return cmp.Compare(b.ratio, a.ratio) })
}

// gain is the factor on the samples per second if so many iterations took so long to compute, and each had a share of the samples
// of all workers. The rest of an iteration stays the same.
func (p *pacing) gain(computing time.Duration, iterations int, share float64) float64 {
	return share * p.now / (computing.Seconds()/float64(iterations) + p.rest)
}

// gainOfASP is the gain if no worker waits for another.
func (p *pacing) gainOfASP() (sum float64) {
	for _, of := range p.first {
		total := time.Duration(0)
		for _, d := range of {
			total += d
		}
		sum += p.gain(total, len(of), 1/float64(len(p.first)))
	}
	return sum
}

// bestLead is the smallest bound that gains nearly as much as the best one; 0 if there is none to try.
func (p *pacing) bestLead() (lead int, gain float64) {
	n := len(p.first[0])
	var leads []int
	var gains []float64
	for _, l := range leadsToTry {
		if l > p.lead && l <= n/4 { // a few iterations cannot show the effect of a long lead
			leads, gains = append(leads, l), append(gains, p.gain(replayLead(p.first, l), n, 1))
		}
	}
	if len(gains) == 0 {
		return 0, 0
	}
	best := slices.Max(gains)
	for k, g := range gains {
		if g-1 >= gainEnough*(best-1) {
			return leads[k], g
		}
	}
	return 0, 0
}

// bestRequired is the number of required pushes under drop that gains the most. It is more than half of the workers, because less
// would waste too many pushes.
func (p *pacing) bestRequired() (required int, gain float64) {
	n := len(p.first)
	for late := 1; 2*(n-late) > n; late += max(1, late/2) {
		if g := p.gain(replayRequired(p.first, n-late), 1, float64(n-late)/float64(n)); g > gain {
			required, gain = n-late, g
		}
	}
	return required, gain
}

// slowest is the largest share of iterations in which the same worker was the slowest. Workers that are about equally slow share
// an iteration.
func (p *pacing) slowest() float64 {
	const alike = 0.99
	shares, n := make([]float64, len(p.first)), len(p.first[0])
	for i := range n {
		most := time.Duration(0)
		for _, of := range p.first {
			most = max(most, of[i])
		}
		var at []int
		for w, of := range p.first {
			if float64(of[i]) >= alike*float64(most) {
				at = append(at, w)
			}
		}
		for _, w := range at {
			shares[w] += 1 / float64(len(at)*n)
		}
	}
	return slices.Max(shares)
}

// blocked is the mean share of the time that the workers were blocked. Workers that are always slow do not count.
func (p *pacing) blocked() float64 {
	sum, n := 0.0, 0
	for i := range p.s.PerWorker {
		w := &p.s.PerWorker[i]
		if !slices.ContainsFunc(p.slow, func(s slowWorker) bool { return s.row == w }) {
			sum, n = sum+float64(w.BlockedS/p.s.TrainS), n+1
		}
	}
	return sum / float64(max(1, n))
}

// where names the sync: rules of the shards that bound the lead below lead: all of these must be changed.
func (p *pacing) where(lead int64) string {
	var of, all []string
	for i := range p.s.PerShard {
		h := &p.s.PerShard[i]
		rule := fmt.Sprintf("%q", ruleOf(h.Name))
		if !slices.Contains(all, rule) {
			all = append(all, rule)
		}
		if h.LeadMax < lead && !slices.Contains(of, rule) {
			of = append(of, rule)
		}
	}
	switch {
	case len(all) == 1:
		return "in the sync: rule"
	case len(of) == len(all):
		return "in every sync: rule"
	case len(of) == 1:
		return "in the sync: rule with match: " + of[0]
	}
	return "in the sync: rules with match: " + strings.Join(of, ", ")
}

// noteStragglers looks for waits that the computing times explain, and for waits for turns to push.
func noteStragglers(s *Summary) *note {
	p := newPacing(s)
	if p == nil {
		return nil
	}
	blocked := p.blocked()
	switch {
	case !(blocked >= blockedShareMin):
		return nil
	case len(p.slow) > 0:
		return p.permanent(blocked)
	case p.scheme == "r2sp":
		return noteTurns(s)
	}
	return p.transient(blocked)
}

// permanent is the note about workers that are always slow.
func (p *pacing) permanent(blocked float64) *note {
	slow := p.slow[0]
	mean := 0.0 // of the iterations of a worker
	for i := range p.s.PerWorker {
		mean += float64(p.s.PerWorker[i].Iterations) / float64(len(p.s.PerWorker))
	}
	gain := p.gainOfASP()
	if mean > heldMax*float64(slow.row.Iterations) || gain < gainMin {
		return nil
	}
	who := fmt.Sprintf("worker %d (rank %d on %s) computes", slow.row.Worker, slow.row.Rank, slow.row.Host)
	host, its := "its host", "its pushes"
	if k := len(p.slow) - 1; k > 0 {
		who = fmt.Sprintf("worker %d (rank %d on %s), and %d more, compute up to", slow.row.Worker, slow.row.Rank, slow.row.Host, k)
		host, its = "their hosts", "their pushes"
	}
	text := fmt.Sprintf("%s %.1f times as long per iteration as the others, throughout the run, and the others were "+
		"blocked for %.0f %% of the time: ", who, slow.ratio, 100*blocked)
	if p.scheme == "r2sp" {
		text += "the slowest worker determines the length of a round of r2sp"
	} else {
		text += "a bound on the lead, however large, is used up once and does not help after that"
	}
	batches, best := p.smallerBatches()
	best = max(best, gain)
	text += batches + fmt.Sprintf("; leave out %s, or set scheme: asp %s, under which nobody waits (by the times "+
		"measured, %s as many samples/s)", host, p.where(math.MaxInt64), p.times("about ", gain))
	n := len(p.first)
	if required := n - len(p.slow); 2*required > n {
		if g := p.gain(replayRequired(p.first, required), 1, float64(required)/float64(n)); g >= gainMin {
			text += fmt.Sprintf(", or scheme: drop, required: %d, which does not wait for %s (%s)", required, its, p.times("", g))
			best = max(best, g)
		}
	}
	return &note{best, text}
}

// smallerBatches advises batches that fit the workers, where all are equal. The gain is that of computing in
// proportion to samples: all then compute equally long.
func (p *pacing) smallerBatches() (text string, gain float64) {
	if p.s.Work != "" || p.s.Local != "" || p.s.Samples < 4*p.s.Iterations*int64(len(p.first)) { // too few samples to divide
		return "", 0
	}
	speeds, n := 0.0, len(p.first[0])
	for _, of := range p.first {
		total := time.Duration(0)
		for _, d := range of {
			total += d
		}
		speeds += float64(n) / float64(max(1, total))
	}
	policy := "dbs"
	if p.scheme == "r2sp" {
		policy = "r2sp_batch"
	}
	g := p.gain(time.Duration(float64(n*len(p.first))/speeds), n, 1)
	if g < gainMin {
		return "", 0
	}
	return fmt.Sprintf("; give each the batch that fits it: work: {policy: %s} (%s, if computing is in proportion to "+
		"samples)", policy, p.times("about ", g)), g
}

// times is a gain in words. Under r2sp it is the least one: the turns take unknown time besides computing, which another scheme saves.
func (p *pacing) times(about string, gain float64) string {
	if p.scheme == "r2sp" {
		about = "at least "
	}
	return fmt.Sprintf("%s%.1f times", about, gain)
}

// transient is the note about slow workers that change from iteration to iteration.
func (p *pacing) transient(blocked float64) *note {
	lead, gain := p.bestLead()
	if gain < gainMin {
		return nil
	}
	text := fmt.Sprintf("the slow worker changes (none was the slowest in more than %.0f %% of the iterations), and "+
		"all were blocked for %.0f %% of the time: ", 100*p.slowest(), 100*blocked)
	change := fmt.Sprintf("raise %s to %d", p.key, lead)
	if p.scheme == "bsp" {
		change = fmt.Sprintf("set %s: %d", p.key, lead)
	}
	text += fmt.Sprintf("a bound on the lead evens that out; %s %s (by the times measured, about %.1f times as many "+
		"samples/s)", change, p.where(int64(lead)), gain)
	if required, g := p.bestRequired(); g >= gainMin {
		text += fmt.Sprintf(", or scheme: drop, required: %d, which drops late pushes (%.1f times)", required, g)
		gain = max(gain, g)
	}
	return &note{gain, text}
}

// noteTurns is the note about workers that wait for their turn to push.
func noteTurns(s *Summary) *note {
	var waited float64
	var missed, strays int64
	for _, h := range s.PerShard { // all shards of a server have the counts of the server's rotation
		waited, missed, strays = max(waited, float64(h.DelayedGrantsS)), max(missed, h.MissedTurns), max(strays, h.Strays)
	}
	share := waited / float64(s.TrainS) / float64(max(1, s.Workers))
	if !(share >= blockedShareMin) {
		return nil
	}
	text := fmt.Sprintf("workers waited for their turn to push for %.0f %% of the time", 100*share)
	if missed+strays > 0 {
		text += fmt.Sprintf("; a server saw %s turns missed and %s pushes out of turn, because workers are not equally fast",
			thousands(missed), thousands(strays))
	}
	return upTo(saving(share), "%s: r2sp pays off if the exchanges of the workers crowd the links; otherwise set "+
		"scheme: asp, or ssp to keep a bound on the lead, in the sync: rule", text)
}
