// Package liveness is the failure detector: it finds ranks that do not run, or cannot be reached.
//
// MPI does not report that a process was stopped or is cut off: a rank that waits for it waits for ever. So every rank
// sends heartbeats to rank 0, and rank 0 to all: 2(N-1) messages of a byte every few seconds, from a goroutine of their
// own. A rank that reads data, writes a file or waits for a long kernel sends heartbeats like any other. Silence means
// that a process does not run or cannot be reached. Whether a running process makes progress is checked by stall.abort.
package liveness

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"fluentps/internal/comm"
)

// The words of heartbeats.
const (
	alive  byte = iota
	ending      // the sender ends the run with Options.Code; the receiver prints its state
	stated      // like ending, and the sender has printed its state
)

// Limits on the end of a run by a stall: stateMax for all ranks to print their states, leaveMax for a rank that was
// notified to leave by itself.
const (
	stateMax = 5 * time.Second
	leaveMax = 2 * stateMax
	// noticeMax is the wait of a rank that has lost rank 0: the others lose it, too, but not at the same moment.
	noticeMax = 2 * time.Second
)

// Options configure the failure detector of a rank.
type Options struct {
	Limit    time.Duration // silence that ends the run, stall.peer; 0: silence never does
	Code     int           // exit code of a run that silence ends
	Separate bool          // this rank is a process of its own, or reports for one: it warns after a time in which that did not run
	Log      *slog.Logger
	// State is called on the goroutine that drives, and prints the state of this rank.
	State func()
	// Guard is deferred on goroutines: a panic ends all ranks.
	Guard func()
	Mute  bool // for tests: this rank sends one heartbeat and no more
}

// Liveness is the failure detector of one rank. Its methods other than GiveUp do nothing on nil.
type Liveness struct {
	o      Options
	t      comm.Transport
	me     int
	beats  comm.Heartbeats
	peers  []int // the ranks that this rank sends heartbeats to and expects them from
	v      *detector
	start  time.Time
	stop   chan struct{}
	done   chan struct{}
	gaveUp chan struct{} // signalled by GiveUp

	attach    chan Attacher
	hear      func(from comm.Peer, word byte)
	hasBeaten bool         // this rank has sent a heartbeat
	notified  bool         // another rank ends the run
	printedBy map[int]bool // peers that have printed their states

	mu          sync.Mutex
	log         *slog.Logger
	names       []string      // of every rank; nil: not known yet
	concluded   bool          // all ranks know how the run ends: silence no longer counts
	code        int           // exit code of the concluded run
	concludedAt time.Duration // time of Conclude
}

// Open starts the failure detector. It returns nil if the transport has no heartbeats or only one rank.
func Open(t comm.Transport, o Options) *Liveness {
	beats, ok := t.(comm.Heartbeats)
	if !ok || t.Size() == 1 {
		return nil
	}
	l := &Liveness{o: o, t: t, me: t.Rank(), beats: beats, start: time.Now(),
		attach: make(chan Attacher), stop: make(chan struct{}), done: make(chan struct{}), gaveUp: make(chan struct{}, 1),
		printedBy: map[int]bool{}, log: o.Log}
	l.peers = []int{0}
	if l.me == 0 {
		l.peers = l.peers[:0]
		for rank := 1; rank < t.Size(); rank++ {
			l.peers = append(l.peers, rank)
		}
	}
	l.v = newDetector(o.Limit, len(l.peers), 0)
	l.hear = l.heard
	go l.watch()
	return l
}

// Close stops the failure detector. After that the transport may be closed.
func (l *Liveness) Close() {
	if l != nil {
		close(l.stop)
		<-l.done
	}
}

// Attacher is a device of which MPI reads and writes the memory: kernels.Placer.
type Attacher interface {
	Attach() error
	Detach()
}

// Attach attaches a device to the goroutine that sends heartbeats, until Close. Whatever MPI call that goroutine makes may move
// messages of the device's memory, and MPI looks for the device on the thread of the call.
func (l *Liveness) Attach(d Attacher) {
	if l == nil {
		return
	}
	select {
	case l.attach <- d: // the goroutine attaches it before it calls MPI again
	case <-l.done:
	}
}

// Know sets the names of all ranks, by rank, and the log to write to from now on.
func (l *Liveness) Know(names []string, log *slog.Logger) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log, l.names = log, names
}

// Conclude tells the failure detector that all ranks know the code of the run and only have to leave.
func (l *Liveness) Conclude(code int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.concluded, l.code, l.concludedAt = true, code, l.now()
}

// GiveUp ends the run with the states of all nodes, after the driver has logged the reason. It is called at most once.
func (l *Liveness) GiveUp() { l.gaveUp <- struct{}{} }

func (l *Liveness) now() time.Duration { return time.Since(l.start) }

func (l *Liveness) logger() *slog.Logger {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log
}

func (l *Liveness) name(rank int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		return fmt.Sprintf("rank %d", rank)
	}
	return l.names[rank]
}

