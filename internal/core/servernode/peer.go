package servernode

import (
	"math"
	"time"

	"fluentps/internal/comm/wire"
)

// peer is all that a server knows of one worker for one shard. The worker gives clocks, pushes and a pull; the server gives replies,
// versions and grants. The server meets its workers in any order: so what every exchange touches is one cache line,
// and the rest lies apart.
type peer struct {
	clock   int64   // iterations closed for the worker, by its pushes or by a change of scheme; goneClock once it has left
	reached int64   // 1 + the last iteration that it pushed; clock may be larger
	landing *pushed // its push in flight; at most one
	staged  *pushed // its pushes that have landed and are neither folded nor dropped, a list in order of landing

	// What it asked for last: a pull that is pending, or held, or answered.
	pullIter    int64         // the iteration for which it wants parameters
	heldSince   time.Duration // when the pull began to be held back, by the scheme or by a cut; 0: it is not
	pullPending bool          // it has arrived, and the scheme was not told of it
	pullHeld    bool          // the scheme was told of it and has not answered it

	near      bool  // the worker shares memory with the server
	replyNext bool  // another reply waits until the one in flight has left: that of nextIter
	replyBuf  int32 // the buffer of what is in flight to it, a reply to its pull or a published version; -1: nothing is

	*apart
}

// apart is what a server knows of a worker in few states, or under some settings only.
type apart struct {
	nextIter   int64         // Iter of the reply that waits
	aligns     bool          // its pull aligns it (ahead.go)
	queued     []wire.Header // headers of pushes that follow landing, in order; none unless the shard queues pushes
	parts      []*assembly   // its own iterations of which some parts have landed and not all, in order
	offered    []partName    // its last pushes, at most offeredMax; none where iterations have no parts
	feed       feed          // its subscription; unused unless the shard publishes versions
	unsent     unsent        // pieces of the reply in flight; 0 where replies leave whole
	unread     unreadVersion // the reply in flight to a near worker
	readySince time.Duration // when its push began to wait for its grant; -1: it does not
}

func newPeers(workers int) []peer {
	peers, rest := make([]peer, workers), make([]apart, workers)
	for w := range peers {
		peers[w].replyBuf, peers[w].apart = -1, &rest[w]
		rest[w].readySince = -1
	}
	return peers
}

// ask notes that a pull for an iteration has arrived.
func (p *peer) ask(iter int64) { p.pullPending, p.pullIter = true, iter }

// tell notes that the scheme is told of the pull.
func (p *peer) tell() { p.pullPending, p.pullHeld = false, true }

// answer ends the pull, and returns for how long it was held back.
func (p *peer) answer(now time.Duration) (heldFor time.Duration) {
	if p.heldSince > 0 {
		heldFor = now - p.heldSince
	}
	p.pullHeld, p.heldSince = false, 0
	return heldFor
}

func (p *peer) replyInFlight() bool { return p.replyBuf >= 0 }

// leave forgets what a worker that leaves has asked for, and what it would push. What has landed stays, and so does what is in flight to
// it: the driver still says when that has left.
func (p *peer) leave() {
	p.pullHeld, p.pullPending, p.heldSince = false, false, 0
	p.replyNext = false
	p.readySince = -1
	p.queued, p.offered = nil, nil
}

// stage adds a push that has landed.
func (p *peer) stage(new *pushed) {
	at := &p.staged
	for *at != nil {
		at = &(*at).next
	}
	*at = new
}

// unstage takes a staged push out; nil: there is none of that iteration and part.
func (p *peer) unstage(iter int64, part int32) *pushed {
	for at := &p.staged; *at != nil; at = &(*at).next {
		if q := *at; q.head.Iter == iter && q.head.Part == part {
			*at, q.next = q.next, nil
			return q
		}
	}
	return nil
}

// isLanding says whether a push is in flight.
func (p *peer) isLanding(m *wire.Header) bool {
	q := p.landing
	return q != nil && q.head.Iter == m.Iter && q.head.Owner == m.Owner && q.head.Part == m.Part
}

// lowestClock is the smallest clock of some peers, and the number of those that have it.
func lowestClock(peers []peer) (low int64, n int) {
	low = math.MaxInt64
	for i := range peers {
		switch c := peers[i].clock; {
		case c < low:
			low, n = c, 1
		case c == low:
			n++
		}
	}
	return low, n
}

// reachedMin and reachedMax are 1 + the last iteration that every worker, or any, has pushed.
func reachedMin(peers []peer) (low int64) {
	low = peers[0].reached
	for i := range peers {
		low = min(low, peers[i].reached)
	}
	return low
}

func reachedMax(peers []peer) (most int64) {
	for i := range peers {
		most = max(most, peers[i].reached)
	}
	return most
}
