package servernode

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core/inturn"
	"fluentps/ps/scheme"
)

// ownShard is one shard on its server.
type ownShard struct {
	id            int32
	pieces        int
	schedulesLink bool // the scheme schedules the link, for all its shards on this server
	copies        scheme.Copies
	leadMax       int64 // the bound on c - v, where workers keep copies
	hasParts      bool  // an iteration may arrive in several pushes (parts.go)
	replyByPiece  bool  // replies leave piece by piece, as the send policy says (replies.go)

	current
	cut       cut // the clock at which the next scheme takes over
	agreement agreement
	peers     []peer // by worker
	clocks
	slots slots
	versions

	letInto      int64  // the largest iteration that a reply let a worker start, -1 before the first
	samplesTaken int64  // samples of all pushes that have landed and were not dropped
	tally        *tally // nil except on the lead shard of a run whose workers take steps of their own
	stats        Stats
}

// current is the scheme that decides now, with what the node must know about it.
type current struct {
	scheme scheme.Scheme
	exact  bool
	whole  bool
	agrees bool            // the scheme says which iterations are closed; nothing else moves v
	alarms []time.Duration // times of the alarms that the scheme waits for; of a rotation none are kept
}

// clocks sums up the clocks of the peers.
type clocks struct {
	low      int64 // the smallest clock
	atLow    int   // workers whose clock is low; at least 1
	closed   int64 // 1 + the largest iteration committed as a whole: this is v where slow workers may be behind it
	lookedAt int64 // v for which pulls that wait for it were looked through last; -1: for none. Only where workers pull ahead
}

// pushed is a push that is in flight or staged.
type pushed struct {
	head     wire.Header
	slot     int32
	missing  int  // pieces that have not landed
	onServer bool // the push is in the server's memory, not in its worker's

	norm2, normInf, normW float32 // valid once the push has landed, where the driver gives norms
	next                  *pushed
}

func newOwnShard(id int32, pieces, workers, buffers int, ss inturn.ShardScheme) *ownShard {
	sh := &ownShard{
		id: id, pieces: pieces, schedulesLink: ss.Shared, copies: ss.Copies, leadMax: max(ss.Lead, 0),
		peers:    newPeers(workers),
		clocks:   clocks{atLow: workers},
		slots:    slots{most: int32(ss.Slots)},
		versions: versions{refs: make([]int, buffers), diskBuf: -1},
		letInto:  -1,
	}
	sh.setScheme(ss)
	return sh
}

// queuesPushes says whether a push of a worker may arrive while another one is in flight: where workers do not pull before every iteration,
// or push for others.
func (sh *ownShard) queuesPushes() bool { return sh.copies != scheme.Pulled || sh.hasParts }

// waiting counts the pulls that are held back, by the scheme or until the next scheme takes over.
func (sh *ownShard) waiting() int {
	n := len(sh.cut.pulls)
	for i := range sh.peers {
		if sh.peers[i].pullHeld {
			n++
		}
	}
	return n
}

func (sh *ownShard) stage(p *pushed) {
	sh.peers[p.head.Worker].stage(p)
	sh.slots.staged++
}

func (sh *ownShard) unstage(w int32, iter int64, part int32) *pushed {
	p := sh.peers[w].unstage(iter, part)
	if p == nil {
		panic(fmt.Sprintf("core: shard %d: the scheme names push w%d iter %d part %d, which is not staged: %v",
			sh.id, w, iter, part, sh.scheme))
	}
	sh.slots.staged--
	return p
}

// takeSlot finds a place for a push.
func (sh *ownShard) takeSlot() int32 {
	slot, ok := sh.slots.take()
	if !ok {
		panic(fmt.Sprintf("core: shard %d has no free slot for a push: a worker is further ahead than %v allows", sh.id, sh.scheme))
	}
	return slot
}

// setClock moves a worker's clock forward. It looks for the smallest clock only when no worker has it any more. That
// costs N steps per iteration, thus O(1) per push.
func (sh *ownShard) setClock(w int32, c int64) {
	old := sh.peers[w].clock
	sh.peers[w].clock = c
	if old > sh.low || c == old {
		return
	}
	if sh.atLow--; sh.atLow == 0 {
		sh.lowest()
	}
}

