package schemetest

import (
	"math"
	"slices"
	"time"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
)

// Shard is the shard number in every event of a Driver.
const Shard int32 = 5

type state uint8

const (
	computing state = iota // holds parameters, will push next
	announced              // has a push ready and waits for the grant (schemes that schedule a link)
	granted                // may push
	pushed                 // push has landed, will ask for parameters
	waiting                // asked, not answered
	gone                   // left, or never came
)

type worker struct {
	state            state
	clock            int64 // iterations that it has pushed or skipped, as the worker knows
	next             int64 // the iteration it computes
	seen             int64 // the version it was answered with
	isHalf           bool  // it has pushed its private part of the iteration that it computes
	leftWhilePushing bool  // it left while a push was in flight
	sentTold         bool  // the scheme was told that the reply has left the server
	subscribed       bool  // versions are published to it
	asked            bool  // whether it waits elsewhere, with the version askedOf; it has not said so, nor pushed since
	askedOf          int64
	elsewhere        bool  // it has said that it waits elsewhere, and not that it goes on
	copyClock        int64 // v of the last published version, or less
}

// Driver plays the workers of one shard against a scheme, in an order that rapid draws. Its workers follow the
// protocol: push, then ask, then wait. Their speeds are uneven, and one worker is a straggler.
type Driver struct {
	Env scheme.Env
	// Plain leaves out everything except pushing and pulling until the workers finish.
	Plain bool
	// Grants makes the workers announce each push and wait for the grant, and gives the scheme its alarms.
	Grants bool
	// Norms fills in the norms of a push; nil leaves them out.
	Norms func(ev *scheme.Event)
	// Subscribed workers ask for their first version only. They then start iteration c on a published version if its v
	// is at least c - Bound.
	Subscribed bool
	Bound      int64
	// Quit makes all workers leave at the end, wherever they are, as when a shard changes its scheme.
	Quit bool
	// See is told each event, with the decisions that answered it.
	See func(ev scheme.Event, decisions []scheme.Decision)

	t       *rapid.T
	scheme  scheme.Scheme
	workers []worker
	version int64 // commits, from Env.Start on
	at      time.Duration
	alarms  []time.Duration
	out     []scheme.Decision
}

// DrawEnv draws a run of 1 to 6 workers that starts from the beginning or from the clocks of an earlier run.
func DrawEnv(t *rapid.T) scheme.Env {
	env := scheme.Env{
		Workers: rapid.SampledFrom([]int{2, 3, 4, 6, 1}).Draw(t, "workers"), Shards: []int32{Shard}, Servers: 3,
		Seed: rapid.Uint64().Draw(t, "seed"), Rule: rapid.IntRange(0, 2).Draw(t, "rule"), Server: rapid.IntRange(0, 2).Draw(t, "server"),
	}
	if rapid.IntRange(0, 3).Draw(t, "resumes") == 3 {
		env.Clocks = rapid.SliceOfN(rapid.Int64Range(-1, 4), env.Workers, env.Workers).Draw(t, "clocks")
		for _, c := range env.Clocks {
			if c >= 0 && (env.Start == 0 || c < env.Start) {
				env.Start = c
			}
		}
	}
	return env
}

