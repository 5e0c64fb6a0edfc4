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

// gone is the clock of a worker that has left: it holds nobody back.
const gone = int64(1) << 62

// ownShard is one shard on its server.
type ownShard struct {
	id     int32
	pieces int
	cut    cut // where the next scheme takes over
	scheme scheme.Scheme
	accord accord
	exact  bool
	whole  bool
	shared bool // the scheme schedules the link, for all its shards on this server
	copies scheme.Copies
	agrees bool // the scheme says which iterations are closed, and v is known by that alone

	clock   []int64         // iterations closed for a worker, by its pushes or by a change of scheme; gone once it left
	reached []int64         // 1 + the last iteration that a worker pushed; clock may be further
	low     int64           // the smallest clock
	atLow   int             // workers whose clock it is; at least 1
	landing []*pushed       // the push on its way, per worker; at most one
	staged  []*pushed       // landed, neither folded nor dropped, per worker: a list in order of landing; slots are distinct
	stagedN int             // pushes in staged
	asked   []bool          // a pull came that the scheme has not seen, per worker
	wants   []int64         // the iteration of that pull
	waits   []bool          // the scheme has seen this worker's pull and not answered it
	since   []time.Duration // when this worker's pull began to be held back; 0: it is not
	ready   []time.Duration // when this worker's push began to wait for its grant, -1: it does not; nil but of shared
	free    []int32         // slots used before and free now, a stack: the one used last is the one still in cache
	slots   int32           // slots ever used, at most slotMax: memory is only taken for these
	records []*pushed       // by slot: the push in it, or the one that was there last
	slotMax int32

	parts [][]*assembly   // by owner, iterations that come in parts and are not whole, in order; nil where none does
	early [][]wire.Header // headers of pushes that follow the one on its way, per worker, in order; nil where workers pull before every iteration and send no parts
	feeds []feed          // what is published, per worker; nil where nothing is

	refs    []int     // per parameter buffer: replies in flight, and 1 while it is written to disk
	disk    int32     // the buffer that is written to disk, or -1
	cur     int32     // the buffer of the current version
	sending []int32   // the buffer of the reply in flight to each worker, or -1
	held    []int64   // Iter of a reply that waits for the one in flight to the same worker, or -1
	unsent  []unsent  // of that reply; nil where it leaves whole
	near    []bool    // workers that share memory with the server; nil: none
	reads   []reading // of these, what they read

	version  int64 // commits so far
	rated    int64 // the learning-rate clock times N: a version that is a whole iteration counts N, else each accepted push 1
	accepted int64 // pushes in them
	samples  int64 // samples in them
	taken    int64 // samples of all pushes that landed and were not dropped
	bound    int64 // the bound on c - v, where workers keep copies
	folded   int64 // pushes folded since the last commit
	closed   int64 // 1 + the largest iteration committed as a whole: v, where workers may be behind it
	letInto  int64 // largest iteration that a reply let a worker start, -1 before the first
	saving   bool  // a push folded since the last commit is marked: the version is to be saved
	stats    Stats
}

// pushed is a push on its way or staged.
type pushed struct {
	head    wire.Header
	slot    int32
	missing int  // pieces that have not landed
	own     bool // it is in the server's memory, not in its worker's

	norm2, normInf, normW float32 // once it has landed, where the driver gives them
	next                  *pushed
}

func newOwnShard(id int32, pieces, workers, buffers int, ss ShardScheme) *ownShard {
	sh := &ownShard{
		id: id, pieces: pieces, slotMax: int32(ss.Slots), shared: ss.Shared, copies: ss.Copies, bound: max(ss.Lead, 0),
		clock: make([]int64, workers), reached: make([]int64, workers), atLow: workers, landing: make([]*pushed, workers), staged: make([]*pushed, workers),
		asked: make([]bool, workers), wants: make([]int64, workers), waits: make([]bool, workers), since: make([]time.Duration, workers),
		refs: make([]int, buffers), disk: -1, sending: make([]int32, workers), held: make([]int64, workers), letInto: -1,
	}
	if ss.Shared {
		sh.ready = slices.Repeat([]time.Duration{-1}, workers)
	}
	for w := range workers {
		sh.sending[w], sh.held[w] = -1, -1
	}
	sh.keepCopies(workers)
	sh.take(ss)
	return sh
}

func (sh *ownShard) takeSlot() int32 {
	n := len(sh.free)
	if n == 0 && sh.slots < sh.slotMax {
		sh.slots++
		return sh.slots - 1
	}
	if n == 0 {
		panic(fmt.Sprintf("core: shard %d has no slot left for a push: a worker is further ahead than %v allows", sh.id, sh.scheme))
	}
	slot := sh.free[n-1]
	sh.free = sh.free[:n-1]
	return slot
}

// waiting counts the pulls that are held back, by the scheme or by the next one that is not there yet.
func (sh *ownShard) waiting() int {
	n := len(sh.cut.pulls)
	for _, w := range sh.waits {
		if w {
			n++
		}
	}
	return n
}

