package core

import (
	"fmt"
	"math"
	"slices"

	"fluentps/ps/scheme"
)

// cut is the clock at which a shard changes its scheme. Iterations before it are the current scheme's, those from it
// on the next one's, so the current one must be told nothing of these. Nobody is let past the cut before v has
// reached it, and then nothing of the current scheme is left: everybody who comes to it waits once.
type cut struct {
	at     int64 // never, where no other scheme follows
	next   func(clocks []int64, start int64) ShardScheme
	pulls  []int32   // workers whose pull for an iteration at or past the cut waits for it, in order of arrival
	pushes []*pushed // landed pushes of such iterations, which workers made because another shard sent them on
}

const never = math.MaxInt64

// take makes a scheme the current one.
func (sh *ownShard) take(ss ShardScheme) {
	sh.scheme, sh.exact, sh.whole, sh.agrees = ss.Scheme, ss.Exact, ss.Whole, ss.Agrees
	sh.cut.at, sh.cut.next = never, ss.Next
	if ss.Until > 0 {
		sh.cut.at = ss.Until
	}
}

// forget drops what a worker that left has waiting at the cut: the next scheme will never know it.
func (sh *ownShard) forget(w int32) {
	sh.cut.pulls = slices.DeleteFunc(sh.cut.pulls, func(p int32) bool { return p == w })
	sh.cut.pushes = slices.DeleteFunc(sh.cut.pushes, func(p *pushed) bool {
		if p.head.Worker != w {
			return false
		}
		sh.count(-p.head.Samples)
		sh.freeSlot(sh.unstage(w, p.head.Iter).slot)
		sh.stats.drop(scheme.Gone)
		return true
	})
}

// tell tells the scheme of a push that has landed, or keeps it for the next one. A worker that has passed the cut
// will push nothing before it any more: for the current scheme it is gone.
func (s *Server) tell(sh *ownShard, p *pushed, out []Effect) []Effect {
	w := p.head.Worker
	if p.head.Iter < sh.cut.at {
		ev := event(scheme.Pushed, p.head)
		ev.Norm2, ev.NormInf, ev.NormW = p.norm2, p.normInf, p.normW
		return s.decide(sh, ev, out)
	}
	sh.cut.pushes = append(sh.cut.pushes, p)
	return s.decide(sh, scheme.Event{Kind: scheme.Left, Worker: w, Shard: sh.id}, out)
}

// change takes the next scheme when v has reached the cut, and the one after it if v is there too. Where nobody is in
// the run nobody waits for it.
func (s *Server) change(sh *ownShard, out []Effect) []Effect {
	changed := false
	for ; s.here > 0; changed = true {
		if out = s.allPassed(sh, out); sh.v() < sh.cut.at {
			break
		}
		out = s.drain(sh, out)
		at, pushes, pulls := sh.cut.at, sh.cut.pushes, sh.cut.pulls
		sh.cut.pushes, sh.cut.pulls = nil, nil
		clocks := make([]int64, s.workers)
		for w := range clocks {
			if s.left[w] {
				clocks[w] = -1
				continue
			}
			if sh.clock[w] < at { // a slow one that the others did not wait for: what it pushes before is too late
				sh.setClock(int32(w), at)
			}
			clocks[w] = sh.clock[w]
		}
		for _, p := range pushes {
			clocks[p.head.Worker] = at
		}
		sh.take(sh.cut.next(clocks, sh.version))
		sh.closed = max(sh.closed, at)
		for _, p := range sh.landing {
			if p != nil && p.head.Iter >= at && p.head.Iter < sh.cut.at {
				out = s.decide(sh, event(scheme.Offered, p.head), out)
			}
		}
		for _, p := range pushes {
			if p.head.Iter < sh.cut.at {
				out = s.decide(sh, event(scheme.Offered, p.head), out)
			}
			out = s.tell(sh, p, out)
		}
		for _, w := range pulls {
			if sh.wants[w] >= sh.cut.at {
				sh.cut.pulls = append(sh.cut.pulls, w)
			} else {
				out = s.ask(sh, w, out)
			}
		}
	}
	if changed {
		out = s.follow(sh, out)
	}
	return out
}

// allPassed closes what is left before the cut of a shard that leads, when everybody in the run has passed it: the
// scheme, for which they are gone, has closed all that was pushed and says nothing of what nobody pushed.
func (s *Server) allPassed(sh *ownShard, out []Effect) []Effect {
	if !sh.agrees || !sh.accord.leads || sh.low < sh.cut.at || sh.closed >= sh.cut.at {
		return out
	}
	return s.closed(sh, sh.cut.at-1, out)
}

// drain tells the current scheme that everybody left, so that it commits or drops all it has. A pull that it holds
// back even now becomes the first that the next one is asked.
func (s *Server) drain(sh *ownShard, out []Effect) []Effect {
	for w := range int32(s.workers) {
		if !s.left[w] {
			out = s.decide(sh, scheme.Event{Kind: scheme.Left, Worker: w, Shard: sh.id}, out)
		}
	}
	var open []int32
	for w, waits := range sh.waits {
		if waits {
			sh.waits[w] = false
			open = append(open, int32(w))
		}
	}
	sh.cut.pulls = append(open, sh.cut.pulls...)
	if n := sh.stagedN - len(sh.cut.pushes); n != 0 || sh.folded != 0 {
		panic(fmt.Sprintf("core: shard %d: %d pushes staged and %d folded after everybody left %v", sh.id, n, sh.folded, sh.scheme))
	}
	return out
}