// lowest finds the smallest clock and the number of workers that have it.
func (sh *ownShard) lowest() { sh.low, sh.atLow = lowestClock(sh.peers) }

// minClock is v, as seen by a worker that may start iteration iter: the smallest clock, or more where the scheme has
// closed iterations that a slow worker has not pushed.
func (sh *ownShard) minClock(iter int64) int64 { return min(iter, sh.v()) }

func (sh *ownShard) v() int64 {
	if sh.agrees {
		return sh.closed
	}
	return max(sh.low, sh.closed)
}

// Check verifies the server's invariants.
func (s *Server) Check() error {
	var errs []error
	for _, id := range s.owned {
		errs = append(errs, s.shards[id].check())
	}
	return errors.Join(errs...)
}

func (sh *ownShard) check() error {
	inFlight := make([]int, len(sh.versions.refs))
	for i := range sh.peers {
		switch k := &sh.peers[i]; {
		case k.replyInFlight():
			inFlight[k.replyBuf]++
		case k.replyNext:
			return fmt.Errorf("core: shard %d: a reply into %d waits for one in flight to worker %d, and none is", sh.id, k.nextIter, i)
		}
	}
	if err := sh.versions.check(inFlight, len(sh.peers)); err != nil {
		return fmt.Errorf("core: shard %d %w", sh.id, err)
	}
	if err := errors.Join(sh.checkSlots(), sh.checkParts(), sh.checkCopies(), sh.checkUnsent(), sh.checkNear()); err != nil {
		return err
	}
	if low, _ := lowestClock(sh.peers); low != sh.low {
		return fmt.Errorf("core: shard %d: the smallest clock is %d, recorded as %d", sh.id, low, sh.low)
	}
	return nil
}

// checkSlots verifies that each slot that was ever used is free, or has one push.
func (sh *ownShard) checkSlots() error {
	used := slices.Clone(sh.slots.free)
	for i := range sh.peers {
		k := &sh.peers[i]
		for p := k.staged; p != nil; p = p.next {
			used = append(used, p.slot)
		}
		if k.landing != nil {
			used = append(used, k.landing.slot)
		}
		for _, a := range k.parts {
			used = append(used, a.sum.slot)
		}
	}
	slices.Sort(used)
	if distinct := len(slices.Compact(slices.Clone(used))); distinct != len(used) || len(used) != int(sh.slots.used) {
		return fmt.Errorf("core: shard %d: %d uses of %d distinct slots, and %d were ever taken: a slot is used twice or lost",
			sh.id, len(used), distinct, sh.slots.used)
	}
	return nil
}

func (s *Server) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "s%d here=%d", s.me, s.members.present)
	for _, id := range s.owned {
		sh := s.shards[id]
		fmt.Fprintf(&b, " shard%d{version=%d staged=%d waiting=%d %v}", id, sh.versions.version, sh.slots.staged, sh.waiting(), sh.scheme)
	}
	return b.String() + s.textClip()
}

// slots are the places of a shard into which pushes land. Only those that were ever used have memory.
type slots struct {
	free    []int32   // slots that were used and are free, a stack: the slot used last is still in cache
	used    int32     // slots ever used, at most most
	most    int32     // a push beyond is a worker further ahead than the scheme allows
	records []*pushed // by slot: the push in it, or the last push that was there
	staged  int       // pushes that have landed and are neither folded nor dropped, over all workers
}

// take finds a free slot; false: there is none.
func (k *slots) take() (slot int32, ok bool) {
	n := len(k.free)
	if n == 0 && k.used < k.most {
		k.used++
		return k.used - 1, true
	}
	if n == 0 {
		return 0, false
	}
	slot = k.free[n-1]
	k.free = k.free[:n-1]
	return slot, true
}

// record stores a push that has taken a slot, and reuses the memory of the slot's last push.
func (k *slots) record(p pushed) *pushed {
	for int(p.slot) >= len(k.records) {
		k.records = append(k.records, new(pushed))
	}
	*k.records[p.slot] = p
	return k.records[p.slot]
}

func (k *slots) freeSlot(slot int32) { k.free = append(k.free, slot) }
