package core

import (
	"fmt"
	"math"
	"slices"

	"fluentps/ps/scheme"
)

// cut is the clock at which a shard changes its scheme. Iterations before the cut belong to the current scheme, those
// from it on to the next one. The current scheme must hear nothing of the latter. No worker passes the cut before v has
// reached it, and by then the current scheme holds nothing. So every worker waits once at the cut.
type cut struct {
	at     int64 // never, where no other scheme follows or the clock was not announced
	next   func(clocks []int64, start int64) ShardScheme
	pulls  []int32   // workers whose pull for an iteration at or past the cut waits for v, in order of arrival
	pushes []*pushed // landed pushes of such iterations; their workers were sent past the cut by another shard

	awaits  bool  // at is announced while training runs, by a push with the flag Change
	changes int64 // changes at announced clocks so far
	began   int64 // the clock of the last of them
}

const never = math.MaxInt64

// setScheme makes a scheme the current one.
func (sh *ownShard) setScheme(ss ShardScheme) {
	sh.scheme, sh.exact, sh.whole, sh.agrees = ss.Scheme, ss.Exact, ss.Whole, ss.Agrees
	sh.cut.at, sh.cut.next, sh.cut.awaits = never, ss.Next, ss.Awaits
	sh.alarms = nil
	if ss.Until > 0 {
		sh.cut.at = ss.Until
	}
}

// forgetAtCut drops the pulls and pushes of a worker that has left: the next scheme will never know that worker.
func (sh *ownShard) forgetAtCut(w int32) {
	sh.cut.pulls = slices.DeleteFunc(sh.cut.pulls, func(p int32) bool { return p == w })
	sh.cut.pushes = slices.DeleteFunc(sh.cut.pushes, func(p *pushed) bool {
		if p.head.Worker != w {
			return false
		}
		sh.count(-p.head.Samples)
		sh.slots.freeSlot(sh.unstage(w, p.head.Iter, p.head.Part).slot)
		sh.stats.drop(scheme.Gone)
		return true
	})
}

// tellPushed tells the scheme of a push that has landed, or keeps the push for the next scheme. A worker that has
// passed the cut will push nothing before it: for the current scheme that worker has left.
func (s *Server) tellPushed(sh *ownShard, p *pushed, out []Effect) []Effect {
	w := p.head.Worker
	if p.head.Iter < sh.cut.at {
		ev := schemeEvent(scheme.Pushed, p.head)
		ev.Norm2, ev.NormInf, ev.NormW = p.norm2, p.normInf, p.normW
		return s.decide(sh, ev, out)
	}
	sh.cut.pushes = append(sh.cut.pushes, p)
	return s.decide(sh, scheme.Event{Kind: scheme.Left, Worker: w, Shard: sh.id}, out)
}

// changeScheme changes to the next scheme when v has reached the cut, and again if v has reached the cut after it. It
// does nothing while no worker is in the run.
func (s *Server) changeScheme(sh *ownShard, out []Effect) []Effect {
	changed := false
	for ; s.members.present > 0; changed = true {
		if out = s.closeBeforeCut(sh, out); sh.v() < sh.cut.at {
			break
		}
		out = s.drainScheme(sh, out)
		at, pushes, pulls := sh.cut.at, sh.cut.pushes, sh.cut.pulls
		sh.cut.pushes, sh.cut.pulls = nil, nil
		clocks := make([]int64, s.workers)
		for w := range clocks {
			if s.members.left[w] {
				clocks[w] = -1
				continue
			}
			if sh.peers[w].clock < at { // the others did not wait for this slow worker: what it pushes before the cut is late
				sh.setClock(int32(w), at)
			}
			clocks[w] = sh.peers[w].clock
		}
		for _, p := range pushes {
			clocks[p.head.Worker] = at
		}
		if sh.cut.awaits {
			sh.cut.changes, sh.cut.began = sh.cut.changes+1, at
		}
		sh.setScheme(sh.cut.next(clocks, sh.versions.version))
		sh.closed = max(sh.closed, at)
		for i := range sh.peers {
			if p := sh.peers[i].landing; p != nil && p.head.Iter >= at && p.head.Iter < sh.cut.at {
				out = s.decide(sh, schemeEvent(scheme.Offered, p.head), out)
			}
		}
		for _, p := range pushes {
			if p.head.Iter < sh.cut.at {
				out = s.decide(sh, schemeEvent(scheme.Offered, p.head), out)
			}
			out = s.tellPushed(sh, p, out)
		}
		for _, w := range pulls {
			if sh.peers[w].pullIter >= sh.cut.at {
				sh.cut.pulls = append(sh.cut.pulls, w)
			} else {
				out = s.tellWanted(sh, w, out)
			}
		}
	}
	if changed {
		out = s.follow(sh, out)
	}
	return out
}

// closeBeforeCut closes the iterations before the cut of a leading shard when every worker in the run has passed it.
// For the scheme all these workers have left. It has closed all that was pushed, and says nothing of iterations that
// nobody pushed.
func (s *Server) closeBeforeCut(sh *ownShard, out []Effect) []Effect {
	if !sh.agrees || !sh.agreement.leads || sh.low < sh.cut.at || sh.closed >= sh.cut.at {
		return out
	}
	return s.closeIteration(sh, sh.cut.at-1, out)
}

// drainScheme tells the current scheme that every worker left, so that it commits or drops all it has. A pull that it
// still holds back then is the first that the next scheme is told of.
func (s *Server) drainScheme(sh *ownShard, out []Effect) []Effect {
	for w := range int32(s.workers) {
		if !s.members.left[w] {
			out = s.decide(sh, scheme.Event{Kind: scheme.Left, Worker: w, Shard: sh.id}, out)
		}
	}
	var open []int32
	for w := range sh.peers {
		if k := &sh.peers[w]; k.pullHeld {
			k.pullHeld = false
			open = append(open, int32(w))
		}
	}
	sh.cut.pulls = append(open, sh.cut.pulls...)
	if n := sh.slots.staged - len(sh.cut.pushes); n != 0 || sh.versions.folded != 0 {
		panic(fmt.Sprintf("core: shard %d: %d pushes are staged and %d folded after every worker left %v", sh.id, n,
			sh.versions.folded, sh.scheme))
	}
	return out
}