func (l *Liveness) heard(from comm.Peer, word byte) {
	i := int(from)
	if l.me == 0 {
		i--
	}
	if i < 0 || i >= len(l.peers) { // heartbeats go only to and from rank 0
		return
	}
	l.v.heard(i)
	switch word {
	case ending:
		l.notified = true
	case stated:
		l.notified, l.printedBy[int(from)] = true, true
	}
}

func (l *Liveness) watch() {
	defer close(l.done)
	defer l.o.Guard()
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case d := <-l.attach:
			if d.Attach() == nil { // the goroutine that computes reports a failed device
				defer d.Detach()
			}
		case <-l.gaveUp:
			l.end(l.stateWait())
			return
		case <-tick.C:
			if wait, end := l.poll(); end {
				l.end(wait)
				return
			}
		}
	}
}

// stateWait returns how long this rank waits for the states of others before it aborts: the other ranks give rank 0,
// which coordinates the end, more time.
func (l *Liveness) stateWait() time.Duration {
	if l.me == 0 {
		return stateMax
	}
	return leaveMax
}

// poll sends and receives heartbeats once. With end the run must end, after at most wait.
func (l *Liveness) poll() (wait time.Duration, end bool) {
	listened := l.beats.Heard(l.hear)
	if paused := l.v.poll(l.now(), listened); paused > 0 && (l.me == 0 || l.o.Separate) {
		l.logger().Warn("this rank did not run for " + paused.Round(time.Second).String() +
			": it was stopped, or its host was too busy; other ranks may have waited for it meanwhile")
	}
	if l.v.due() && listened {
		l.beat(alive)
	}
	if l.notified {
		return l.stateWait(), true
	}
	l.mu.Lock()
	concluded, code, concludedAt := l.concluded, l.code, l.concludedAt
	l.mu.Unlock()
	if concluded {
		if limit := l.v.limit; limit > 0 && l.v.at-concludedAt >= limit {
			l.logger().Error("the run is over, but the ranks have not left within stall.peer "+limit.String()+
				"; leaving with its exit code", "code", code)
			l.t.Abort(code)
		}
		return 0, false
	}
	if l.v.stuck() {
		l.logger().Error(fmt.Sprintf("stall: MPI has been busy here with one call for %s, the limit of stall.peer: "+
			"another rank of this host may be stopped; ending the run with exit code %d", l.v.limit, l.o.Code))
		return noticeMax, true
	}
	lost := l.v.lost()
	if len(lost) == 0 {
		return 0, false
	}
	l.logLost(lost)
	if l.me == 0 {
		return stateMax, true
	}
	return noticeMax, true
}

// beat sends a word to all peers that have heard the one before.
func (l *Liveness) beat(word byte) {
	if l.o.Mute && l.hasBeaten {
		return
	}
	l.hasBeaten = true
	for _, to := range l.peers {
		l.beats.Beat(comm.Peer(to), word)
	}
}

// logLost logs which ranks are silent.
func (l *Liveness) logLost(lost []int) {
	const most = 8
	var names []string
	for _, i := range lost[:min(most, len(lost))] {
		names = append(names, l.name(l.peers[i]))
	}
	ranks := strings.Join(names, "; ")
	if n := len(lost) - most; n > 0 {
		ranks += fmt.Sprintf("; and %d more", n)
	}
	l.logger().Error(fmt.Sprintf("stall: no sign of life for %s, the limit of stall.peer, of %s: killed, stopped or "+
		"cut off by its host or network; ending the run with exit code %d",
		l.v.limit, ranks, l.o.Code))
}

// end has all reachable ranks print their states, waits for that for at most wait, and aborts the world.
func (l *Liveness) end(wait time.Duration) {
	until := l.now() + wait
	printed := make(chan struct{})
	l.t.Post(func() { l.o.State(); close(printed) })
	unsent := map[int]byte{} // words not sent yet, by rank
	for _, p := range l.peers {
		if !l.notified || l.me == 0 {
			unsent[p] = ending
		}
	}
	ownPrinted, open := false, printed
	tick := time.NewTicker(pollEvery / 5)
	defer tick.Stop()
	for l.now() < until && !(ownPrinted && l.allPrinted()) {
		select {
		case <-l.stop:
			return
		case <-open:
			ownPrinted, open = true, nil
			if l.me != 0 {
				unsent[0] = stated
			}
		case <-tick.C:
			l.beats.Heard(l.hear)
			for to, word := range unsent {
				if l.beats.Beat(comm.Peer(to), word) {
					delete(unsent, to)
				}
			}
		}
	}
	if !ownPrinted {
		l.logger().Warn("no state of this rank: it reads or writes files, or computes, and does not poll")
	}
	l.t.Abort(l.o.Code)
}

// allPrinted returns, on rank 0, whether all ranks that are not lost have printed their states.
func (l *Liveness) allPrinted() bool {
	if l.me != 0 {
		return false
	}
	lost := map[int]bool{}
	for _, i := range l.v.lost() {
		lost[l.peers[i]] = true
	}
	for _, p := range l.peers {
		if !l.printedBy[p] && !lost[p] {
			return false
		}
	}
	return true
}
