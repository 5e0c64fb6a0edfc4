package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
)

// goneClock is the clock of a worker that has left: it never is the smallest, so nobody waits for it.
const goneClock = int64(1) << 62

// ownShard is one shard on its server.
type ownShard struct {
	id            int32
	pieces        int
	cut           cut // the clock at which the next scheme takes over
	scheme        scheme.Scheme
	agreement     agreement
	exact         bool
	whole         bool
	schedulesLink bool // the scheme schedules the link, for all its shards on this server
	copies        scheme.Copies
	alarms        []time.Duration // times of the alarms that the current scheme waits for; of a rotation none are kept
	agrees        bool            // the scheme says which iterations are closed; nothing else moves v

	clock   []int64   // per worker: iterations closed for it, by its pushes or by a change of scheme; goneClock once it left
	reached []int64   // per worker: 1 + the last iteration that it pushed; clock may be larger
	low     int64     // the smallest clock
	atLow   int       // workers whose clock is low; at least 1
	landing []*pushed // per worker: the push in flight; at most one
	// Per worker: pushes that have landed and are neither folded nor dropped, a list in order of landing. Slots are
	// distinct.
	staged      []*pushed
	stagedN     int     // pushes in staged
	pullPending []bool  // per worker: a pull has arrived that the scheme was not told of
	pullIter    []int64 // per worker: the iteration of that pull
	// Per worker: the scheme was told of the pull and has not answered it.
	pullHeld  []bool
	heldSince []time.Duration // per worker: when its pull began to be held back; 0: it is not
	// Per worker: when its push began to wait for its grant, -1: it does not. Nil unless schedulesLink.
	readySince []time.Duration
	// Slots that were used and are free, a stack: the slot used last is still in cache.
	freeSlots []int32
	slotsUsed int32     // slots ever used, at most slotMax; only these have memory
	records   []*pushed // by slot: the push in it, or the last push that was there
	slotMax   int32

	// By owner: iterations of which some parts have landed and not all, in order. Nil where iterations have no parts.
	parts   [][]*assembly
	offered [][]partName // per worker: its last pushes; nil where iterations have no parts
	// Per worker: headers of pushes that follow the one in flight, in order. Nil where workers pull before every
	// iteration and send no parts.
	queuedPushes [][]wire.Header
	feeds        []feed // per worker: the state of its subscription; nil where nothing is published
	aligns       []bool // per worker: its pull aligns it (ahead.go); nil unless workers pull ahead
	lookedAt     int64  // v for which the pulls that wait for it were looked through last; -1: for none. Only with aligns

	refs       []int           // per parameter buffer: replies in flight, plus 1 while the buffer is held for a checkpoint
	diskBuf    int32           // the buffer held for a checkpoint, or -1
	cur        int32           // the buffer of the current version
	sendingBuf []int32         // per worker: the buffer of the reply in flight to it, or -1
	heldReply  []int64         // per worker: Iter of a reply that waits until the one in flight has left, or -1
	unsent     []unsent        // per worker: the pieces of that reply; nil where replies leave whole
	near       []bool          // per worker: it shares memory with the server; nil: none does
	unread     []unreadVersion // per near worker: the version that it may still read

	version      int64  // commits so far
	rated        int64  // the learning-rate clock times N: a version that is a whole iteration counts N, else each accepted push 1
	accepted     int64  // pushes in these commits, and those that coded ones stand for
	samples      int64  // samples in these commits
	samplesTaken int64  // samples of all pushes that have landed and were not dropped
	leadMax      int64  // the bound on c - v, where workers keep copies
	folded       int64  // pushes folded since the last commit
	closed       int64  // 1 + the largest iteration committed as a whole: this is v where slow workers may be behind it
	letInto      int64  // the largest iteration that a reply let a worker start, -1 before the first
	tally        *tally // nil except on the lead shard of a run whose workers take steps of their own
	saveNext     bool   // a push folded since the last commit carries the Save flag: save the next version
	stats        Stats
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

func newOwnShard(id int32, pieces, workers, buffers int, ss ShardScheme) *ownShard {
	sh := &ownShard{
		id: id, pieces: pieces, slotMax: int32(ss.Slots), schedulesLink: ss.Shared, copies: ss.Copies, leadMax: max(ss.Lead, 0),
		clock: make([]int64, workers), reached: make([]int64, workers), atLow: workers, landing: make([]*pushed, workers), staged: make([]*pushed, workers),
		pullPending: make([]bool, workers), pullIter: make([]int64, workers), pullHeld: make([]bool, workers), heldSince: make([]time.Duration, workers),
		refs: make([]int, buffers), diskBuf: -1, sendingBuf: make([]int32, workers), heldReply: make([]int64, workers), letInto: -1,
	}
	if ss.Shared {
		sh.readySince = slices.Repeat([]time.Duration{-1}, workers)
	}
	for w := range workers {
		sh.sendingBuf[w], sh.heldReply[w] = -1, -1
	}
	sh.makeFeeds(workers)
	sh.setScheme(ss)
	return sh
}

func (sh *ownShard) takeSlot() int32 {
	n := len(sh.freeSlots)
	if n == 0 && sh.slotsUsed < sh.slotMax {
		sh.slotsUsed++
		return sh.slotsUsed - 1
	}
	if n == 0 {
		panic(fmt.Sprintf("core: shard %d has no free slot for a push: a worker is further ahead than %v allows", sh.id, sh.scheme))
	}
	slot := sh.freeSlots[n-1]
	sh.freeSlots = sh.freeSlots[:n-1]
	return slot
}

// waiting counts the pulls that are held back, by the scheme or until the next scheme takes over.
func (sh *ownShard) waiting() int {
	n := len(sh.cut.pulls)
	for _, w := range sh.pullHeld {
		if w {
			n++
		}
	}
	return n
}

// record stores a push that has taken a slot, and reuses the memory of the slot's last push.
func (sh *ownShard) record(p pushed) *pushed {
	for int(p.slot) >= len(sh.records) {
		sh.records = append(sh.records, new(pushed))
	}
	*sh.records[p.slot] = p
	return sh.records[p.slot]
}

func (sh *ownShard) freeSlot(slot int32) { sh.freeSlots = append(sh.freeSlots, slot) }

func (sh *ownShard) stage(p *pushed) {
	at := &sh.staged[p.head.Worker]
	for *at != nil {
		at = &(*at).next
	}
	*at = p
	sh.stagedN++
}

func (sh *ownShard) unstage(w int32, iter int64, part int32) *pushed {
	for at := &sh.staged[w]; *at != nil; at = &(*at).next {
		if p := *at; p.head.Iter == iter && p.head.Part == part {
			*at, p.next = p.next, nil
			sh.stagedN--
			return p
		}
	}
	panic(fmt.Sprintf("core: shard %d: the scheme names push w%d iter %d part %d, which is not staged: %v", sh.id, w, iter, part, sh.scheme))
}

// Buffers is the number of parameter buffers of a shard: one for the current version, one for the next, and one for
// each worker's reply in flight. Where versions are saved while training runs there is one more.
func Buffers(workers int, saves bool) int {
	if saves {
		return workers + 3
	}
	return workers + 2
}

// freeBuf finds a buffer for the next version: one that is neither current, nor in flight, nor held for a checkpoint.
// Buffers sees to it that there always is one.
func (sh *ownShard) freeBuf() int32 {
	for b, n := range sh.refs {
		if n == 0 && int32(b) != sh.cur {
			return int32(b)
		}
	}
	panic(fmt.Sprintf("core: shard %d: all %d parameter buffers are in flight", sh.id, len(sh.refs)))
}

// setClock moves a worker's clock forward. It looks for the smallest clock only when no worker has it any more. That
// costs N steps per iteration, thus O(1) per push.
func (sh *ownShard) setClock(w int32, c int64) {
	old := sh.clock[w]
	sh.clock[w] = c
	if old > sh.low || c == old {
		return
	}
	if sh.atLow--; sh.atLow == 0 {
		sh.lowest()
	}
}

// lowest finds the smallest clock and the number of workers that have it.
func (sh *ownShard) lowest() {
	sh.low, sh.atLow = slices.Min(sh.clock), 0
	for _, c := range sh.clock {
		if c == sh.low {
			sh.atLow++
		}
	}
}

// minClock is v, as seen by a worker that may start iteration iter: the smallest clock, or more where the scheme has
// closed iterations that a slow worker has not pushed.
func (sh *ownShard) minClock(iter int64) int64 { return min(iter, sh.v()) }

func (sh *ownShard) v() int64 {
	if sh.agrees {
		return sh.closed
	}
	return max(sh.low, sh.closed)
}

// rateClock is the learning-rate clock in iterations: accepted pushes / N, or versions where all advance together. A
// change of the scheme does not move it.
func (sh *ownShard) rateClock(workers int) float64 { return float64(sh.rated) / float64(workers) }

// Check verifies the server's invariants.
func (s *Server) Check() error {
	var errs []error
	for _, id := range s.owned {
		errs = append(errs, s.shards[id].check())
	}
	return errors.Join(errs...)
}

func (sh *ownShard) check() error {
	flights := make([]int, len(sh.refs))
	for _, b := range sh.sendingBuf {
		if b >= 0 {
			flights[b]++
		}
	}
	live, most := 0, len(sh.clock)+1
	if sh.diskBuf >= 0 {
		flights[sh.diskBuf]++
		most++
	}
	for b, n := range flights {
		if n != sh.refs[b] {
			return fmt.Errorf("core: shard %d buffer %d has %d readers, counted %d", sh.id, b, n, sh.refs[b])
		}
		if n > 0 || int32(b) == sh.cur {
			live++
		}
	}
	if live > most {
		return fmt.Errorf("core: shard %d: %d versions are live with %d workers; at most %d may be between two commits", sh.id, live, len(sh.clock), most)
	}
	used := map[int32]bool{}
	for _, slot := range sh.freeSlots {
		used[slot] = true
	}
	n := len(sh.freeSlots) + sh.stagedN
	for _, p := range sh.staged {
		for ; p != nil; p = p.next {
			used[p.slot] = true
		}
	}
	for _, p := range sh.landing {
		if p != nil {
			n++
			used[p.slot] = true
		}
	}
	assembled, checked := sh.checkParts(used)
	if n += assembled; len(used) != n || n != int(sh.slotsUsed) {
		return fmt.Errorf("core: shard %d: %d uses of %d distinct slots, and %d were ever taken: a slot is used twice or lost", sh.id, n, len(used), sh.slotsUsed)
	}
	if err := errors.Join(checked, sh.checkCopies(), sh.checkUnsent(), sh.checkNear()); err != nil {
		return err
	}
	if low := slices.Min(sh.clock); low != sh.low {
		return fmt.Errorf("core: shard %d: the smallest clock is %d, recorded as %d", sh.id, low, sh.low)
	}
	return nil
}

func (s *Server) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "s%d here=%d", s.me, s.present)
	for _, id := range s.owned {
		sh := s.shards[id]
		fmt.Fprintf(&b, " shard%d{version=%d staged=%d waiting=%d %v}", id, sh.version, sh.stagedN, sh.waiting(), sh.scheme)
	}
	return b.String()
}
