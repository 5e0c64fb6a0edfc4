package scheme

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// gate is the engine of every scheme whose pulls wait for v. It has a pull condition (its limit), one push condition (v
// is the smallest clock of the live workers; with a quorum, so many pushes close the open iteration), a key for each
// delayed pull, and a commit mode.
//
// Its loop is that of the FluentPS server with three corrections. v advances as far as it can in one event. Every
// delayed pull whose key v has passed is answered, not only the bucket equal to v. And a worker that has left is no
// longer counted.
type gate struct {
	rule
	commits commitMode
	shard   int32
	follows bool    // another shard closes the iterations, and v follows it: atMin and atV are unused
	weight  float64 // learning-rate scale of a commit of one push
	average float64 // samples of a push for which that scale holds, which others take in proportion; 0: it holds for all

	// clock is the number of iterations that each worker has closed, by a push or by skipping them. Without a quorum v
	// <= clock for every live worker. It stays when a worker leaves, so that a push counts once even if the worker
	// comes back.
	clock []int64
	left  []bool
	v     int64 // never decreases
	live  int   // workers with left false
	atMin int   // live workers with clock <= v, which may still push v; at least 1 while live > 0
	atV   int   // pushes of v that are staged or pending; below the quorum where there is one

	staged         []push    // landed, neither folded nor dropped; iter >= v, and > v in mode byClose
	parked         []pull    // delayed pulls in order of arrival
	hasParked      []bool    // per worker: it has a pull in parked; never more than one
	closings       []closing // follows: iterations that the leading shard has closed and this one has not, ascending from v on
	pendingPushes  int64     // folded into SlotPending since the last Commit
	pendingSamples int64     // samples of these pushes
	skipped        int64     // iterations that workers skipped without a push

	now time.Duration // At of the current event
}

// push is a landed push whose slot is still taken.
type push struct {
	worker  int32
	iter    int64
	samples int64
	part    int32 // index among the pushes of its worker in the iteration
}

// pull is a delayed pull.
type pull struct {
	worker int32
	iter   int64 // c: the iteration that its worker asked for; v < c <= clock
	key    int64 // answered when v > key and the limit's bound allows it
}

func newGate(env Env, common Common, fold FoldOrder, r rule) (Scheme, error) {
	if err := env.check(r.name); err != nil {
		return nil, err
	}
	common, err := common.resolve(r.name, fold)
	if err != nil {
		return nil, err
	}
	commits, err := r.mode(common)
	if err != nil {
		return nil, err
	}
	g := &gate{
		rule:      r,
		commits:   commits,
		shard:     env.Shards[0],
		follows:   env.Follows && r.agree,
		weight:    common.Weight,
		average:   env.Samples,
		clock:     make([]int64, env.Workers),
		left:      make([]bool, env.Workers),
		parked:    make([]pull, 0, env.Workers),
		hasParked: make([]bool, env.Workers),
	}
	if g.mix == nil {
		g.mix = plain{}
	}
	if g.weight == 0 {
		g.weight = 1 / float64(env.Workers)
		if g.pushesPerVersion > 0 {
			g.weight = 1 / float64(g.pushesPerVersion)
		}
	}
	for w, c := range env.Clocks {
		g.clock[w], g.left[w] = max(c, 0), c < 0
	}
	g.startAt(env.Start)
	return g, nil
}

// startAt derives v and the counts from the clocks; where nobody is in the run, v is the start version.
func (g *gate) startAt(version int64) {
	g.v = version
	g.live = 0
	for w, gone := range g.left {
		if gone {
			continue
		}
		if g.live++; g.live == 1 || g.clock[w] < g.v {
			g.v = g.clock[w]
		}
	}
	g.recount()
}

// recount derives atMin and atV.
func (g *gate) recount() {
	g.atMin = 0
	for w, c := range g.clock {
		if !g.left[w] && c <= g.v {
			g.atMin++
		}
	}
	g.atV = g.stagedOf(g.v)
	if g.commits == byClose {
		g.atV += int(g.pendingPushes)
	}
}

