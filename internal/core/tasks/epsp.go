package tasks

import (
	"fmt"
	"math"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// Messages of epsp.
const (
	// I have computed my part of iteration Iter in Blocked, and am idle. I have Correct threads, with which I compute Loss samples a second.
	idle = firstKind + iota
	// Of my iteration Iter, Samples samples have not begun. I am projected to take Blocked for all of it, at a speed of Loss.
	// Samples 0: I give nothing. Part 1: this answers take.
	offer
	take   // give me Samples samples of your iteration Iter
	thread // one of my threads is yours
)

// epsp is a reconstruction of Falcon's EPSP (Zhou et al., ICDCS 2019). The ideas are the paper's [P]; formulas, numbers and
// messages are reconstructed [R]. A task is a step of samples. Tasks that have not begun move, others stay.
//
//	straggler projection   f = time so far + left / u, u: smoothed samples a second; a straggler: f > (1 + alpha) * median of all
//	elastic control        when an iteration starts: T = all samples / all speeds; a worker with batch / u > (1 + alpha) T gets
//	                       a thread of one on its host (threads.go); then such a worker keeps u T of its batch, and the workers with
//	                       room up to T get the rest
//	transfer               an idle worker (pioneer) j asks all, takes the offer with the largest f, and gets floor(q u_j / (u_j + u))
//	                       of the q samples that have not begun, the last ones
//
// The sync axis says whether it is enforced (bsp) or slack (ssp). Parts are added up before a scheme hears of the owner's
// push.
type epsp struct {
	lender
	batches  []int
	alpha    float64
	rate     float64         // weight of an iteration in the speed
	speeds   []float64       // per worker: samples a second; 0: unknown
	took     []time.Duration // per worker: of the last iteration that it told of
	finished []int64         // per worker: the iteration that it was idle in last; -1: none
	owed     []bool          // per worker: it is idle, and was offered nothing
	now      time.Duration
	started  time.Duration // of the iteration
	meter    meter
	threads  threads

	asked     []bool // per worker: its offer is missing
	best      proffer
	takesFrom int32 // the worker that was told take and has not answered; -1: none
}

// proffer is the best offer since the worker asked.
type proffer struct {
	from    int32
	iter    int64
	samples int64
	speed   float64
	finish  time.Duration
}

func newEPSP(s work.Spec, e Env) core.Work {
	n := len(e.Batches)
	p := &epsp{lender: newLender(s, e), batches: e.Batches, alpha: s.Alpha, rate: s.Rate, takesFrom: -1,
		speeds: make([]float64, n), took: make([]time.Duration, n), finished: slices.Repeat([]int64{-1}, n),
		owed: make([]bool, n), asked: make([]bool, n)}
	p.keeps = p.isFasterThere
	p.threads = newThreads(s, e)
	return p
}

func (p *epsp) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	p.now = ev.At
	if ev.Kind == core.Starting {
		p.started, p.takesFrom, p.best = ev.At, -1, proffer{}
		p.decay()
		clear(p.asked)
		p.useThreads() // and those that have come
		out = p.giveThread(out)
		ev.Task.Threads = p.useThreads()
		return p.starting(ev.Task, int32(p.batches[p.me]), p.loans(), out)
	}
	isOwn := p.isOwn(&ev.Task)
	switch {
	case ev.Kind == core.Stepped || ev.Kind == core.Computed:
		p.measure(&ev)
	case ev.Kind == core.Fixed && isOwn:
		p.took[p.me], p.finished[p.me] = ev.At-p.started, p.iter
		if p.speeds[p.me] == 0 && ev.At > p.started {
			p.speeds[p.me] = float64(ev.Samples) / (ev.At - p.started).Seconds()
		}
	}
	out = p.follow(ev, out)
	switch ev.Kind {
	case core.Stepped:
		if isOwn {
			return p.offerOwed(out)
		}
	case core.Computed:
		return p.ask(out)
	case core.Came:
		return p.heard(&ev.Msg, out)
	case core.Gone:
		return p.forget(ev.Task.Owner, out)
	}
	return out
}

// isFree says whether the worker has nothing to compute.
func (p *epsp) isFree() bool { return p.isFixed && !p.hasBorrowed() && !p.left && p.takesFrom < 0 }

