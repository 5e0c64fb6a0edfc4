package scheme

import "time"

// slots is the timetable of a rotation. The worker with rank i pushes in a round no earlier than roundStart + i*gap.
// The gap is the period over the number of workers with a slot.
type slots struct {
	period     time.Duration // T; 0: not measured yet, no worker has a slot
	slotCount  int64         // workers with a slot
	roundStart time.Duration // of this round
	elsewhere  time.Duration // for which a worker pushes to the other servers; it may do so before it pushes here
	rounds     int64         // rounds begun so far
	redeal     bool          // the slots must be dealt anew when the next round begins
}

// clockOf is the number of iterations of which all shards here have the worker's push.
func (r *rotation) clockOf(w int32) int64 {
	c := r.clocks[0].clock[w]
	for k := range r.clocks[1:] {
		c = min(c, r.clocks[1+k].clock[w])
	}
	return c
}

func (r *rotation) key(w int32) int64 { return r.clockOf(w) + r.workers[w].missed }

// announced handles a worker that has a push ready and holds it back until the grant.
func (r *rotation) announced(ev Event, out []Decision) []Decision {
	w := &r.workers[ev.Worker]
	switch {
	case w.left:
		return out // overtaken by its Left
	case ev.Iter < r.clockOf(ev.Worker):
		// All shards here have this push from before a restart and will ignore it, so it delays nobody.
		return append(out, Decision{Kind: Grant, Worker: ev.Worker, Shard: r.shards[0], Iter: ev.Iter, Epoch: r.epoch})
	case r.granted && r.turn == ev.Worker:
		r.bug(ev, "its push of an earlier iteration has not landed")
	}
	busy := r.now - w.firstReadyAt - ev.Blocked
	if ev.Iter != w.iter || w.firstReadyAt == 0 {
		w.firstReadyAt = r.now
	}
	w.ready, w.iter, w.readyAt = true, ev.Iter, r.now
	r.measure(w, busy, ev.Queued)
	if w.suspended {
		r.enter(ev.Worker)
	}
	return out
}

// enter takes a worker into the rotation. It does not make up for turns that it missed. In the strict order, and before
// there are slots, no turn is missed: others wait for the worker with the turn, and that worker may itself wait, at
// another server, for a worker behind it.
func (r *rotation) enter(w int32) {
	me := &r.workers[w]
	me.suspended = false
	if r.keys.SkipAfter > 0 && r.period > 0 {
		me.missed += max(0, r.round-r.key(w))
	}
	r.redeal = true
	if !r.granted { // it may precede the worker whose turn it is
		r.turn = NoWorker
	}
}

// landed notes that the push of an iteration has landed at all shards. skipped is the number of iterations that the
// worker skipped before it.
func (r *rotation) landed(w int32, skipped int64) {
	me := &r.workers[w]
	me.ready = false
	me.missed = max(0, me.missed-skipped)
	switch {
	case r.turn == w && r.granted:
		r.granted = false
		me.landedAt = r.now
	default: // its grant was revoked while the push was in flight
		r.strays++
		if me.suspended {
			me.missed = max(0, me.missed-1) // it did take the turn, only late
			r.enter(w)
		}
	}
	if !r.granted {
		r.turn = NoWorker
	}
}