// Step implements Scheme. Offered and Sent change nothing here.
func (g *gate) Step(ev Event, out []Decision) []Decision {
	if ev.Kind == Closed {
		return g.closedEvent(ev, out)
	}
	if ev.Shard != g.shard || ev.Worker < 0 || int(ev.Worker) >= len(g.clock) {
		g.bug(ev, "another shard's event, or an unknown worker")
	}
	g.now = ev.At
	switch ev.Kind {
	case Offered, Sent:
		return out
	case Pushed:
		return g.pushed(ev, out)
	case Wanted:
		return g.wanted(ev, out)
	case Left:
		return g.leave(ev.Worker, out)
	case Joined:
		return g.join(ev.Worker, ev.Iter, out)
	case Alarm:
		if g.rounds != nil || g.coded != nil && g.coded.code.Deadline() > 0 {
			if g.live == 0 { // nobody waits; what a worker pushed before it left closes an iteration when another one comes, or never
				return out
			}
			return g.advance(out)
		}
	case WaitsElsewhere, WaitedElsewhere:
		if g.AsksElsewhere() {
			g.rounds.elsewhere(ev)
			return g.advance(out)
		}
	}
	g.bug(ev, "an answer to a Grant, WakeAt or AskElsewhere that was never given")
	return out
}

// bug panics: the driver broke the contract of Event, which no user input can cause.
func (g *gate) bug(ev Event, what string) {
	panic(fmt.Sprintf("scheme: shard %d: %v: %s; state: %v", g.shard, ev, what, g))
}

func (g *gate) pushed(ev Event, out []Decision) []Decision {
	w := ev.Worker
	switch {
	case ev.Iter < g.clock[w]:
		g.bug(ev, "iteration already closed for this worker")
	case ev.Parts != g.coded.parts():
		g.bug(ev, fmt.Sprintf("this scheme takes pushes of exactly %d part", g.coded.parts()))
	case ev.Owner != w:
		g.bug(ev, "this scheme takes no helper's pushes")
	case ev.Samples < 0:
		g.bug(ev, "negative sample count")
	case g.hasParked[w]:
		g.bug(ev, "pushed while its pull is open")
	}
	old := g.clock[w]
	g.clock[w] = ev.Iter
	if ev.Part == ev.Parts-1 {
		g.clock[w]++
	}
	g.skipped += ev.Iter - old

	p := push{worker: w, iter: ev.Iter, samples: ev.Samples, part: ev.Part}
	why := g.dropReason(ev)
	switch {
	case why != NotDropped:
		out = append(out, Decision{Kind: Drop, Worker: w, Shard: g.shard, Part: ev.Part, Iter: ev.Iter, Src: SlotPush, Reason: why})
	case g.commits == byValue:
		g.transit.hold(p, ev.NormInf)
	case g.commits == byRound:
		out = g.fold(p, out)
	case g.commits == byPush:
		out = g.mix.pushed(g, p, ev.Seen, out)
	case g.commits == byCount:
		if out = g.foldAs(p, g.mix.weigh(g, p, ev.Seen), out); g.pendingPushes >= g.pushesPerVersion {
			out = g.commitPending(w, ev.Iter, out)
		}
	case g.commits == byClose && ev.Iter == g.v && !g.follows:
		out = g.fold(p, out)
		g.atV++
	default:
		// Also in mode byClose: folded now, a push beyond v would become part of the version that closes v.
		g.staged = append(g.staged, p)
		if ev.Iter == g.v {
			g.atV++
		}
	}
	if g.left[w] {
		return out
	}
	g.limit.pushed(ev)
	if old <= g.v && g.clock[w] > g.v {
		g.atMin--
	}
	return g.advance(out)
}

// dropReason says why a push is dropped, NotDropped if it is not. A push that was in flight when its worker left is
// dropped: its iteration was closed without it, or may be before it is folded.
func (g *gate) dropReason(ev Event) Reason {
	switch {
	case ev.Samples == 0:
		return Empty
	case g.left[ev.Worker]:
		return Gone
	case g.mix.stale(g, ev):
		return Stale
	case ev.Parts > 1 && g.hasStaged(ev): // of the worker's life before it came back
		return Surplus
	case g.quorum == 0 || ev.Iter == g.v: // v is open, so its quorum is not complete
		return NotDropped
	case ev.Iter < g.v:
		return Late
	// Another shard let workers skip ahead, and they filled the quorum of this iteration before it was open here.
	case !g.follows && g.stagedOf(ev.Iter) >= g.quorum:
		return Surplus
	}
	return NotDropped
}

func (g *gate) wanted(ev Event, out []Decision) []Decision {
	w := ev.Worker
	switch {
	case g.left[w]:
		return out // its Left has overtaken this pull: nobody waits for the reply
	case ev.Iter < 0 || ev.Iter > g.clock[w]:
		g.bug(ev, "wants an iteration beyond its pushes")
	case g.hasParked[w]:
		g.bug(ev, "its pull is already open")
	}
	c := ev.Iter
	key := g.v
	switch {
	case g.limit.admit(g, w, c-g.v) && !(g.release == ReleaseBlock && g.anyParkedAt(c)):
		if !g.transit.holds(w) {
			return append(out, g.reply(w, c))
		}
		key = noKey
	case g.release != ReleaseSoft:
		key = c - 1
	}
	g.parked = append(g.parked, pull{worker: w, iter: c, key: key})
	g.hasParked[w] = true
	return out
}

