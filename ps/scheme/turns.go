package scheme

import "time"

// slots is the timetable of a rotation: the worker with rank i pushes in round r no earlier than t0 + i*gap, t0 being
// that of round r; gap is the period over the number of workers.
type slots struct {
	period  time.Duration // T; 0: not measured yet, nobody has a slot
	members int64         // workers with a slot
	t0      time.Duration // of this round
	offset  time.Duration // by which it is later than at server 0
	rounds  int64         // begun so far
	changed bool          // the slots are to be dealt anew when the next round begins
}

// clockOf is the number of iterations of which all shards here have the worker's push.
func (r *rotation) clockOf(w int32) int64 {
	c := r.reigns[0].clock[w]
	for k := range r.reigns[1:] {
		c = min(c, r.reigns[1+k].clock[w])
	}
	return c
}

func (r *rotation) key(w int32) int64 { return r.clockOf(w) + r.workers[w].missed }

// announced: a worker has a push ready, and holds it back until it gets the grant.
func (r *rotation) announced(ev Event, out []Decision) []Decision {
	w := &r.workers[ev.Worker]
	switch {
	case w.left:
		return out // overtaken by its Left
	case ev.Iter < r.clockOf(ev.Worker):
		// All shards here have this push from an earlier run and will ignore it: it is in nobody's way.
		return append(out, Decision{Kind: Grant, Worker: ev.Worker, Shard: r.shards[0], Iter: ev.Iter, Epoch: r.epoch})
	case r.granted && r.turn == ev.Worker:
		r.bug(ev, "its push of an earlier iteration has not landed")
	}
	busy := r.now - w.doneAt - ev.Blocked
	if ev.Iter != w.iter || w.doneAt == 0 {
		w.doneAt = r.now
	}
	w.ready, w.iter, w.readyAt = true, ev.Iter, r.now
	r.measure(w, busy)
	if w.out {
		r.enter(ev.Worker)
	}
	return out
}

// enter takes a worker into the rotation. Turns that it missed are not made up for. In the strict order nobody misses
// any, nor before there are slots: whoever has the turn is waited for, who may itself wait elsewhere for one behind it.
func (r *rotation) enter(w int32) {
	me := &r.workers[w]
	me.out = false
	if r.keys.SkipAfter > 0 && r.period > 0 {
		me.missed += max(0, r.round-r.key(w))
	}
	r.changed = true
	if !r.granted { // it may come before the one whose turn it is
		r.turn = NoWorker
	}
}

// landed: the push of an iteration is here, of all shards; over is the number of iterations passed over before it.
func (r *rotation) landed(w int32, over int64) {
	me := &r.workers[w]
	me.ready = false
	me.missed = max(0, me.missed-over)
	switch {
	case r.turn == w && r.granted:
		r.granted = false
		me.landedAt = r.now
	default: // its grant was revoked when the push was on its way
		r.strays++
		if me.out {
			me.missed = max(0, me.missed-1) // it did take the turn, only later
			r.enter(w)
		}
	}
	if !r.granted {
		r.turn = NoWorker
	}
}

// next gives the turn to whoever is first by (key, rank), and begins a round where that one begins it.
func (r *rotation) next() {
	first, low := NoWorker, int64(0)
	for i := range r.workers {
		if w := int32(i); !r.workers[i].left && !r.workers[i].out {
			if key := r.key(w); first == NoWorker || key < low {
				first, low = w, key
			}
		}
	}
	r.turn, r.turnAt = first, r.now
	if first == NoWorker || low <= r.round {
		return
	}
	r.round = low
	r.rounds++
	switch {
	case r.period == 0 && r.rounds <= r.keys.Profile:
	case r.period == 0 || r.changed || r.outdated():
		r.deal()
	default:
		r.t0 += r.period
	}
}

