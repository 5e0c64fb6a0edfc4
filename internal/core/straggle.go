package core

import (
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/ps/scheme"
)

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
	awaits    []scheme.Await // what the schemes wait for, in turn; all rules whose schemes wait have the same; nil: none waits
	skips     []bool         // per turn: workers that are behind skip to the announced iteration
	changes   int64          // changes so far
	announced int64          // pushes of this iteration carry the Change flag; -1: of none
	why       straggler      // the reason of what is announced
	detector  detector
}

// straggler is a worker that takes longer than the others.
type straggler struct {
	worker int32 // -1: no worker does
	times  float64
}

func newWatch(awaits []scheme.Await, skips []bool, workers int) watch {
	k := watch{awaits: awaits, skips: skips, announced: -1}
	if len(awaits) > 0 {
		k.detector.start(k.await(), workers)
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
		k.detector.pushed(m.Worker, m.Iter, s.now, time.Duration(m.Blocked))
		if why, is := k.detector.verdict(m.Worker, s.members.present); is && k.announced < 0 && !s.halt.stopping {
			k.announced, k.why = max(sh.letInto, s.members.firstIterMax)+1, why
		}
	}
	if m.Flags&wire.Change != 0 && sh.cut.awaits && m.Iter >= sh.cut.began {
		sh.cut.at = m.Iter + 1
	}
}

// noteChanged says that the lead shard has passed an announced change, and begins to look for the next one. While the
// workers are being stopped, the change does not count if one of them has left before it (Saved.ChangesAt).
func (s *Server) noteChanged(out []Effect) []Effect {
	k, lead := &s.watch, s.shards[0]
	if k.announced < 0 || lead.low <= k.announced || lead.low == goneClock || s.halt.stopping && reachedMin(lead.peers) <= k.announced {
		return out
	}
	at, why := k.announced+1, k.why
	k.changes++
	k.announced = -1
	k.detector.start(k.await(), s.workers)
	if !lead.cut.awaits { // else the shard counts for itself
		lead.cut.changes, lead.cut.began = k.changes, at
	}
	return append(out, Effect{Kind: Changed, Iter: at, To: why.worker, Src: int32(k.changes), Scale: why.times})
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
		k.detector.start(k.await(), workers)
	}
}

// detector finds stragglers by the times at which the workers' pushes of the lead shard arrive. Between two pushes a
// worker computes, or waits for replies. The push says how long it waited, so the rest is its own time. That holds
// under every scheme: under bsp all pushes arrive at the same rate, but fast workers wait.
type detector struct {
	await  scheme.Await
	of     []watched
	own    []time.Duration // of the last iteration of each worker that is known, ascending
	calmed int             // workers that are calm
}

// watched is what the detector knows of one worker.
type watched struct {
	next       int64         // the iteration after the last one that was pushed; 0: none was
	at         time.Duration // when that push arrived
	own        time.Duration // what the iteration took without waiting; -1: unknown
	slow, fine int64         // iterations in a row in which it straggled, or did not; one of them is 0
}

// start looks for something new. Counts start at 0; what iterations took stays known.
func (d *detector) start(a scheme.Await, workers int) {
	if d.await, d.calmed = a, 0; d.of == nil {
		d.of = make([]watched, workers)
		for w := range d.of {
			d.of[w].own = -1
		}
	}
	for w := range d.of {
		d.of[w].slow, d.of[w].fine = 0, 0
	}
}

// pushed records a push.
func (d *detector) pushed(w int32, iter int64, at, blocked time.Duration) {
	k := &d.of[w]
	if k.next == iter && iter > 0 {
		d.forget(k.own)
		k.own = max(0, at-k.at-blocked)
		i, _ := slices.BinarySearch(d.own, k.own)
		d.own = slices.Insert(d.own, i, k.own)
		d.judge(k)
	}
	k.next, k.at = iter+1, at
}

// judge counts an iteration as slow or not, if the median means something.
func (d *detector) judge(k *watched) {
	if len(d.own) < scheme.AwaitWorkersMin {
		return
	}
	if m := d.median(); m > 0 && float64(k.own) > d.await.Factor*float64(m) {
		if d.isCalm(k) {
			d.calmed--
		}
		k.slow, k.fine = k.slow+1, 0
		return
	}
	was := d.isCalm(k)
	if k.slow, k.fine = 0, k.fine+1; !was && d.isCalm(k) {
		d.calmed++
	}
}

// median is the lower of two in the middle: if half of the workers straggle, it is that of the others.
func (d *detector) median() time.Duration { return d.own[(len(d.own)-1)/2] }

func (d *detector) isCalm(k *watched) bool { return k.fine >= d.await.Rounds && d.await.Rounds > 0 }

// left forgets a worker.
func (d *detector) left(w int32) {
	if d.of == nil {
		return
	}
	k := &d.of[w]
	if d.isCalm(k) {
		d.calmed--
	}
	d.forget(k.own)
	*k = watched{own: -1}
}

func (d *detector) forget(own time.Duration) {
	if i, known := slices.BinarySearch(d.own, own); known {
		d.own = slices.Delete(d.own, i, i+1)
	}
}

// verdict says whether what is awaited has happened with the last push of worker w. present is the number of workers in
// the run.
func (d *detector) verdict(w int32, present int) (why straggler, happened bool) {
	k, none := &d.of[w], straggler{worker: -1}
	switch {
	case len(d.own) < scheme.AwaitWorkersMin:
	case d.await.Straggler == scheme.StragglerGone:
		return none, d.calmed == present
	case d.await.Straggler == scheme.StragglerShows && k.slow >= d.await.Rounds:
		return straggler{w, float64(k.own) / float64(d.median())}, true
	}
	return none, false
}