// ask tells all that the worker is idle, if it is.
func (p *epsp) ask(out []core.Order) []core.Order {
	if !p.isFree() {
		return out
	}
	p.best = proffer{}
	for w := range p.batches {
		if p.asked[w] = int32(w) != p.me && !p.gone[w]; p.asked[w] {
			out = append(out, tell(int32(w), idle,
				wire.Header{Iter: p.iter, Loss: p.speedWithAll(), Blocked: int64(p.took[p.me]), Correct: int64(p.threads.held[p.me])}))
		}
	}
	return out
}

func (p *epsp) heard(m *wire.Header, out []core.Order) []core.Order {
	from := m.Worker
	if p.left {
		return out
	}
	switch m.Flags {
	case idle:
		p.speeds[from], p.took[from], p.finished[from] = m.Loss, time.Duration(m.Blocked), m.Iter
		p.threads.held[from] = int32(m.Correct)
		q := p.offered(m.Iter)
		p.owed[from] = q == 0
		return append(out, p.offerTo(from, q, 0))
	case offer:
		if m.Part > 0 && p.takesFrom == from {
			p.takesFrom = -1
			return p.ask(out)
		}
		p.asked[from] = false
		if o := (proffer{from, m.Iter, m.Samples, m.Loss, time.Duration(m.Blocked)}); o.samples > 0 && o.iter <= p.iter &&
			o.finish > p.best.finish {
			p.best = o
		}
		return p.decide(out)
	case take:
		if n := p.whole(min(m.Samples, int64(p.unbegun()))); m.Iter == p.iter && n > 0 && !p.gone[from] {
			return p.lend(from, n, out)
		}
		return append(out, p.offerTo(from, 0, 1))
	case give:
		p.takesFrom = -1
	case thread:
		p.threads.held[p.me]++
		return out
	case yours: // a chunk has come back
		return out
	}
	if p.isFixed {
		return p.recallAll(out)
	}
	return out
}

// offered is the number of samples for a worker that is idle in an iteration.
func (p *epsp) offered(iter int64) int64 {
	if iter < p.iter || p.left || p.unbegun() == 0 || !p.isStraggler() {
		return 0
	}
	return int64(p.unbegun())
}

func (p *epsp) offerTo(to int32, samples int64, part int32) core.Order {
	return tell(to, offer, wire.Header{Iter: p.iter, Part: part, Samples: samples, Loss: p.speed(), Blocked: int64(p.projected())})
}

// offerOwed makes offers to idle workers that were offered nothing, once it turns out that the worker is a straggler.
func (p *epsp) offerOwed(out []core.Order) []core.Order {
	for w := range p.owed {
		if !p.owed[w] || p.gone[w] {
			continue
		}
		if q := p.offered(p.finished[w]); q > 0 {
			p.owed[w] = false
			out = append(out, p.offerTo(int32(w), q, 0))
		}
	}
	return out
}

// decide takes from the best offer when all have answered.
func (p *epsp) decide(out []core.Order) []core.Order {
	if !p.isFree() || slices.Contains(p.asked, true) || p.best.samples == 0 {
		return out
	}
	o, u := p.best, p.speeds[p.me]
	p.best = proffer{}
	n := o.samples / 2
	if u > 0 && o.speed > 0 {
		n = int64(float64(o.samples) * u / (u + o.speed))
	}
	if n = max(int64(p.whole(n)), min(o.samples, int64(p.step))); u > 0 && o.speed > 0 && float64(n)/u >= float64(o.samples)/o.speed {
		return out // the owner is as fast
	}
	p.takesFrom = o.from
	return append(out, tell(o.from, take, wire.Header{Iter: o.iter, Samples: n}))
}

// whole is the number of samples in whole tasks, of n; all n if they are less than a task.
func (p *epsp) whole(n int64) int32 {
	if n > int64(p.step) {
		n -= n % int64(p.step)
	}
	return int32(n)
}