// run gives the grant that is due, passes the turns of those who are too late, and asks to be woken for what comes
// later. Whoever passes its turn is out, so that this ends.
func (r *rotation) run(out []Decision) []Decision {
	for {
		if r.turn == NoWorker {
			if r.next(); r.turn == NoWorker {
				return out
			}
		}
		w := &r.workers[r.turn]
		var wake time.Duration
		switch slot := r.slot(w); {
		case r.granted:
			wake = r.deadline(w.grantAt)
		case w.ready && r.now < slot:
			return r.wake(slot, out)
		case w.ready:
			out = append(out, r.grant(w, slot))
			wake = r.deadline(r.now)
		default:
			wake = r.deadline(max(r.turnAt, slot))
		}
		if wake == unknown || r.now < wake {
			return r.wake(wake, out)
		}
		out = r.miss(w, out)
	}
}

// Turn is the worker that the others wait for, and whether any does: for the stall report.
func (r *rotation) Turn() (w int32, awaited bool) {
	for i := range r.workers {
		if r.workers[i].ready && int32(i) != r.turn && r.turn != NoWorker {
			return r.turn, true
		}
	}
	return NoWorker, false
}

// Passed counts the turns that passed because their worker was too late, and the pushes that landed without the turn.
func (r *rotation) Passed() (missed, strays int64) { return r.skips, r.strays }

func (r *rotation) grant(w *runner, slot time.Duration) Decision {
	r.granted = true
	w.ready = false
	w.grantAt, w.landedAt, w.due = r.now, unknown, unknown
	if r.period > 0 && w.rank >= 0 && w.planned > 0 {
		w.due = slot + w.planned
	}
	return Decision{Kind: Grant, Worker: r.turn, Shard: r.shards[0], Iter: w.iter, Epoch: r.epoch}
}

// miss passes the turn of a worker that is too late. If it has the grant, that is void from now on, and if its push
// is on its way already, it will be taken out of turn.
func (r *rotation) miss(w *runner, out []Decision) []Decision {
	if r.granted {
		out = append(out, Decision{Kind: Revoke, Worker: r.turn, Shard: r.shards[0], Iter: w.iter, Epoch: r.epoch})
		r.epoch++
	}
	r.skips++
	w.missed++
	w.out = true
	r.changed, r.granted = true, false
	r.turn = NoWorker
	return out
}

// deadline is when a worker that should have pushed at a time is too late; unknown: never.
func (r *rotation) deadline(from time.Duration) time.Duration {
	if r.keys.SkipAfter == 0 || r.period == 0 {
		return unknown
	}
	return from + time.Duration(r.keys.SkipAfter)*r.gap()
}

func (r *rotation) gap() time.Duration { return r.period / time.Duration(r.members) }

// slot is the time before which a worker does not push in this round.
func (r *rotation) slot(w *runner) time.Duration {
	if r.period == 0 || w.rank < 0 {
		return 0
	}
	return r.t0 + time.Duration(w.rank)*r.period/time.Duration(r.members)
}

// wake asks for an alarm, unless one comes earlier anyway.
func (r *rotation) wake(at time.Duration, out []Decision) []Decision {
	if at == unknown || r.wakeAt != unknown && r.wakeAt <= at {
		return out
	}
	r.wakeAt = at
	return append(out, Decision{Kind: WakeAt, Worker: NoWorker, Shard: r.shards[0], At: at})
}