// record keeps a push that has taken a slot, in the memory of the one before it there.
func (sh *ownShard) record(p pushed) *pushed {
	for int(p.slot) >= len(sh.records) {
		sh.records = append(sh.records, new(pushed))
	}
	*sh.records[p.slot] = p
	return sh.records[p.slot]
}

func (sh *ownShard) freeSlot(slot int32) { sh.free = append(sh.free, slot) }

func (sh *ownShard) stage(p *pushed) {
	at := &sh.staged[p.head.Worker]
	for *at != nil {
		at = &(*at).next
	}
	*at = p
	sh.stagedN++
}

func (sh *ownShard) unstage(w int32, iter int64) *pushed {
	for at := &sh.staged[w]; *at != nil; at = &(*at).next {
		if p := *at; p.head.Iter == iter {
			*at, p.next = p.next, nil
			sh.stagedN--
			return p
		}
	}
	panic(fmt.Sprintf("core: shard %d: the scheme names push w%d iter %d, which is not staged: %v", sh.id, w, iter, sh.scheme))
}

// Buffers is how many a shard has for its versions: one is current, one is made, one is on its way to each worker, and one
// is written to disk where versions are saved while training goes on.
func Buffers(workers int, saves bool) int {
	if saves {
		return workers + 3
	}
	return workers + 2
}

// freeBuf finds a buffer for the next version: one that is neither current, nor in flight, nor written to disk. There is
// always one (Buffers).
func (sh *ownShard) freeBuf() int32 {
	for b, n := range sh.refs {
		if n == 0 && int32(b) != sh.cur {
			return int32(b)
		}
	}
	panic(fmt.Sprintf("core: shard %d: all %d parameter buffers are in flight", sh.id, len(sh.refs)))
}

// setClock moves a worker's clock forward. Looking for the smallest only when nobody has it any more costs N steps
// per iteration, thus O(1) per push.
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

// lowest finds the smallest clock and how many have it.
func (sh *ownShard) lowest() {
	sh.low, sh.atLow = slices.Min(sh.clock), 0
	for _, c := range sh.clock {
		if c == sh.low {
			sh.atLow++
		}
	}
}

// minClock is v, as seen by a worker that is let into iteration iter: the smallest clock, or further where the
// scheme has closed iterations that a slow worker has not pushed.
func (sh *ownShard) minClock(iter int64) int64 { return min(iter, sh.v()) }

func (sh *ownShard) v() int64 {
	if sh.agrees {
		return sh.closed
	}
	return max(sh.low, sh.closed)
}

// rateClock is the learning-rate clock in iterations: accepted pushes / N, or versions where all advance together.
// It goes on where it was when the scheme changes.
func (sh *ownShard) rateClock(workers int) float64 { return float64(sh.rated) / float64(workers) }

// Check holds the server to its invariants.
func (s *Server) Check() error {
	var errs []error
	for _, id := range s.order {
		errs = append(errs, s.shards[id].check())
	}
	return errors.Join(errs...)
}

func (sh *ownShard) check() error {
	flights := make([]int, len(sh.refs))
	for _, b := range sh.sending {
		if b >= 0 {
			flights[b]++
		}
	}
	live, most := 0, len(sh.clock)+1
	if sh.disk >= 0 {
		flights[sh.disk]++
		most++
	}
	for b, n := range flights {
		if n != sh.refs[b] {
			return fmt.Errorf("core: shard %d buffer %d: %d readers, counted %d", sh.id, b, n, sh.refs[b])
		}
		if n > 0 || int32(b) == sh.cur {
			live++
		}
	}
	if live > most {
		return fmt.Errorf("core: shard %d: %d versions live with %d workers; at most %d between two commits", sh.id, live, len(sh.clock), most)
	}
	used := map[int32]bool{}
	for _, slot := range sh.free {
		used[slot] = true
	}
	n := len(sh.free) + sh.stagedN
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
	if n += assembled; len(used) != n || n != int(sh.slots) {
		return fmt.Errorf("core: shard %d: %d names for %d slots of %d: one is used twice or lost", sh.id, n, len(used), sh.slots)
	}
	if err := errors.Join(checked, sh.checkCopies(), sh.checkUnsent(), sh.checkNear()); err != nil {
		return err
	}
	if low := slices.Min(sh.clock); low != sh.low {
		return fmt.Errorf("core: shard %d: the smallest clock is %d, kept as %d", sh.id, low, sh.low)
	}
	return nil
}

func (s *Server) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "s%d here=%d", s.me, s.here)
	for _, id := range s.order {
		sh := s.shards[id]
		fmt.Fprintf(&b, " shard%d{version=%d staged=%d waiting=%d %v}", id, sh.version, sh.stagedN, sh.waiting(), sh.scheme)
	}
	return b.String()
}
