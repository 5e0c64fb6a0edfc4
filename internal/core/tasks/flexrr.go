package tasks

import (
	"fmt"
	"math"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// told is how far the sender is: it has begun the share Loss of its iteration Iter at time Blocked. Its iterations usually
// take Version.
const told = firstKind

// flexRR moves work from a worker that has fallen behind to its helpers. FlexRR (Harlap et al., SoCC 2016) [P], protocol
// as in a third party's implementation [T]:
//
//	helper  at `ask` of its iteration, and after each chunk: told(iteration, share) to those that it may help
//	helpee  with each step, and with each told: behind = (iter' - iter) + (share' - share) + what the helper has done since;
//	        behind > `behind` and left > `left`: the next chunk for this helper
//
// Two things differ. A helper computes a chunk between two iterations of its own, not before the rest of the current one. And the helpee
// remembers what its helpers have told, so that a helper that is blocked need not ask again.
type flexRR struct {
	lender
	help    work.Help
	batch   int32
	helpees []int32
	helpers []progress // by worker
	given   []int32    // per worker: chunks of this iteration
	isTold  bool       // this iteration's share was told

	began time.Duration // of the iteration
	usual time.Duration // of the iterations so far
}

func newFlexRR(s work.Spec, e Env) core.Work {
	n := int32(len(e.Batches))
	p := &flexRR{lender: newLender(s, e), help: s.Help, batch: int32(e.Batches[e.Me]), helpers: make([]progress, n), given: make([]int32, n)}
	for k := int32(1); k <= min(int32(s.Help.Helpers), n-1); k++ {
		p.helpees = append(p.helpees, (e.Me-k+n)%n)
	}
	return p
}

func (p *flexRR) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	if ev.Kind == core.Starting {
		clear(p.given)
		p.isTold, p.began = false, ev.At
		return p.starting(ev.Task, p.batch, nil, out)
	}
	out = p.follow(ev, out)
	switch ev.Kind {
	case core.Stepped:
		if p.isOwn(&ev.Task) {
			if !p.isTold && float64(p.begun) >= float64(p.help.Ask*float64(p.batch)) {
				p.isTold = true
				out = p.tell(ev.At, out)
			}
			return p.offer(ev.At, out)
		}
	case core.Fixed:
		if p.isOwn(&ev.Task) {
			p.usual = smoothed(p.usual, ev.At-p.began)
		}
	case core.Computed:
		return p.tell(ev.At, out) // the worker is free, or will be
	case core.Came:
		if m := &ev.Msg; m.Flags == told {
			p.helpers[m.Worker] = progress{known: true, iter: m.Iter, share: m.Loss, usual: time.Duration(m.Version), at: time.Duration(m.Blocked)}
			return p.offer(ev.At, out)
		}
	}
	return out
}

// share is how much of the worker's own part is begun.
func (p *flexRR) share() float64 {
	if p.isFixed {
		return 1
	}
	return float64(p.begun) / float64(p.batch)
}

// tell tells the helpees how far the worker is.
func (p *flexRR) tell(now time.Duration, out []core.Order) []core.Order {
	for _, to := range p.helpees {
		if !p.gone[to] {
			out = append(out, tell(to, told, wire.Header{Iter: p.iter, Loss: p.share(), Version: int64(p.usual), Blocked: int64(now)}))
		}
	}
	return out
}

// offer gives each helper that is far enough ahead a chunk.
func (p *flexRR) offer(now time.Duration, out []core.Order) []core.Order {
	for h := range p.helpers {
		to := int32(h)
		if f := &p.helpers[h]; !f.known || p.gone[h] || f.iter < p.iter || p.hasChunkAt(to) {
			continue
		}
		behind, left := p.behind(&p.helpers[h], now), float64(p.unbegun())/float64(p.batch)
		if behind <= p.help.Behind || left <= p.help.Left {
			continue
		}
		if n := min(p.unbegun(), p.size(to, behind, left)); n > 0 {
			p.given[to]++
			out = p.lend(to, n, out)
		}
	}
	return out
}

// behind is how far the worker is behind a helper, in iterations. What the helper has done since it told is estimated, up
// to the end of its iteration.
func (p *flexRR) behind(f *progress, now time.Duration) float64 {
	since := 0.0
	if f.usual > 0 {
		since = min(float64(now-f.at)/float64(f.usual), 1-f.share)
	}
	return float64(f.iter-p.iter) + f.share - float64(p.begun)/float64(p.batch) + max(0, since)
}

// size is the number of samples of the next chunk for a helper.
func (p *flexRR) size(to int32, behind, left float64) int32 {
	share := p.help.Next
	switch {
	case p.help.First == 0 && p.given[to] > 0:
		return 0
	case p.help.First == 0:
		return int32(float64(min(behind/2, left/2) * float64(p.batch)))
	case p.given[to] == 0:
		share = p.help.First
	}
	return max(1, int32(math.Round(float64(share*float64(p.batch)))))
}

// smoothed is the exponential mean that gives the newest value the weight 1/4.
func smoothed(old, x time.Duration) time.Duration {
	if old == 0 {
		return x
	}
	return old + (x-old)/4
}

// Memory is how long the worker's iterations usually take, in seconds.
func (p *flexRR) Memory() []float64 { return []float64{p.usual.Seconds()} }

// Recall goes on with a memory.
func (p *flexRR) Recall(m []float64) error {
	if len(m) != 1 || !(m[0] >= 0 && m[0] < 1e9) {
		return fmt.Errorf("flexrr has learned %v, and must have one time in seconds, from 0 to 1e9", m)
	}
	p.usual = seconds(m[0])
	return nil
}
