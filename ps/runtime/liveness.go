package runtime

import (
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"fluentps/comm"
)

// MPI does not say that a process was stopped, or is cut off: who waits for it waits for good. So every rank beats to rank 0
// and rank 0 to all, which makes 2(N-1) messages of a byte every few seconds, on a goroutine of its own: a rank that reads
// data, writes a file or waits for a long kernel beats like any other. Silence means that a process does not run
// or cannot be reached. Whether one that runs gets anywhere is what stall.abort is for.

// The words of heartbeats.
const (
	alive  byte = iota
	ending      // the sender ends the run with CodeStall; who hears it prints its state
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

// liveness is one rank's ear. Its methods may be called on nil, which hears nothing.
type liveness struct {
	r     *rank
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

// openLiveness begins to beat and to listen, where the transport can.
func (r *rank) openLiveness() *liveness {
	beats, ok := r.t.(comm.Heartbeats)
	if !ok || r.t.Size() == 1 {
		return nil
	}
	l := &liveness{r: r, beats: beats, start: time.Now(), stop: make(chan struct{}), done: make(chan struct{}), given: make(chan struct{}, 1), ready: map[int]bool{}, log: r.log}
	l.peers = []int{0}
	if r.me == 0 {
		l.peers = l.peers[:0]
		for rank := 1; rank < r.t.Size(); rank++ {
			l.peers = append(l.peers, rank)
		}
	}
	limit := time.Duration(0)
	if r.cfg != nil {
		limit = r.cfg.Stall.Peer
	}
	l.v = newVigil(limit, len(l.peers), 0)
	l.hear = l.heard
	go l.watch()
	return l
}

// close ends it. The transport may be closed then.
func (l *liveness) close() {
	if l != nil {
		close(l.stop)
		<-l.done
	}
}

// know says who the ranks are, and where to say what there is to say.
func (l *liveness) know() {
	if l == nil {
		return
	}
	names := make([]string, len(l.r.hosts))
	for rank := range names {
		names[rank] = fmt.Sprintf("%s (%s)", l.r.net.Place(rank), l.r.roles.Name(rank))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log, l.names = l.r.log, names
}

// conclude says that all ranks know the code of the run, and only have to leave.
func (l *liveness) conclude(code int) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over, l.code, l.since = true, code, l.now()
}

// giveUp ends the run with all nodes' states, after the driver has said why.
func (r *rank) giveUp() {
	switch {
	case r.live == nil:
		r.t.Abort(CodeStall)
	case !r.gaveUp:
		r.gaveUp = true
		r.live.given <- struct{}{}
	}
}

func (l *liveness) now() time.Duration { return time.Since(l.start) }

func (l *liveness) logger() *slog.Logger {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.log
}

func (l *liveness) name(rank int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.names == nil {
		return fmt.Sprintf("rank %d", rank)
	}
	return l.names[rank]
}

func (l *liveness) heard(from comm.Peer, word byte) {
	i := int(from)
	if l.r.me == 0 {
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

func (l *liveness) watch() {
	defer close(l.done)
	defer l.r.guard(nil, nil)
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
func (l *liveness) initiative() time.Duration {
	if l.r.me == 0 {
		return stateMax
	}
	return leaveMax
}

// look beats and listens once. With end the run is over, after wait at most.
func (l *liveness) look() (wait time.Duration, end bool) {
	listened := l.beats.Heard(l.hear)
	if paused := l.v.look(l.now(), listened); paused > 0 && (l.r.me == 0 || l.r.o.Mode == "mpi") {
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
			l.r.t.Abort(code)
		}
		return 0, false
	}
	if l.v.stuck() {
		l.logger().Error(fmt.Sprintf("stall: MPI has been busy here with one call for %s, the limit of stall.peer: another rank of this host may be stopped; ending the run with exit code %d", l.v.limit, CodeStall))
		return noticeMax, true
	}
	lost := l.v.lost()
	if len(lost) == 0 {
		return 0, false
	}
	l.accuse(lost)
	if l.r.me == 0 {
		return stateMax, true
	}
	return noticeMax, true
}

// beat sends a word to all peers that have none on the way.
func (l *liveness) beat(word byte) {
	if l.r.o.mute && l.spoke {
		return
	}
	l.spoke = true
	for _, to := range l.peers {
		l.beats.Beat(comm.Peer(to), word)
	}
}

// accuse says which ranks are silent.
func (l *liveness) accuse(lost []int) {
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
		l.v.limit, who, CodeStall))
}

// end has all ranks that can print their states, waits for them at most so long, and ends the world.
func (l *liveness) end(wait time.Duration) {
	until := l.now() + wait
	printed := make(chan struct{})
	l.r.t.Post(func() { l.r.printState(); l.r.explainWaits(); close(printed) })
	owed := map[int]byte{} // words that are still to be sent
	for _, p := range l.peers {
		if !l.told || l.r.me == 0 {
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
			if l.r.me != 0 {
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
	l.r.t.Abort(CodeStall)
}

// complete says, on rank 0, that the states of all ranks that are not lost are there.
func (l *liveness) complete() bool {
	if l.r.me != 0 {
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