// advance is the push condition and the release of pulls. v moves to the smallest live clock, or past everything that
// was pushed when nobody is left, and past each iteration that has its quorum. The iterations in between close, then
// delayed pulls are answered. Scanning the clocks only when v can move costs N steps per iteration, thus O(1) per push.
func (g *gate) advance(out []Decision) []Decision {
	if g.follows {
		return g.follow(out)
	}
	old := g.v
	for {
		next := g.v
		if g.quorum > 0 && g.atV >= g.quorum || g.coded.closes(g) {
			next++
		} else if g.atMin == 0 {
			next = g.lowest()
		}
		if next == g.v {
			break
		}
		out = g.closeTo(next, out)
		g.recount()
	}
	out = g.coded.waits(g, out)
	in, all := false, g.v > old && g.limit.vMoved(g, old)
	switch {
	case g.transit != nil:
		out, in = g.transit.admitPushes(g, out)
	case g.rounds != nil:
		out, in = g.rounds.settle(g, out)
		all = all || in
	}
	if g.v > old || in {
		out = g.releaseParked(all, out)
	}
	return out
}

// lowest is the smallest live clock above v, or the largest clock of all where nobody is left.
func (g *gate) lowest() int64 {
	low, high := int64(-1), g.v
	for w, c := range g.clock {
		high = max(high, c)
		if !g.left[w] && (low < 0 || c < low) {
			low = c
		}
	}
	if low < 0 {
		for _, p := range g.staged {
			high = max(high, p.iter+1) // of one who has left between two pushes of an iteration
		}
		return high
	}
	return low
}

// closeTo closes the iterations from v up to but not including next, in order.
func (g *gate) closeTo(next int64, out []Decision) []Decision {
	if g.commits == byClose { // iteration v is in SlotPending already
		out = g.commitIteration(g.v, out)
	}
	if g.commits == byRank {
		slices.SortFunc(g.staged, byRankOrder)
	} else {
		slices.SortStableFunc(g.staged, func(a, b push) int { return cmp.Compare(a.iter, b.iter) })
	}
	k := 0
	for k < len(g.staged) && g.staged[k].iter < next {
		iter, from := g.staged[k].iter, k
		for ; k < len(g.staged) && g.staged[k].iter == iter; k++ {
			if g.coded == nil {
				out = g.fold(g.staged[k], out)
			}
		}
		if g.coded != nil {
			out = g.coded.fold(g, g.staged[from:k], out)
		}
		out = g.commitIteration(iter, out)
	}
	out = g.sayClosed(next-1, out)
	if g.commits == byClose { // iteration next is open now: its early pushes are folded
		for ; k < len(g.staged) && g.staged[k].iter == next; k++ {
			out = g.fold(g.staged[k], out)
		}
	}
	g.staged = slices.Delete(g.staged, 0, k)
	g.v = next
	return out
}

// releaseParked answers, in order of arrival, the delayed pulls whose key v has passed, or all that fit if all is set.
// In plain SSP a soft pull has c - v = s+1 when it is parked, so one step of v opens the gate. The check of the bound
// matters for a worker that is further ahead, because it has skipped iterations or was admitted beyond the bound.
func (g *gate) releaseParked(all bool, out []Decision) []Decision {
	kept := g.parked[:0]
	for _, p := range g.parked {
		if (all || g.v > p.key) && p.iter-g.v <= g.limit.bound(p.iter) && !g.transit.holds(p.worker) {
			out = append(out, g.reply(p.worker, p.iter))
			g.hasParked[p.worker] = false
		} else {
			kept = append(kept, p)
		}
	}
	g.parked = kept
	return out
}

// reply names the next iteration to compute. A resumed worker, which starts at its lowest clock over all shards, may
// have asked for an iteration that this shard already has. The gate still judges the iteration that was asked for. If
// it judged the shard's own clock, two workers could wait for each other at two shards whose states were saved at
// different times. A worker behind v continues at v: its pushes of earlier iterations would be dropped.
func (g *gate) reply(w int32, c int64) Decision {
	g.limit.replied(w, g.now)
	g.mix.replied(w)
	return Decision{Kind: Reply, Worker: w, Shard: g.shard, Iter: max(c, g.clock[w], g.v), Src: SlotParams}
}

func (g *gate) anyParkedAt(c int64) bool {
	return slices.ContainsFunc(g.parked, func(p pull) bool { return p.iter == c })
}
