package scheme_test

import (
	"cmp"
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// plainRotation is the second implementation of r2sp, for one shard of any server. It keeps no averages: it records
// every turn and computes from all of them when needed. It sorts all workers to find the one whose turn it is.
type plainRotation struct {
	keys    scheme.R2SPParams
	servers time.Duration
	workers []*plainWorker
	v       int64
	now     time.Duration

	turn    *plainWorker // the worker whose turn it is
	since   time.Duration
	granted bool
	round   int64
	begun   int64
	table   *plainTable
	changed bool
	epoch   int64
	alarm   time.Duration // of the pending alarm; 0: none
}

type plainWorker struct {
	id               int32
	clock, missed    int64
	iter, samples    int64
	left, out, ready bool
	parked           int64 // c of its delayed pull, -1: none
	readyAt, sentAt  time.Duration
	firstAt          map[int64]time.Duration // of its announcements, by iteration
	last             *plainTurn
	turns            []plainTurn // turns in which its push landed and after which it was ready again
}

type plainTurn struct {
	grant, landed    time.Duration // landed 0: not in its turn
	push, pull, took time.Duration // took: until ready again; both without what was queued
	busy             time.Duration // until ready, since it was ready before, without its wait for replies
	table            *plainTable   // the timetable when it was granted
	due              time.Duration
}

// plainTable is a timetable; period 0: no worker has a slot.
type plainTable struct {
	period, elsewhere, t0 time.Duration
	order                 []*plainWorker
	cycle                 map[*plainWorker]time.Duration
	late                  map[*plainWorker][]time.Duration // of every turn under it
}

func newPlainRotation(v schemetest.Variant, env scheme.Env) *plainRotation {
	p := &plainRotation{keys: *v.Params.(*scheme.R2SPParams), servers: time.Duration(env.Servers), v: env.Start, round: -1}
	for w := range env.Workers {
		me := &plainWorker{id: int32(w), parked: -1}
		if env.Clocks != nil {
			me.clock, me.left = max(0, env.Clocks[w]), env.Clocks[w] < 0
		}
		p.workers = append(p.workers, me)
	}
	if live := p.live(); len(live) > 0 {
		p.v = slices.MinFunc(live, func(a, b *plainWorker) int { return cmp.Compare(a.clock, b.clock) }).clock
	}
	p.choose()
	return p
}

func (p *plainRotation) live() []*plainWorker {
	return slices.DeleteFunc(slices.Clone(p.workers), func(w *plainWorker) bool { return w.left })
}

func (p *plainRotation) decide(ev scheme.Event) (out []scheme.Decision) {
	p.now = max(p.now, ev.At)
	w := p.workers[ev.Worker]
	switch ev.Kind {
	case scheme.Sent:
		w.sentAt = p.now
	case scheme.Alarm:
		if p.alarm > 0 && p.now >= p.alarm {
			p.alarm = 0
		}
		return p.act()
	case scheme.Ready:
		p.announced(w, ev.Iter, ev.Blocked, ev.Queued)
		return p.act()
	case scheme.Left:
		if !w.left {
			w.left, w.out, w.ready, w.parked, p.changed = true, false, false, -1, true
			if p.turn == w {
				p.turn, p.granted = nil, false
			}
			out = p.release()
		}
		return append(out, p.act()...)
	case scheme.Joined:
		if w.left {
			p.workers[w.id] = &plainWorker{id: w.id, clock: max(p.v, w.clock, ev.Iter), parked: -1, out: true} // a new one, without a slot
			p.release()
		}
		return p.act()
	case scheme.Pushed:
		return p.pushed(w, ev)
	case scheme.Wanted:
		if !w.left {
			w.parked = ev.Iter
			if p.keys.SkipAfter > 0 || ev.Iter-p.v <= 1 {
				return []scheme.Decision{p.answer(w)}
			}
		}
	}
	return nil
}

func (p *plainRotation) answer(w *plainWorker) scheme.Decision {
	c := max(w.parked, w.clock)
	w.parked = -1
	return scheme.Decision{Kind: scheme.Reply, Worker: w.id, Shard: schemetest.Shard, Iter: c, Src: scheme.SlotParams}
}

// release moves v and answers the pulls that this releases.
func (p *plainRotation) release() (out []scheme.Decision) {
	low, high := int64(math.MaxInt64), int64(0)
	for _, w := range p.workers {
		if high = max(high, w.clock); !w.left {
			low = min(low, w.clock)
		}
	}
	if len(p.live()) == 0 {
		low = high
	}
	p.v = max(p.v, low)
	for _, w := range p.workers {
		if w.parked >= 0 && w.parked-p.v <= 1 {
			out = append(out, p.answer(w))
		}
	}
	return out
}

func (p *plainRotation) pushed(w *plainWorker, ev scheme.Event) (out []scheme.Decision) {
	passed := ev.Iter - w.clock
	w.clock = ev.Iter + 1
	drop := []scheme.Decision{{Kind: scheme.Drop, Worker: w.id, Shard: ev.Shard, Iter: ev.Iter, Reason: scheme.Empty}}
	if ev.Samples > 0 {
		drop[0].Reason = scheme.Gone
	}
	if w.left {
		return drop
	}
	w.ready = false
	w.missed = max(0, w.missed-passed)
	if p.granted && p.turn == w {
		p.granted = false
		w.last.landed = p.now
	} else if w.out {
		w.missed = max(0, w.missed-1)
		p.enter(w)
	}
	if !p.granted {
		p.turn = nil
	}
	out = p.act()
	if ev.Samples == 0 {
		return append(append(out, drop...), p.release()...)
	}
	w.samples = ev.Samples
	sum := int64(0)
	for _, other := range p.live() {
		sum += cmp.Or(other.samples, ev.Samples)
	}
	return append(append(out, fold(ev, 0), commit(w.id, ev.Iter, float64(ev.Samples)/float64(sum), ev.Samples)), p.release()...)
}

func (p *plainRotation) announced(w *plainWorker, iter int64, blocked, queued time.Duration) {
	if w.left {
		return
	}
	before := w.firstAt[w.iter]
	w.ready, w.iter, w.readyAt = true, iter, p.now
	if _, again := w.firstAt[iter]; !again {
		w.firstAt = map[int64]time.Duration{iter: p.now}
	}
	if t := w.last; t != nil && t.landed > 0 {
		t.pull, t.busy, t.push, t.took = max(0, w.sentAt-t.landed), max(0, p.now-before-blocked),
			max(0, t.landed-t.grant-queued), max(0, p.now-t.grant-queued)
		w.turns = append(w.turns, *t)
		if t.due > 0 && t.table == p.table {
			p.table.late[w] = append(p.table.late[w], p.now-t.due)
			if p.drifts(w) {
				p.changed = true
			}
		}
	}
	if w.out {
		p.enter(w)
	}
}

// drifts says whether a worker's last turns were off by too much: the running average was, after each of them.
func (p *plainRotation) drifts(w *plainWorker) bool {
	mean, n := time.Duration(0), int64(0)
	for _, late := range p.table.late[w] {
		mean += time.Duration(float64(late-mean) * p.keys.Smoothing)
		if n++; math.Abs(float64(mean)) <= p.keys.Delta*float64(p.gap()) {
			n = 0
		}
	}
	return n >= p.keys.DeltaRounds
}

func (p *plainRotation) gap() time.Duration {
	return p.table.period / time.Duration(len(p.table.order))
}

func (p *plainRotation) enter(w *plainWorker) {
	w.out, p.changed = false, true
	if p.keys.SkipAfter > 0 && p.table != nil && p.table.period > 0 {
		w.missed += max(0, p.round-w.clock-w.missed)
	}
	if !p.granted {
		p.turn = nil
	}
}

func (p *plainRotation) choose() {
	in := slices.DeleteFunc(p.live(), func(w *plainWorker) bool { return w.out })
	slices.SortStableFunc(in, func(a, b *plainWorker) int { return cmp.Compare(a.clock+a.missed, b.clock+b.missed) })
	if p.turn, p.since = nil, p.now; len(in) == 0 {
		return
	}
	p.turn = in[0]
	if key := p.turn.clock + p.turn.missed; key > p.round {
		p.round = key
		p.begun++
		switch slotted := p.table != nil && p.table.period > 0; {
		case !slotted && p.begun > p.keys.Profile, slotted && (p.changed || p.stale()):
			p.deal()
		case slotted:
			p.table.t0 += p.table.period
		}
	}
}

// times are the measurements of the turns of some workers: the largest averages, and the largest of the shortest pushes.
func (p *plainRotation) times(of []*plainWorker) (cycle, pull, alone time.Duration) {
	for _, w := range of {
		var c, l, short time.Duration
		for k, t := range w.turns {
			if k == 0 || t.push < short {
				short = t.push
			}
			n := time.Duration(min(int64(k+1), p.keys.Profile))
			c, l = c+(min(t.took, t.busy+p.servers*t.push+t.pull)-c)/n, l+(t.pull-l)/n
		}
		cycle, pull, alone = max(cycle, c), max(pull, l), max(alone, short)
	}
	return cycle, pull, alone
}

func (p *plainRotation) stale() bool {
	cycle, pull, alone := p.times(p.table.order)
	n := time.Duration(len(p.table.order))
	return math.Abs(float64(max(cycle, n*alone, n*pull)-p.table.period)) > p.keys.Delta*float64(p.gap())
}

func (p *plainRotation) deal() {
	t := &plainTable{cycle: map[*plainWorker]time.Duration{}, late: map[*plainWorker][]time.Duration{}}
	t.order = slices.DeleteFunc(p.live(), func(w *plainWorker) bool { return w.out })
	n := time.Duration(len(t.order))
	cycle, pull, alone := p.times(t.order)
	t.elsewhere = (p.servers - 1) * alone
	last := time.Duration(0)
	if p.table != nil && p.table.period > 0 {
		last = p.table.period
	}
	p.table = t
	if t.period = max(cycle, n*alone, n*pull); t.period < n && last >= n {
		t.period = last
	} else if t.period < n {
		t.period = 0
		return
	}
	p.changed = false
	t.t0 = p.now
	for k, w := range t.order {
		t.cycle[w], _, _ = p.times([]*plainWorker{w})
		expected := time.Duration(math.MinInt64 / 2)
		if w.ready {
			expected = w.readyAt
		} else if w.last != nil && w.last.landed > 0 && len(w.turns) > 0 {
			expected = w.last.grant + t.cycle[w]
		}
		t.t0 = max(t.t0, expected-time.Duration(k)*t.period/n)
	}
}

// slot is when a worker may push in this round; ok is false if it has none.
func (p *plainRotation) slot(w *plainWorker) (at time.Duration, ok bool) {
	if p.table == nil || p.table.period == 0 {
		return 0, false
	}
	k := slices.Index(p.table.order, w)
	if k < 0 {
		return 0, false
	}
	return p.table.t0 + time.Duration(k)*p.table.period/time.Duration(len(p.table.order)), true
}

// act does everything that is due, and asks for an alarm for the next thing that will be.
func (p *plainRotation) act() (out []scheme.Decision) {
	for {
		if p.turn == nil {
			p.choose()
		}
		w := p.turn
		if w == nil {
			return out
		}
		about := scheme.Decision{Worker: w.id, Shard: schemetest.Shard, Iter: w.iter, Epoch: p.epoch}
		slot, _ := p.slot(w)
		from := max(p.since, slot)
		if p.granted {
			from = w.last.grant
		} else if w.ready && p.now >= slot {
			p.granted, w.ready = true, false
			w.last = &plainTurn{grant: p.now, table: p.table}
			if _, ok := p.slot(w); ok && p.table.cycle[w] > 0 {
				w.last.due = slot + p.table.cycle[w]
			}
			about.Kind = scheme.Grant
			out, from = append(out, about), p.now
		}
		wake := time.Duration(math.MaxInt64)
		if p.keys.SkipAfter > 0 && p.table != nil && p.table.period > 0 {
			wake = from + time.Duration(p.keys.SkipAfter)*p.gap() + p.table.elsewhere
		}
		if w.ready && !p.granted {
			wake = slot
		}
		if p.now < wake {
			if wake < math.MaxInt64 && (p.alarm == 0 || wake < p.alarm) {
				p.alarm = wake
				out = append(out, scheme.Decision{Kind: scheme.WakeAt, Worker: scheme.NoWorker, Shard: schemetest.Shard, At: wake})
			}
			return out
		}
		if p.granted {
			about.Kind = scheme.Revoke
			out = append(out, about)
			p.epoch++
		}
		w.missed++
		w.out, p.changed, p.granted, p.turn = true, true, false, nil
	}
}

// TestHindsightOfR2SP compares each setting with the plain one on random histories, decision by decision, with one
// server and with several.
func TestHindsightOfR2SP(t *testing.T) {
	e, _ := scheme.All.Lookup("r2sp")
	for _, v := range schemetest.Variants(e) {
		t.Run(v.String(), func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				env := schemetest.DrawEnv(rt)
				env.Servers = rapid.IntRange(1, 3).Draw(rt, "servers")
				s, p := v.New(env), newPlainRotation(v, env)
				d := schemetest.Driver{Env: env, Grants: true, See: func(ev scheme.Event, got []scheme.Decision) {
					if want := p.decide(ev); !slices.Equal(got, want) {
						rt.Fatalf("%v at %v: decided\n%v\nthe plain one\n%v; state: %v", ev, ev.At, got, want, s)
					}
				}}
				d.Run(rt, s)
			})
		})
	}
}
