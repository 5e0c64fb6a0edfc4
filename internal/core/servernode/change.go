package servernode

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/straggle"
	"fluentps/ps/scheme"
)

// cut is the clock at which a shard changes its scheme. Iterations before the cut belong to the current scheme, those
// from it on to the next one. The current scheme must hear nothing of the latter. No worker passes the cut before v has
// reached it, and by then the current scheme holds nothing. So every worker waits once at the cut.
type cut struct {
	at     int64 // never, where no other scheme follows or the clock was not announced
	next   func(clocks []int64, start int64) inturn.ShardScheme
	pulls  []int32   // workers whose pull for an iteration at or past the cut waits for v, in order of arrival
	pushes []*pushed // landed pushes of such iterations; their workers were sent past the cut by another shard

	awaits  bool  // at is announced while training runs, by a push with the flag Change
	changes int64 // changes at announced clocks so far
	began   int64 // the clock of the last of them
}

const never = math.MaxInt64

// setScheme makes a scheme the current one.
func (sh *ownShard) setScheme(ss inturn.ShardScheme) {
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
func (s *Server) tellPushed(sh *ownShard, p *pushed, out []core.Effect) []core.Effect {
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
func (s *Server) changeScheme(sh *ownShard, out []core.Effect) []core.Effect {
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
func (s *Server) closeBeforeCut(sh *ownShard, out []core.Effect) []core.Effect {
	if !sh.agrees || !sh.agreement.leads || sh.low < sh.cut.at || sh.closed >= sh.cut.at {
		return out
	}
	return s.closeIteration(sh, sh.cut.at-1, out)
}

// drainScheme tells the current scheme that every worker left, so that it commits or drops all it has. A pull that it
// still holds back then is the first that the next scheme is told of.
func (s *Server) drainScheme(sh *ownShard, out []core.Effect) []core.Effect {
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

// Changes of scheme that are decided while training runs (scheme.Await; Sync-Switch, reconstructed [R]). The lead
// shard's server looks for stragglers, whatever the scheme of the lead shard is. When what the schemes wait for has
// happened, it marks the replies that let workers into iteration j, the first that no worker was let into. A worker
// marks its pushes of j, to all servers. Each shard whose scheme waits then has its cut at j+1:
//
//	lead shard                       worker                            any shard whose scheme waits
//	a straggler shows
//	Reply into j, with Change ─────► Push of j, with Change ─────────► its cut is at j+1
//
// A shard hears of the cut before it can let the worker past it: no pull for j+1 is looked at before the push of j has
// landed, and no worker skips j, because only the lead shard sends workers past iterations, and no further than to j. So
// all shards change at the same clock, and no message is added. A run that stops or pauses before j+1 forgets the cut. The
// lead shard's server then looks for stragglers anew, as it does after each change.

// watch is the part of the lead shard's server that decides about changes. On other servers it is idle.
type watch struct {
	awaits    []scheme.Await     // what the schemes wait for, in turn; all rules whose schemes wait have the same; nil: none waits
	skips     []bool             // per turn: workers that are behind skip to the announced iteration
	changes   int64              // changes so far
	announced int64              // pushes of this iteration carry the Change flag; -1: of none
	why       straggle.Straggler // the reason of what is announced
	detector  straggle.Detector
}

func newWatch(awaits []scheme.Await, skips []bool, workers int) watch {
	k := watch{awaits: awaits, skips: skips, announced: -1}
	if len(awaits) > 0 {
		k.detector.Start(k.await(), workers)
	}
	return k
}

// await is what the current schemes wait for.
func (k *watch) await() scheme.Await { return k.awaits[scheme.Turn(k.changes, len(k.awaits))] }

// watchPush looks at the header of a push. Only now, and not when the push has landed, the time since the last push is
// that of the worker and not that of the link.
func (s *Server) watchPush(sh *ownShard, m *wire.Header) {
	k := &s.watch
	if sh.id == 0 && len(k.awaits) > 0 && !isPart(m) {
		k.detector.Pushed(m.Worker, m.Iter, s.now, time.Duration(m.Blocked))
		if why, is := k.detector.Verdict(m.Worker, s.members.present); is && k.announced < 0 && !s.halt.stopping {
			k.announced, k.why = max(sh.letInto, s.members.firstIterMax)+1, why
		}
	}
	if m.Flags&wire.Change != 0 && sh.cut.awaits && m.Iter >= sh.cut.began {
		sh.cut.at = m.Iter + 1
	}
}

// noteChanged says that the lead shard has passed an announced change, and begins to look for the next one. While the
// workers are being stopped, the change does not count if one of them has left before it (Saved.ChangesAt).
func (s *Server) noteChanged(out []core.Effect) []core.Effect {
	k, lead := &s.watch, s.shards[0]
	if k.announced < 0 || lead.low <= k.announced || lead.low == core.GoneClock || s.halt.stopping && reachedMin(lead.peers) <= k.announced {
		return out
	}
	at, why := k.announced+1, k.why
	k.changes++
	k.announced = -1
	k.detector.Start(k.await(), s.workers)
	if !lead.cut.awaits { // else the shard counts for itself
		lead.cut.changes, lead.cut.began = k.changes, at
	}
	return append(out, core.Effect{Kind: core.Changed, Iter: at, To: why.Worker, Src: int32(k.changes), Scale: why.Times})
}

// skipTo is the iteration that a worker may start which a shard would let into iter. If no scheme bounds the lead, workers
// may be far apart. Those that are behind would make all others wait at the cut until they have caught up, as if they
// had never been slow. So the lead shard sends each worker to the announced iteration, and what it skips is not computed.
func (s *Server) skipTo(sh *ownShard, iter int64) int64 {
	k := &s.watch
	if sh.id == 0 && iter < k.announced && !s.halt.stopping && k.skips[scheme.Turn(k.changes, len(k.skips))] {
		return k.announced
	}
	return iter
}

// resume continues after so many changes as the lead shard counts.
func (k *watch) resume(lead *ownShard, workers int) {
	if lead != nil && len(k.awaits) > 0 {
		k.changes = lead.cut.changes
		k.detector.Start(k.await(), workers)
	}
}
