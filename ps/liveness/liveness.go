// Package liveness finds out that ranks do not run, or cannot be reached.
//
// MPI does not say that a process was stopped, or is cut off: who waits for it waits for good. So every rank beats to rank 0
// and rank 0 to all, which makes 2(N-1) messages of a byte every few seconds, on a goroutine of its own: a rank that reads
// data, writes a file or waits for a long kernel beats like any other. Silence means that a process does not run
// or cannot be reached. Whether one that runs gets anywhere is what stall.abort is for.
package liveness

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"fluentps/comm"
)

// The words of heartbeats.
const (
	alive  byte = iota
	ending      // the sender ends the run with Options.Code; who hears it prints its state
	stated      // so the sender has done
)

// How long the end of a run by a stall takes at most: until all who can have printed their state, and until a rank that was told leaves
// by itself.
const (
	stateMax = 5 * time.Second
	leaveMax = 2 * stateMax
	// noticeMax is that of a rank that has lost rank 0: the others lose it, too, but not in the same moment.
	noticeMax = 2 * time.Second
)

// Options are what a rank listens with.
type Options struct {
	Limit    time.Duration // silence that ends the run, stall.peer; 0: none does
	Code     int           // with which it ends then
	Separate bool          // this rank is a process of its own, or speaks for one: it tells when that did not run
	Log      *slog.Logger
	// State is called on the goroutine that drives, and prints where this rank stands.
	State func()
	// Guard is deferred on goroutines: a panic ends all ranks.
	Guard func()
	Mute  bool // of tests: it beats once and no more
}

// Liveness is one rank's ear. Its methods may be called on nil, which hears nothing.
type Liveness struct {
	o     Options
	t     comm.Transport
	me    int
	beats comm.Heartbeats
	peers []int // the ranks that it beats to and listens to
	v     *vigil
	start time.Time
	stop  chan struct{}
	done  chan struct{}
	given chan struct{} // the driver has given up, and said why

	hear  func(from comm.Peer, word byte)
	spoke bool         // this rank has beaten
	told  bool         // another rank ends the run
	ready map[int]bool // peers that have printed their state

	mu    sync.Mutex
	log   *slog.Logger
	names []string      // of every rank; nil: not known yet
	over  bool          // how the run ends is known to all: silence means nothing any more
	code  int           // with which
	since time.Duration // when that was
}

// Open begins to beat and to listen, where the transport can; else it is nil.
func Open(t comm.Transport, o Options) *Liveness {
	beats, ok := t.(comm.Heartbeats)
	if !ok || t.Size() == 1 {
		return nil
	}
	l := &Liveness{o: o, t: t, me: t.Rank(), beats: beats, start: time.Now(), stop: make(chan struct{}), done: make(chan struct{}), given: make(chan struct{}, 1), ready: map[int]bool{}, log: o.Log}
	l.peers = []int{0}
	if l.me == 0 {
		l.peers = l.peers[:0]
		for rank := 1; rank < t.Size(); rank++ {
			l.peers = append(l.peers, rank)
		}
	}
	l.v = newVigil(o.Limit, len(l.peers), 0)
	l.hear = l.heard
	go l.watch()
	return l
}

// Close ends it. The transport may be closed then.
func (l *Liveness) Close() {
	if l != nil {
		close(l.stop)
		<-l.done
	}
}

// Know says who the ranks are, by rank, and where to say what there is to say.
func (l *Liveness) Know(names []string, log *slog.Logger) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log, l.names = log, names
}

// Conclude says that all ranks know the code of the run, and only have to leave.
func (l *Liveness) Conclude(code int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over, l.code, l.since = true, code, l.now()
}

// GiveUp ends the run with all nodes' states, after the driver has said why. It is called once at most.
func (l *Liveness) GiveUp() { l.given <- struct{}{} }

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
	if i < 0 || i >= len(l.peers) { // beats go to and from rank 0 only
		return
	}
	l.v.heard(i)
	switch word {
	case ending:
		l.told = true
	case stated:
		l.told, l.ready[int(from)] = true, true
	}
}

func (l *Liveness) watch() {
	defer close(l.done)
	defer l.o.Guard()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-l.given:
			l.end(l.initiative())
			return
		case <-tick.C:
			if wait, end := l.look(); end {
				l.end(wait)
				return
			}
		}
	}
}

