package train

import (
	"runtime"
	"sync/atomic"
	"time"

	"fluentps/internal/core"
)

// site is where a worker computes, as the driver of its node sees it. The holder of the rank's lock may step nodes and use
// the transport. The goroutine that drives holds the lock while it drives, and gives it to a timer while it computes.
type site interface {
	start(t core.Task) // starts a task; called by the driver
	stepped()          // the node was stepped; called by the driver
	ready() bool       // the driving goroutine must call run
	run()
	// The goroutine that computes calls the methods below. onDriver has the driver run f; with tick it also lets messages
	// move. await waits on the driver until a condition holds or the run has failed, and then runs f; counts says that this
	// is a wait for replies. await returns the duration of the wait, 0 if the condition held. pause computes nothing for a
	// time.
	onDriver(f func(), tick bool)
	await(counts bool, until func() bool, f func()) time.Duration
	pause(time.Duration)
	poll() // receives messages that have arrived
}

// newSite returns a background site if the rank has a server, which must answer while the worker computes; else a
// foreground site.
func newSite(w *Side) site {
	if w.o.Background {
		return &background{w: w}
	}
	return newForeground(w)
}

// tickEvery is how often a rank that computes lets its messages move. Over TCP they move only then.
const tickEvery = 500 * time.Microsecond

// tickComputeMin is the shortest computing time with ticks: below it a wake-up costs more than it brings.
const tickComputeMin = 200 * time.Microsecond

// foreground computes on the goroutine that drives. Meanwhile a timer ticks in its place.
type foreground struct {
	w         *Side
	task      core.Task // the task to compute
	pending   bool      // task waits to be computed
	timer     *time.Timer
	computing atomic.Bool // the goroutine computes, and the timer runs
	rester    rester
}

// rester lets Go reschedule a goroutine that computes. If it is not rescheduled for 10 ms, Go's watcher thread (sysmon) takes the processor
// from it in each kernel that it sees, and looks again every 20 us all the time. On a host whose ranks have no core to spare, that made
// ResNet-20 a sixth slower.
type rester struct {
	last time.Duration // when it last did
}

const restEvery = 5 * time.Millisecond

// rest is called between layers, without the lock of the rank.
func (r *rester) rest(now time.Duration) {
	if now-r.last >= restEvery {
		r.last = now
		runtime.Gosched()
	}
}

func newForeground(w *Side) *foreground {
	h := &foreground{w: w}
	h.timer = time.AfterFunc(time.Hour, h.tick)
	h.timer.Stop()
	return h
}

func (h *foreground) start(t core.Task) { h.task, h.pending = t, true }

func (h *foreground) ready() bool { return h.pending }

func (h *foreground) stepped() {}

// run leaves the lock to the timer while it computes.
func (h *foreground) run() {
	h.pending = false
	r := h.w.station
	h.startTicks()
	r.Mu.Unlock()
	defer func() {
		h.stopTicks()
		r.Mu.Lock()
	}()
	h.w.compute(h.task)
}

// worthTicking says whether an iteration takes long enough for ticks.
func (h *foreground) worthTicking() bool {
	return h.w.counters.computeUsual == 0 || h.w.counters.computeUsual >= tickComputeMin
}

func (h *foreground) startTicks() {
	if h.worthTicking() {
		h.computing.Store(true)
		h.timer.Reset(tickEvery)
	}
}

func (h *foreground) stopTicks() {
	if h.computing.Swap(false) {
		h.timer.Stop()
	}
}

// tick is called by the timer. If the lock is taken, messages move anyway.
func (h *foreground) tick() {
	r := h.w.station
	if r.Mu.TryLock() {
		defer r.Mu.Unlock()
		defer r.Guard()
		if h.computing.Load() { // else the timer fired just after the computing ended
			h.w.arenas.direct.tick(r.Transport)
		}
	}
	if h.computing.Load() {
		h.timer.Reset(tickEvery)
	}
}

func (h *foreground) onDriver(f func(), tick bool) {
	r := h.w.station
	h.rester.rest(r.Transport.Now())
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.Net.Err() == nil {
		f()
		if tick && h.worthTicking() {
			r.Transport.Tick()
		}
	}
}

func (h *foreground) await(counts bool, until func() bool, f func()) (took time.Duration) {
	w, r := h.w, h.w.station
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if !until() {
		h.stopTicks()
		from := r.Transport.Now()
		if counts {
			w.beginWait(from)
		}
		r.Net.Fail(r.Net.Drive(until))
		to := r.Transport.Now()
		if counts {
			w.endWait(to)
		}
		took = to - from
		h.startTicks()
	}
	f()
	return took
}

// pause drives the transport until the time is over: a slow worker computes slowly, but its messages move.
func (h *foreground) pause(d time.Duration) {
	r := h.w.station
	h.stopTicks()
	r.Mu.Lock()
	defer r.Mu.Unlock()
	end := r.Transport.Now() + d
	woken := end - pauseSpin
	t := time.AfterFunc(max(0, d-pauseSpin-napMax), func() {
		sleepUntil(r.Transport.Now, woken)
		r.Transport.Post(func() {})
	})
	defer t.Stop()
	r.Net.Fail(r.Net.Drive(func() bool { return r.Transport.Now() >= woken }))
	for r.Net.Err() == nil && r.Transport.Now() < end {
		r.Transport.Tick()
	}
	h.startTicks()
}

func (h *foreground) poll() {
	r := h.w.station
	r.Mu.Lock()
	defer r.Mu.Unlock()
	if r.Net.Err() == nil {
		r.Transport.Tick()
	}
}

// background computes on a separate goroutine, while another one drives.
type background struct {
	w     *Side
	until func() bool // the condition that the computing goroutine waits for; nil: none
	then  func()

	rester rester // of the goroutine that computes
}

func (a *background) start(t core.Task) { go a.w.compute(t) }

func (a *background) ready() bool { return false }

func (a *background) run() {}

func (a *background) poll() {}

func (a *background) stepped() {
	if a.until != nil && a.until() {
		a.until = nil
		a.then()
	}
}

func (a *background) onDriver(f func(), _ bool) {
	a.rester.rest(a.w.station.Transport.Now())
	a.w.station.Transport.Post(f)
}

// pause leaves the transport to the goroutine that drives it, even while pause spins on the clock.
func (a *background) pause(d time.Duration) {
	now := a.w.station.Transport.Now
	end := now() + d
	sleepUntil(now, end-pauseSpin)
	for now() < end {
	}
}

func (a *background) await(counts bool, until func() bool, f func()) time.Duration {
	w := a.w
	from := w.station.Transport.Now()
	met := make(chan struct{})
	w.station.Transport.Post(func() {
		if !until() {
			if counts {
				w.beginWait(w.station.Transport.Now())
			}
			a.until, a.then = until, func() {
				if counts {
					w.endWait(w.station.Transport.Now())
				}
				f()
				close(met)
			}
			return
		}
		f()
		close(met)
	})
	select {
	case <-met:
	case <-w.station.Ended:
	}
	return w.station.Transport.Now() - from
}