// nextTurn gives the turn to the first worker by (key, rank), and begins a round where that worker begins it.
func (r *rotation) nextTurn() {
	first, low := NoWorker, int64(0)
	for i := range r.workers {
		if w := int32(i); !r.workers[i].left && !r.workers[i].suspended {
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
	case r.period == 0 || r.redeal || r.slotsOutdated():
		r.dealSlots()
	default:
		r.roundStart += r.period
	}
}

// runTurns gives the grant that is due, passes the turns of workers that are late, and asks for an alarm at the next
// time that matters. A worker whose turn passed is suspended, so the loop ends.
func (r *rotation) runTurns(out []Decision) []Decision {
	for {
		if r.turn == NoWorker {
			if r.nextTurn(); r.turn == NoWorker {
				return out
			}
		}
		w := &r.workers[r.turn]
		var wake time.Duration
		switch slot := r.slot(w); {
		case r.granted:
			wake = r.deadline(w.grantAt)
		case w.ready && r.now < slot:
			return r.askAlarm(slot, out)
		case w.ready:
			out = append(out, r.grant(w, slot))
			wake = r.deadline(r.now)
		default:
			wake = r.deadline(max(r.turnAt, slot))
		}
		if wake == unknown || r.now < wake {
			return r.askAlarm(wake, out)
		}
		out = r.missTurn(w, out)
	}
}

// Turn is the worker with the turn, and whether others wait for it: for the stall report.
func (r *rotation) Turn() (w int32, awaited bool) {
	for i := range r.workers {
		if r.workers[i].ready && int32(i) != r.turn && r.turn != NoWorker {
			return r.turn, true
		}
	}
	return NoWorker, false
}

// Passed counts the turns that passed because their worker was late, and the pushes that landed out of turn.
func (r *rotation) Passed() (missed, strays int64) { return r.skips, r.strays }

func (r *rotation) grant(w *turnState, slot time.Duration) Decision {
	r.granted = true
	w.ready = false
	w.grantAt, w.landedAt, w.readyDue = r.now, unknown, unknown
	if r.period > 0 && w.rank >= 0 && w.plannedCycle > 0 {
		w.readyDue = slot + w.plannedCycle
	}
	return Decision{Kind: Grant, Worker: r.turn, Shard: r.shards[0], Iter: w.iter, Epoch: r.epoch}
}

// missTurn passes the turn of a worker that is late. If the worker has the grant, the grant is void from now on; a push
// that is already in flight will be taken out of turn.
func (r *rotation) missTurn(w *turnState, out []Decision) []Decision {
	if r.granted {
		out = append(out, Decision{Kind: Revoke, Worker: r.turn, Shard: r.shards[0], Iter: w.iter, Epoch: r.epoch})
		r.epoch++
	}
	r.skips++
	w.missed++
	w.suspended = true
	r.redeal, r.granted = true, false
	r.turn = NoWorker
	return out
}

// deadline is the time after which a worker that should have pushed at from is late; unknown: never. Its pushes to the
// other servers do not make it late.
func (r *rotation) deadline(from time.Duration) time.Duration {
	if r.keys.SkipAfter == 0 || r.period == 0 {
		return unknown
	}
	return from + time.Duration(r.keys.SkipAfter)*r.gap() + r.elsewhere
}

func (r *rotation) gap() time.Duration { return r.period / time.Duration(r.slotCount) }

// slot is the time before which a worker does not push in this round.
func (r *rotation) slot(w *turnState) time.Duration {
	if r.period == 0 || w.rank < 0 {
		return 0
	}
	return r.roundStart + time.Duration(w.rank)*r.period/time.Duration(r.slotCount)
}

// askAlarm asks for an alarm, unless an earlier one is pending.
func (r *rotation) askAlarm(at time.Duration, out []Decision) []Decision {
	if at == unknown || r.wakeAt != unknown && r.wakeAt <= at {
		return out
	}
	r.wakeAt = at
	return append(out, Decision{Kind: WakeAt, Worker: NoWorker, Shard: r.shards[0], At: at})
}

// measure updates a worker's averages when the worker is ready again after a turn, and checks whether it keeps its
// slot. busy is the time since the worker was ready before, without its waits for replies; queued is how long its push
// waited for its pushes to other servers. A cycle is at most what the worker needs where nobody is in its way: computing,
// a push to each server, and a pull, since all other pulls run beside pushes. Waits for the grants of other servers are
// no part of it: otherwise each rotation would stretch its period by the slots and deadlines of the others, without end.
func (r *rotation) measure(w *turnState, busy, queued time.Duration) {
	if w.landedAt == unknown {
		return
	}
	push, pull := max(0, w.landedAt-w.grantAt-queued), max(0, w.sentAt-w.landedAt)
	if w.measured == 0 {
		w.pushMin = push
	}
	w.pushMin = min(w.pushMin, push)
	w.measured = min(w.measured+1, r.keys.Profile)
	n := time.Duration(w.measured)
	need := max(0, busy) + time.Duration(r.servers)*push + pull
	w.cycle += (min(max(0, w.readyAt-w.grantAt-queued), need) - w.cycle) / n
	w.pull += (pull - w.pull) / n
	if w.readyDue == unknown {
		return
	}
	w.drift += time.Duration(float64(w.readyAt-w.readyDue-w.drift) * r.keys.Smoothing)
	if float64(max(w.drift, -w.drift)) <= r.keys.Delta*float64(r.gap()) {
		w.drifted = 0
		return
	}
	if w.drifted++; w.drifted >= r.keys.DeltaRounds {
		r.redeal = true
	}
}

// dealSlots makes a timetable from the measurements. Its start is the earliest time at which no worker's slot comes
// before the worker is expected to be ready. Servers exchange no message: a worker announces itself to all of them at about
// the same time, and pushes to one after the other (internal/core), so that they follow each other by a push.
func (r *rotation) dealSlots() {
	n := int64(0)
	for i := range r.workers {
		w := &r.workers[i]
		w.rank, w.plannedCycle, w.drift, w.drifted, w.readyDue = -1, w.cycle, 0, 0, unknown
		if !w.left && !w.suspended {
			w.rank = n
			n++
		}
	}
	r.slotCount = n
	period, push := r.estimate()
	if period < time.Duration(n) { // no worker was measured, or everything took no time
		if r.period < time.Duration(n) {
			r.period = 0
			return
		}
		period = r.period // of workers that have left: without a period no turn could be missed
	}
	r.period, r.elsewhere = period, time.Duration(r.servers-1)*push
	r.redeal = false
	r.roundStart = r.now
	for i := range r.workers {
		w := &r.workers[i]
		if w.rank < 0 {
			continue
		}
		early := time.Duration(w.rank) * r.period / time.Duration(n)
		switch {
		case w.ready:
			r.roundStart = max(r.roundStart, w.readyAt-early)
		case w.landedAt != unknown && w.measured > 0:
			r.roundStart = max(r.roundStart, w.grantAt+w.cycle-early)
		}
	}
}

// estimate is the shortest period that the workers with a slot can keep, and the longest of their shortest pushes. The
// slowest worker decides, or the link where N pushes or pulls take longer.
func (r *rotation) estimate() (period, push time.Duration) {
	cycle, pull := time.Duration(0), time.Duration(0)
	for i := range r.workers {
		if w := &r.workers[i]; w.rank >= 0 {
			cycle, push, pull = max(cycle, w.cycle), max(push, w.pushMin), max(pull, w.pull)
		}
	}
	n := time.Duration(r.slotCount)
	return max(cycle, n*push, n*pull), push
}

// slotsOutdated says whether the period of a new timetable would differ from the current one.
func (r *rotation) slotsOutdated() bool {
	period, _ := r.estimate()
	return float64(max(period-r.period, r.period-period)) > r.keys.Delta*float64(r.gap())
}