// DrawNorms draws the norms of pushes for a variant that needs norms; it returns nil for others.
func (v Variant) DrawNorms(t *rapid.T) func(*scheme.Event) {
	if !v.Entry.WantsNorms(v.Params) {
		return nil
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	few := rapid.SampledFrom([]float32{0, 0.25, 0.5, 1, 1, 2, 3, 1e-30, 1e30, inf, nan})
	return func(ev *scheme.Event) {
		ev.NormInf, ev.Norm2, ev.NormW = few.Draw(t, "inf"), few.Draw(t, "norm2"), few.Draw(t, "normW")
	}
}

// Run plays up to 250 drawn actions, then lets every worker reach the same last iteration and leave. It fails if the
// workers stall.
func (d *Driver) Run(t *rapid.T, s scheme.Scheme) {
	d.t, d.scheme = t, s
	d.workers = make([]worker, d.Env.Workers)
	d.version = d.Env.Start
	for w := range d.workers {
		d.workers[w].state = pushed
		if d.Env.Clocks == nil {
			continue
		}
		d.workers[w].clock = max(0, d.Env.Clocks[w])
		if d.Env.Clocks[w] < 0 {
			d.workers[w].state = gone
		}
	}
	straggler := rapid.IntRange(0, d.Env.Workers-1).Draw(t, "straggler")
	slowness := rapid.IntRange(1, 4).Draw(t, "slowness")
	turns := 0
	for range rapid.SampledFrom([]int{10, 60, 250}).Draw(t, "actions") {
		w := rapid.IntRange(0, d.Env.Workers-1).Draw(t, "worker")
		if w == straggler {
			if turns++; turns%slowness != 0 {
				continue
			}
		}
		d.act(w)
	}
	if d.Quit {
		for w := range d.workers {
			d.send(w, scheme.Left, 0)
		}
		return
	}
	d.finish()
}

// act makes one worker do something; a waiting worker mostly waits.
func (d *Driver) act(w int) {
	d.fireAlarms()
	me := &d.workers[w]
	odd := 0
	if !d.Plain {
		odd = rapid.IntRange(0, 24).Draw(d.t, "odd")
	}
	switch {
	case me.state == gone && odd >= 22 && me.leftWhilePushing:
		d.push(w)
		me.isHalf, me.leftWhilePushing = false, false
	case me.state == gone && odd >= 20:
		me.clock += int64(max(0, rapid.IntRange(-3, 2).Draw(d.t, "came further elsewhere")))
		d.send(w, scheme.Joined, me.clock)
		me.state, me.isHalf, me.leftWhilePushing = pushed, false, false
	case me.state == gone && odd == 19:
		d.send(w, scheme.Left, 0) // told twice
	case me.state == gone:
	case odd == 24:
		d.send(w, scheme.Left, 0)
		me.state, me.leftWhilePushing, me.subscribed = gone, me.state == granted || me.state == computing && !d.Grants, false
	case me.elsewhere && rapid.Bool().Draw(d.t, "waits on elsewhere"):
	case me.asked && me.state == computing && rapid.Bool().Draw(d.t, "waits elsewhere"):
		me.asked, me.elsewhere = false, true
		d.send(w, scheme.WaitsElsewhere, me.next)
	case odd == 23 && me.state == computing:
		me.next += int64(rapid.IntRange(1, 3).Draw(d.t, "passed over")) // another shard has sent it ahead
		me.isHalf = false
	case odd == 21 && d.Grants:
		d.at += time.Duration(rapid.IntRange(1, 40).Draw(d.t, "stands still")) * time.Millisecond
	case odd == 22:
		d.send(w, []scheme.EventKind{scheme.Offered, scheme.Sent}[w%2], me.clock)
	default:
		d.step(w)
	}
}

// step makes a worker take its next step of the protocol, and says whether there was one.
func (d *Driver) step(w int) bool {
	me := &d.workers[w]
	switch {
	case me.elsewhere:
		me.elsewhere = false
		d.send(w, scheme.WaitedElsewhere, me.next)
		return true
	case me.state == computing && d.Grants:
		if !me.sentTold && !d.Plain && rapid.IntRange(0, 4).Draw(d.t, "told in time") == 0 {
			me.sentTold = true // Sent comes so late that it does not matter
		}
		if !me.sentTold {
			me.sentTold = true
			d.send(w, scheme.Sent, me.next)
		}
		me.state = announced
		d.send(w, scheme.Ready, me.next)
		return true
	case me.state == computing || me.state == granted:
		if d.push(w); !me.isHalf {
			me.next++
			me.state = pushed
		}
		return true
	case me.state == pushed:
		me.state = waiting
		if me.subscribed {
			d.startOnCopy(w)
			return true
		}
		d.send(w, scheme.Wanted, me.clock)
		return true
	}
	return false
}

// push pushes what a worker computes: an iteration, or its private part and then the rest.
func (d *Driver) push(w int) {
	me := &d.workers[w]
	me.isHalf = d.parts() > 1 && !me.isHalf
	me.asked = false
	d.send(w, scheme.Pushed, me.next)
	if me.clock = me.next; !me.isHalf {
		me.clock++
	}
}

// parts is the number of pushes of a worker in an iteration.
func (d *Driver) parts() int32 {
	if d.Env.Code != nil && d.Env.Code.Private() {
		return 2
	}
	return 1
}

// startOnCopy lets a subscribed worker continue if its last version is new enough.
func (d *Driver) startOnCopy(w int) {
	if me := &d.workers[w]; me.copyClock >= me.clock-d.Bound {
		me.state, me.next = computing, me.clock
	}
}

// finish runs every worker to the same iteration, at which it leaves. It fails if the workers stall.
func (d *Driver) finish() {
	last := int64(0)
	for _, me := range d.workers {
		last = max(last, me.clock, me.next)
	}
	last += 3
	for {
		d.fireAlarms()
		moved, all := false, true
		for w := range d.workers {
			me := &d.workers[w]
			if me.state == gone {
				continue
			}
			all = false
			if me.clock >= last {
				d.send(w, scheme.Left, 0)
				me.state = gone
				moved = true
			} else if d.step(w) {
				moved = true
			}
		}
		if all {
			return
		}
		if !moved && len(d.alarms) > 0 {
			d.at = max(d.at, slices.Min(d.alarms))
			continue
		}
		if !moved {
			d.t.Fatalf("stall: every worker in the run waits for a reply; state: %v", d.scheme)
		}
	}
}

func (d *Driver) send(w int, kind scheme.EventKind, iter int64) {
	d.at += time.Millisecond
	ev := scheme.Event{Kind: kind, Worker: int32(w), Owner: int32(w), Shard: Shard, Iter: iter, At: d.at}
	if kind == scheme.Pushed || kind == scheme.Offered {
		if ev.Parts = d.parts(); ev.Parts > 1 && !d.workers[w].isHalf {
			ev.Part = 1
		}
		ev.Seen = d.workers[w].seen
		ev.Samples = 32
		if !d.Plain {
			ev.Samples = int64(rapid.IntRange(0, 5).Draw(d.t, "samples"))
		}
		if d.Norms != nil && kind == scheme.Pushed {
			d.Norms(&ev)
		}
	}
	if kind == scheme.WaitsElsewhere {
		ev.Seen = d.workers[w].askedOf
	}
	if kind == scheme.Ready && !d.Plain {
		ev.Blocked = time.Duration(rapid.IntRange(0, 20).Draw(d.t, "blocked")) * time.Millisecond
		ev.Queued = time.Duration(rapid.IntRange(0, 10).Draw(d.t, "queued")) * time.Millisecond
	}
	if kind == scheme.Left {
		d.workers[w].asked, d.workers[w].elsewhere = false, false
	}
	d.tell(ev)
}

// fireAlarms gives the scheme the alarms that are due, in the order of their times.
func (d *Driver) fireAlarms() {
	for len(d.alarms) > 0 {
		first := slices.Min(d.alarms)
		if first > d.at {
			return
		}
		d.alarms = slices.DeleteFunc(d.alarms, func(at time.Duration) bool { return at == first })
		d.tell(scheme.Event{Kind: scheme.Alarm, Shard: Shard, At: d.at})
	}
}

// tell gives the scheme an event, and gives its decisions to the workers.
func (d *Driver) tell(ev scheme.Event) {
	d.out = d.scheme.Step(ev, d.out[:0])
	for _, dec := range d.out {
		if dec.Kind == scheme.Commit {
			d.version++
		}
		if dec.Kind == scheme.WakeAt {
			d.alarms = append(d.alarms, dec.At)
		}
		if dec.Worker < 0 || int(dec.Worker) >= len(d.workers) {
			continue
		}
		switch you := &d.workers[dec.Worker]; {
		case dec.Kind == scheme.Reply && you.state == waiting:
			you.state, you.next, you.seen, you.sentTold = computing, dec.Iter, d.version, false
			you.subscribed, you.copyClock = d.Subscribed, dec.Iter-d.Bound
		case dec.Kind == scheme.Publish && d.Subscribed:
			if you.copyClock, you.seen = dec.Iter, d.version; you.state == waiting && you.subscribed {
				d.startOnCopy(int(dec.Worker))
			}
		case dec.Kind == scheme.AskElsewhere && you.state != gone:
			you.asked, you.askedOf = true, dec.Iter
		case dec.Kind == scheme.Grant && you.state == announced && dec.Iter == you.next:
			you.state = granted
		case dec.Kind == scheme.Revoke && you.state == granted && dec.Iter == you.next:
			if d.Plain || rapid.Bool().Draw(d.t, "the grant is taken back before the push leaves") {
				you.state = computing // it will announce the push again
			}
		}
	}
	d.See(ev, slices.Clone(d.out))
}