// forget no longer waits for a worker that has left or was lost.
func (p *epsp) forget(w int32, out []core.Order) []core.Order {
	p.asked[w], p.owed[w] = false, false
	if p.best.from == w {
		p.best = proffer{}
	}
	if p.takesFrom == w {
		p.takesFrom = -1
		return p.ask(out)
	}
	return p.decide(out)
}

// isFasterThere says whether a helper that has not begun a chunk is expected to finish it before its owner could. A helper that is late by
// some time is expected to be late by as much again.
func (p *epsp) isFasterThere(c *chunk) bool {
	there, here := p.speeds[c.helper], p.speeds[p.me]
	if there == 0 || here == 0 || p.gone[c.helper] || p.finished[c.helper] < p.iter-1 { // far behind, it may wait for this very push
		return false
	}
	wait := time.Duration(0)
	if p.finished[c.helper] < p.iter {
		wait = seconds(float64(p.batches[c.helper])/there) - (p.now - p.started)
		wait = max(wait, -wait)
	}
	n := float64(c.to - c.from)
	return wait+seconds(n/there) <= seconds(n/here)
}

// commonFinish is how long the iteration takes, in seconds, if each worker has the share of all samples that fits its speed.
func (p *epsp) commonFinish() (finish float64, known bool) {
	var samples, speed float64
	for w, b := range p.batches {
		if p.gone[w] {
			continue
		}
		if p.speeds[w] == 0 {
			return 0, false
		}
		samples, speed = samples+float64(b), speed+p.speeds[w]
	}
	return samples / speed, true
}

// loans is the elastic control of shares: what the worker gives to whom when its iteration starts.
func (p *epsp) loans() (loans []loan) {
	finish, known := p.commonFinish()
	if !known {
		return nil
	}
	excess := func(w int) float64 { return float64(p.batches[w]) - float64(p.speeds[w]*finish) }
	isLate := func(w int) bool {
		return float64(p.batches[w]) > float64((1+p.alpha)*float64(p.speeds[w]*finish))
	}
	if !isLate(int(p.me)) {
		return nil
	}
	var late float64
	for w := range p.batches {
		if !p.gone[w] && isLate(w) {
			late += excess(w)
		}
	}
	room := make([]float64, len(p.batches)) // that is this worker's to fill
	for w := range room {
		if !p.gone[w] {
			room[w] = max(0, -excess(w)) * excess(int(p.me)) / late
		}
	}
	return p.deal(room, excess(int(p.me)))
}

// deal gives away whole tasks, each to the worker with most room.
func (p *epsp) deal(room []float64, excess float64) (loans []loan) {
	left := min(int32(math.Floor(excess/float64(p.step)))*p.step, int32(p.batches[p.me])-2*p.step)
	got := make([]int32, len(room))
	for ; left >= p.step; left -= p.step {
		most := 0
		for w := range room {
			if room[w] > room[most] {
				most = w
			}
		}
		if room[most] < float64(p.step)/2 {
			break
		}
		got[most] += p.step
		room[most] -= float64(p.step)
	}
	for w, n := range got {
		if n > 0 {
			loans = append(loans, loan{int32(w), n})
		}
	}
	return loans
}

func seconds(s float64) time.Duration { return time.Duration(min(s, 1e9) * 1e9) }

// Memory is what the worker has measured of itself, samples and their seconds, and the speed of each worker in samples a second.
// All of it is for the threads that a worker begins with.
func (p *epsp) Memory() []float64 {
	t := &p.threads
	m := []float64{p.meter.sum, p.meter.seconds * float64(t.used) / float64(t.base)}
	for w, u := range p.speeds {
		m = append(m, u*float64(t.base)/float64(t.of(int32(w))))
	}
	return m
}

// Recall goes on with a memory.
func (p *epsp) Recall(m []float64) error {
	if len(m) != 2+len(p.speeds) {
		return fmt.Errorf("epsp has learned %d numbers, and must have %d: two of the worker, and one for each", len(m), 2+len(p.speeds))
	}
	for i, x := range m {
		if !(x >= 0 && x < 1e18) {
			return fmt.Errorf("number %d of what epsp has learned is %v, and must be at least 0 and below 1e18", i, x)
		}
	}
	p.meter.sum, p.meter.seconds = m[0], m[1]
	copy(p.speeds, m[2:])
	return nil
}
