package scheme

import "time"

// slots is the timetable of a rotation. The worker with rank i pushes in a round no earlier than roundStart + i*gap.
// The gap is the period over the number of workers with a slot.
type slots struct {
	period     time.Duration // T; 0: not measured yet, no worker has a slot
	slotCount  int64         // workers with a slot
	roundStart time.Duration // of this round
	offset     time.Duration // by which roundStart is later than at server 0
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
	r.measure(w, busy)
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

// deadline is the time after which a worker that should have pushed at from is late; unknown: never.
func (r *rotation) deadline(from time.Duration) time.Duration {
	if r.keys.SkipAfter == 0 || r.period == 0 {
		return unknown
	}
	return from + time.Duration(r.keys.SkipAfter)*r.gap()
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
// slot. busy is the time since the worker was ready before, without its waits for replies. Waits for other servers are
// not part of its cycle: otherwise each rotation would stretch its period by the slots and deadlines of the others,
// without end.
func (r *rotation) measure(w *turnState, busy time.Duration) {
	if w.landedAt == unknown {
		return
	}
	push := w.landedAt - w.grantAt
	if w.measured == 0 {
		w.pushMin = push
	}
	w.pushMin = min(w.pushMin, push)
	w.measured = min(w.measured+1, r.keys.Profile)
	n := time.Duration(w.measured)
	w.cycle += (min(w.readyAt-w.grantAt, push+max(0, busy)) - w.cycle) / n
	w.push += (push - w.push) / n
	w.pull += (max(0, w.sentAt-w.landedAt) - w.pull) / n
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
// before the worker is expected to be ready, plus k push times at server k. Announcements reach all servers at about
// the same time, so their starts differ by just that, and servers exchange no message. Where the links are the limit,
// workers wait anyway, and the expected times are long past. Then the start is now, plus k push times for the first
// timetable, and later plus the time by which pushes are slowed down.
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
	first := r.period == 0
	r.slotCount = n
	period, offset := r.estimate()
	if period < time.Duration(n) { // no worker was measured, or everything took no time
		if r.period < time.Duration(n) {
			r.period, r.offset = 0, offset
			return
		}
		period = r.period // of workers that have left: without a period no turn could be missed
	}
	r.period, r.offset = period, offset
	r.redeal = false
	r.roundStart = r.now + r.pushSlowdown()
	if first { // before this, the rotations of all servers ran without offsets
		r.roundStart += r.offset
	}
	for i := range r.workers {
		w := &r.workers[i]
		if w.rank < 0 {
			continue
		}
		early := time.Duration(w.rank) * r.period / time.Duration(n)
		switch {
		case w.ready:
			r.roundStart = max(r.roundStart, w.readyAt+r.offset-early)
		case w.landedAt != unknown && w.measured > 0:
			r.roundStart = max(r.roundStart, w.grantAt+w.cycle+r.offset-early)
		}
	}
}

// estimate is the shortest period that the workers with a slot can keep, and the offset of this server's slots from
// those of server 0. The slowest worker decides, or the link where N pushes or pulls take longer.
func (r *rotation) estimate() (period, offset time.Duration) {
	cycle, push, pull := time.Duration(0), time.Duration(0), time.Duration(0)
	for i := range r.workers {
		if w := &r.workers[i]; w.rank >= 0 {
			cycle, push, pull = max(cycle, w.cycle), max(push, w.pushMin), max(pull, w.pull)
		}
	}
	offset = time.Duration(r.server) * push
	n := time.Duration(r.slotCount)
	return max(offset+cycle, n*push, n*pull), offset
}

// slotsOutdated says whether a new timetable would differ from the current one, or whether the current one does not
// keep the workers' pushes to different servers apart.
func (r *rotation) slotsOutdated() bool {
	period, offset := r.estimate()
	off := func(a, b, unit time.Duration) bool {
		return float64(max(a-b, b-a)) > r.keys.Delta*float64(unit)
	}
	return off(period, r.period, r.gap()) || off(offset, r.offset, offset) || off(r.pushSlowdown(), 0, offset)
}

// pushSlowdown is the largest difference between a worker's average and shortest push: at most the time for which the
// worker still pushes to the server before this one. It is 0 at server 0, which leaves it to the others to keep clear
// of it.
func (r *rotation) pushSlowdown() (most time.Duration) {
	if r.server == 0 {
		return 0
	}
	for i := range r.workers {
		if w := &r.workers[i]; w.rank >= 0 {
			most = max(most, w.push-w.pushMin)
		}
	}
	return most
}
