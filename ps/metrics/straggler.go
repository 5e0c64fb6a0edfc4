package metrics

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Waiting for slow workers has two causes, and what helps against one does not help against the other. A worker that is always
// slow sets the pace under every bound on the lead: the others use the bound up once, and wait then as before. Where now one is
// slow and now another, a bound evens that out. Which it is follows from the computing times, and what a scheme would bring from
// replaying them.

const (
	slowRatioMin = 1.5  // computing times over the lower median of all workers, which makes one slow
	slowPartsMin = 0.9  // of the run, in which it must be: then it is always slow
	gainMin      = 1.1  // samples per second over today's: less is not worth a change
	gainEnough   = 0.8  // of what the best bound wins is what a smaller one must win to be preferred: staleness has its price, too
	heldMax      = 1.25 // mean of the workers' iterations over those of a slow one: with more, nobody is held back by it
)

// leadsToTry are bounds on the lead, larger ones being close to none.
var leadsToTry = []int{1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64}

// pacing is what the computing times of a run tell of its waits.
type pacing struct {
	s      *Summary
	slow   []slowWorker // that are always slow, the slowest first
	first  [][]time.Duration
	lead   int     // the bound in effect, by the strictest shard
	scheme string  // of that shard
	key    string  // that bounds it, in the configuration; "": none does
	now    float64 // seconds of an iteration, computing and all else
	rest   float64 // of these, all else
}

type slowWorker struct {
	row   *WorkerSummary
	ratio float64
}

// newPacing is nil where too little was seen, or nobody waits for anybody.
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
	p.now = float64(s.TrainS) / float64(s.Iterations-begun(s))
	p.rest = max(0, p.now-computing)
	p.now = computing + p.rest
	p.findSlow()
	return p
}

// findSlow compares the workers in each of several parts of the run.
func (p *pacing) findSlow() {
	workers := p.s.PerWorker
	times := make([][]float64, len(workers))
	for i := range workers {
		times[i] = workers[i].Pace.parts(seenMin)
	}
	over, ratio := make([]int, len(workers)), make([]float64, len(workers))
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
				over[i]++
			}
		}
	}
	for i := range workers {
		if float64(over[i]) >= slowPartsMin*seenMin {
			p.slow = append(p.slow, slowWorker{&workers[i], ratio[i]})
		}
	}
	slices.SortStableFunc(p.slow, func(a, b slowWorker) int { return cmp.Compare(b.ratio, a.ratio) })
}

// gain is how many times as many samples per second there would be if iterations computed for so long, with a share of the
// workers' samples in each; all else of an iteration stays.
func (p *pacing) gain(computing time.Duration, iterations int, share float64) float64 {
	return share * p.now / (computing.Seconds()/float64(iterations) + p.rest)
}

// gainOfASP is the same where nobody waits.
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

// bestLead is the least bound that wins nearly as much as the best.
func (p *pacing) bestLead() (lead int, gain float64) {
	n := len(p.first[0])
	var leads []int
	var gains []float64
	for _, l := range leadsToTry {
		if l > p.lead && l <= n/4 { // a run of few iterations says nothing of long leads
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

// bestRequired is the number of pushes for drop that wins the most; more than half, or too much is thrown away.
func (p *pacing) bestRequired() (required int, gain float64) {
	n := len(p.first)
	for late := 1; 2*(n-late) > n; late += max(1, late/2) {
		if g := p.gain(replayRequired(p.first, n-late), 1, float64(n-late)/float64(n)); g > gain {
			required, gain = n-late, g
		}
	}
	return required, gain
}

// slowest is in which share of the iterations the worker that was the slowest most often was it. Those that are about as slow
// share an iteration.
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

// blocked is the mean share of the time that the workers waited, without those that are always slow.
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

// where names the rules of the shards that bound the lead below one, so that all of these are changed.
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

// noteStragglers looks for waits that computing times explain, and those for turns to push.
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

// permanent is about workers that are always slow.
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
	text := fmt.Sprintf("%s %.1f times as long per iteration as the others, throughout the run, and these were blocked for %.0f %% of the time: ", who, slow.ratio, 100*blocked)
	if p.scheme == "r2sp" {
		text += "the slowest worker decides how long a round of r2sp is"
	} else {
		text += "a bound on the lead, however large, is used up once and then helps no more"
	}
	text += fmt.Sprintf("; leave out %s, or set scheme: asp %s, under which nobody waits%s", host, p.where(math.MaxInt64), p.wins("by the times measured, about %.1f times as many samples/s", gain))
	n := len(p.first)
	if required := n - len(p.slow); 2*required > n {
		if g := p.gain(replayRequired(p.first, required), 1, float64(required)/float64(n)); g >= gainMin {
			text += fmt.Sprintf(", or scheme: drop, required: %d, which goes on without %s%s", required, its, p.wins("%.1f times", g))
		}
	}
	return &note{blocked, text}
}

// wins is a gain in parentheses. What turns cost beside computing another scheme does not, and it is not known: under r2sp there is none.
func (p *pacing) wins(format string, gain float64) string {
	if p.scheme == "r2sp" {
		return ""
	}
	return " (" + fmt.Sprintf(format, gain) + ")"
}

// transient is about workers that are slow in turn.
func (p *pacing) transient(blocked float64) *note {
	lead, gain := p.bestLead()
	if gain < gainMin {
		return nil
	}
	text := fmt.Sprintf("which worker is slow changes (none was the slowest in more than %.0f %% of the iterations), and all were blocked for %.0f %% of the time: ", 100*p.slowest(), 100*blocked)
	change := fmt.Sprintf("raise %s to %d", p.key, lead)
	if p.scheme == "bsp" {
		change = fmt.Sprintf("set %s: %d", p.key, lead)
	}
	text += fmt.Sprintf("a bound on the lead evens that out; %s %s (by the times measured, about %.1f times as many samples/s)", change, p.where(int64(lead)), gain)
	if required, g := p.bestRequired(); g >= gainMin {
		text += fmt.Sprintf(", or scheme: drop, required: %d, which throws late pushes away (%.1f times)", required, g)
	}
	return &note{blocked, text}
}

// noteTurns looks for workers that wait for their turn to push.
func noteTurns(s *Summary) *note {
	var waited float64
	var missed, strays int64
	for _, h := range s.PerShard { // the counts are those of the server's rotation, in each of its shards
		waited, missed, strays = max(waited, float64(h.DelayedGrantsS)), max(missed, h.MissedTurns), max(strays, h.Strays)
	}
	share := waited / float64(s.TrainS) / float64(max(1, s.Workers))
	if !(share >= blockedShareMin) {
		return nil
	}
	text := fmt.Sprintf("workers waited for their turn to push for %.0f %% of the time", 100*share)
	if missed+strays > 0 {
		text += fmt.Sprintf("; a server saw %s turns missed and %s pushes out of turn, because workers are not equally fast", thousands(missed), thousands(strays))
	}
	return &note{share, text + ": r2sp pays where their exchanges crowd the links; where they do not, set scheme: asp, or ssp to keep a bound on the lead, in the sync: rule"}
}