// initiative is the time for the others' states of a rank that ends the run itself: rank 0 conducts that where there is one.
func (l *Liveness) initiative() time.Duration {
	if l.me == 0 {
		return stateMax
	}
	return leaveMax
}

// look beats and listens once. With end the run is over, after wait at most.
func (l *Liveness) look() (wait time.Duration, end bool) {
	listened := l.beats.Heard(l.hear)
	if paused := l.v.look(l.now(), listened); paused > 0 && (l.me == 0 || l.o.Separate) {
		l.logger().Warn("this rank did not run for " + paused.Round(time.Second).String() + ": it was stopped, or its host was too busy; whoever waited in that time has waited for it")
	}
	if l.v.due() && listened {
		l.beat(alive)
	}
	if l.told {
		return l.initiative(), true
	}
	l.mu.Lock()
	over, code, since := l.over, l.code, l.since
	l.mu.Unlock()
	if over {
		if limit := l.v.limit; limit > 0 && l.v.at-since >= limit {
			l.logger().Error("the run is over, but the ranks have not left within stall.peer "+limit.String()+"; leaving with its exit code", "code", code)
			l.t.Abort(code)
		}
		return 0, false
	}
	if l.v.stuck() {
		l.logger().Error(fmt.Sprintf("stall: MPI has been busy here with one call for %s, the limit of stall.peer: another rank of this host may be stopped; ending the run with exit code %d", l.v.limit, l.o.Code))
		return noticeMax, true
	}
	lost := l.v.lost()
	if len(lost) == 0 {
		return 0, false
	}
	l.accuse(lost)
	if l.me == 0 {
		return stateMax, true
	}
	return noticeMax, true
}

// beat sends a word to all peers that have none on the way.
func (l *Liveness) beat(word byte) {
	if l.o.Mute && l.spoke {
		return
	}
	l.spoke = true
	for _, to := range l.peers {
		l.beats.Beat(comm.Peer(to), word)
	}
}

// accuse says which ranks are silent.
func (l *Liveness) accuse(lost []int) {
	const most = 8
	var names []string
	for _, i := range lost[:min(most, len(lost))] {
		names = append(names, l.name(l.peers[i]))
	}
	who := strings.Join(names, "; ")
	if n := len(lost) - most; n > 0 {
		who += fmt.Sprintf("; and %d more", n)
	}
	l.logger().Error(fmt.Sprintf("stall: no sign of life for %s, the limit of stall.peer, of %s: killed, stopped or cut off by its host or network; ending the run with exit code %d",
		l.v.limit, who, l.o.Code))
}

// end has all ranks that can print their states, waits for them at most so long, and ends the world.
func (l *Liveness) end(wait time.Duration) {
	until := l.now() + wait
	printed := make(chan struct{})
	l.t.Post(func() { l.o.State(); close(printed) })
	owed := map[int]byte{} // words that are still to be sent
	for _, p := range l.peers {
		if !l.told || l.me == 0 {
			owed[p] = ending
		}
	}
	mine, open := false, printed
	tick := time.NewTicker(lookEvery / 5)
	defer tick.Stop()
	for l.now() < until && !(mine && l.complete()) {
		select {
		case <-l.stop:
			return
		case <-open:
			mine, open = true, nil
			if l.me != 0 {
				owed[0] = stated
			}
		case <-tick.C:
			l.beats.Heard(l.hear)
			for to, word := range owed {
				if l.beats.Beat(comm.Peer(to), word) {
					delete(owed, to)
				}
			}
		}
	}
	if !mine {
		l.logger().Warn("no state of this rank: it reads or writes files, or computes, and does not look up")
	}
	l.t.Abort(l.o.Code)
}

// complete says, on rank 0, that the states of all ranks that are not lost are there.
func (l *Liveness) complete() bool {
	if l.me != 0 {
		return false
	}
	lost := map[int]bool{}
	for _, i := range l.v.lost() {
		lost[l.peers[i]] = true
	}
	for _, p := range l.peers {
		if !l.ready[p] && !lost[p] {
			return false
		}
	}
	return true
}