// measure learns from a worker that is ready again after a turn how long it takes, and whether it keeps its slot. busy is
// the time since it was ready before, without what it waited for replies: what other servers kept it waiting for is no
// part of its cycle, or each rotation would stretch its period by the slots and the deadlines of the others, for ever.
func (r *rotation) measure(w *runner, busy time.Duration) {
	if w.landedAt == unknown {
		return
	}
	push := w.landedAt - w.grantAt
	if w.measured == 0 {
		w.alone = push
	}
	w.alone = min(w.alone, push)
	w.measured = min(w.measured+1, r.keys.Profile)
	n := time.Duration(w.measured)
	w.cycle += (min(w.readyAt-w.grantAt, push+max(0, busy)) - w.cycle) / n
	w.push += (push - w.push) / n
	w.pull += (max(0, w.sentAt-w.landedAt) - w.pull) / n
	if w.due == unknown {
		return
	}
	w.drift += time.Duration(float64(w.readyAt-w.due-w.drift) * r.keys.Smoothing)
	if float64(max(w.drift, -w.drift)) <= r.keys.Delta*float64(r.gap()) {
		w.drifted = 0
		return
	}
	if w.drifted++; w.drifted >= r.keys.DeltaRounds {
		r.changed = true
	}
}

// deal makes a timetable from what was measured. Its base is the earliest at which nobody's slot comes before that worker
// is expected to be ready, plus k push times at server k. Announcements reach all servers at about the same time, so
// that their bases differ by just that, and no message goes between servers. Where the links are the limit the workers
// wait anyway, and what was expected is long past: then the base is now, later by k push times the first time, and
// later by as much as pushes are held up since.
func (r *rotation) deal() {
	n := int64(0)
	for i := range r.workers {
		w := &r.workers[i]
		w.rank, w.planned, w.drift, w.drifted, w.due = -1, w.cycle, 0, 0, unknown
		if !w.left && !w.out {
			w.rank = n
			n++
		}
	}
	first := r.period == 0
	r.members = n
	period, offset := r.estimate()
	if period < time.Duration(n) { // nobody was measured, or all is for free
		if r.period < time.Duration(n) {
			r.period, r.offset = 0, offset
			return
		}
		period = r.period // of workers that are gone: without one nobody would miss a turn any more
	}
	r.period, r.offset = period, offset
	r.changed = false
	r.t0 = r.now + r.crowded()
	if first { // the rotations of all servers have run side by side so far
		r.t0 += r.offset
	}
	for i := range r.workers {
		w := &r.workers[i]
		if w.rank < 0 {
			continue
		}
		early := time.Duration(w.rank) * r.period / time.Duration(n)
		switch {
		case w.ready:
			r.t0 = max(r.t0, w.readyAt+r.offset-early)
		case w.landedAt != unknown && w.measured > 0:
			r.t0 = max(r.t0, w.grantAt+w.cycle+r.offset-early)
		}
	}
}

// estimate is the period that the workers with a slot can keep, and how much later than at server 0 the slots are here.
// The slowest worker decides, or the link where N pushes or pulls take longer.
func (r *rotation) estimate() (period, offset time.Duration) {
	cycle, push, pull := time.Duration(0), time.Duration(0), time.Duration(0)
	for i := range r.workers {
		if w := &r.workers[i]; w.rank >= 0 {
			cycle, push, pull = max(cycle, w.cycle), max(push, w.alone), max(pull, w.pull)
		}
	}
	offset = time.Duration(r.server) * push
	n := time.Duration(r.members)
	return max(offset+cycle, n*push, n*pull), offset
}

// outdated says whether the timetable would be another one by now, or does not keep the workers' pushes to different
// servers apart.
func (r *rotation) outdated() bool {
	period, offset := r.estimate()
	off := func(a, b, unit time.Duration) bool {
		return float64(max(a-b, b-a)) > r.keys.Delta*float64(unit)
	}
	return off(period, r.period, r.gap()) || off(offset, r.offset, offset) || off(r.crowded(), 0, offset)
}

// crowded is how much longer pushes take here than alone: at most the time for which the worker is pushing to the server
// before this one too. Server 0 leaves it to the others to keep clear of it.
func (r *rotation) crowded() (most time.Duration) {
	if r.server == 0 {
		return 0
	}
	for i := range r.workers {
		if w := &r.workers[i]; w.rank >= 0 {
			most = max(most, w.push-w.alone)
		}
	}
	return most
}
