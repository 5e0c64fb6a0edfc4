package train

import (
	"sync/atomic"
	"time"

	"fluentps/ps/core"
)

// site is where a worker computes, as the driver of its node sees it. Whoever holds the rank's lock may step nodes and
// use the transport: the goroutine that drives holds it as long as it does, and nobody needs it else while that computes.
type site interface {
	start(t core.Task) // it can be computed; called by the driver
	stepped()          // the node was stepped; called by the driver
	ready() bool       // it is the goroutine that drives which must run what was started
	run()
	// The others are called by who computes. report has f run by the driver, with tick that lets messages move too; await waits there until a condition holds or
	// the run has failed, and then runs f; counts says that this is a wait for replies. It returns how long that took, 0 if
	// the condition held. pause computes nothing for a time.
	report(f func(), tick bool)
	await(counts bool, until func() bool, f func()) time.Duration
	pause(time.Duration)
	poll() // lets messages come in that are there
}

// newSite is another goroutine where the rank has a server, which must answer meanwhile; else the one that drives.
func newSite(w *Side) site {
	if w.o.Aside {
		return &aside{w: w}
	}
	return newHere(w)
}

// tickEvery is how often a rank that computes lets its messages move. Over TCP they move only then.
const tickEvery = 500 * time.Microsecond

// tickFrom is the computing below which nobody ticks meanwhile: to be woken costs more than it brings.
const tickFrom = 200 * time.Microsecond

// here computes on the goroutine that drives. While it does, a timer ticks in its place.
type here struct {
	w         *Side
	todo      core.Task // what waits to be computed
	waits     bool      // something does
	timer     *time.Timer
	computing atomic.Bool // and for so long that the timer runs
}

func newHere(w *Side) *here {
	h := &here{w: w}
	h.timer = time.AfterFunc(time.Hour, h.tick)
	h.timer.Stop()
	return h
}

func (h *here) start(t core.Task) { h.todo, h.waits = t, true }

func (h *here) ready() bool { return h.waits }

func (h *here) stepped() {}

// run leaves the lock to the timer while it computes.
func (h *here) run() {
	h.waits = false
	r := h.w.station
	h.letTick()
	r.Mu.Unlock()
	defer func() {
		h.endTicks()
		r.Mu.Lock()
	}()
	h.w.compute(h.todo)
}

// ticks says whether an iteration takes long enough.
func (h *here) ticks() bool { return h.w.books.usual == 0 || h.w.books.usual >= tickFrom }

func (h *here) letTick() {
	if h.ticks() {
		h.computing.Store(true)
		h.timer.Reset(tickEvery)
	}
}

func (h *here) endTicks() {
	if h.computing.Swap(false) {
		h.timer.Stop()
	}
}

// tick is called by the timer. When the lock is taken, messages move anyway.
func (h *here) tick() {
	r := h.w.station
	if r.Mu.TryLock() {
		defer r.Mu.Unlock()
		defer r.Guard()
		if h.computing.Load() { // else the timer went off just when it was over
			h.w.arenas.direct.tick(r.Transport)
		}
	}
	if h.computing.Load() {
		h.timer.Reset(tickEvery)
	}
}

func (h *here) report(f func(), tick bool) {
	r := h.w.station
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.Net.Err() == nil {
		f()
		if tick && h.ticks() {
			r.Transport.Tick()
		}
	}
}

func (h *here) await(counts bool, until func() bool, f func()) (took time.Duration) {
	w, r := h.w, h.w.station
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if !until() {
		h.endTicks()
		from := r.Transport.Now()
		if counts {
			w.wait(from)
		}
		r.Net.Fail(r.Net.Drive(until))
		to := r.Transport.Now()
		if counts {
			w.waited(to)
		}
		took = to - from
		h.letTick()
	}
	f()
	return took
}

// pause drives the transport until the time is over: a slow worker computes slowly, but its messages move.
func (h *here) pause(d time.Duration) {
	r := h.w.station
	h.endTicks()
	r.Mu.Lock()
	defer r.Mu.Unlock()
	end := r.Transport.Now() + d
	woken := end - pauseEnd
	t := time.AfterFunc(max(0, d-pauseEnd-napFrom), func() {
		sleepUntil(r.Transport.Now, woken)
		r.Transport.Post(func() {})
	})
	defer t.Stop()
	r.Net.Fail(r.Net.Drive(func() bool { return r.Transport.Now() >= woken }))
	for r.Net.Err() == nil && r.Transport.Now() < end {
		r.Transport.Tick()
	}
	h.letTick()
}

func (h *here) poll() {
	r := h.w.station
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.Net.Err() == nil {
		r.Transport.Tick()
	}
}

// aside computes on a goroutine of its own, while another drives.
type aside struct {
	w     *Side
	until func() bool // what the one that computes waits for, nil: it does not
	then  func()
}

func (a *aside) start(t core.Task) { go a.w.compute(t) }

func (a *aside) ready() bool { return false }

func (a *aside) run() {}

func (a *aside) poll() {}

func (a *aside) stepped() {
	if a.until != nil && a.until() {
		a.until = nil
		a.then()
	}
}

func (a *aside) report(f func(), _ bool) { a.w.station.Transport.Post(f) }

// pause leaves the transport to the goroutine that drives it, also while it looks at the clock.
func (a *aside) pause(d time.Duration) {
	now := a.w.station.Transport.Now
	end := now() + d
	sleepUntil(now, end-pauseEnd)
	for now() < end {
	}
}

func (a *aside) await(counts bool, until func() bool, f func()) time.Duration {
	w := a.w
	from := w.station.Transport.Now()
	there := make(chan struct{})
	w.station.Transport.Post(func() {
		if !until() {
			if counts {
				w.wait(w.station.Transport.Now())
			}
			a.until, a.then = until, func() {
				if counts {
					w.waited(w.station.Transport.Now())
				}
				f()
				close(there)
			}
			return
		}
		f()
		close(there)
	})
	select {
	case <-there:
	case <-w.station.Ended:
	}
	return w.station.Transport.Now() - from
}
