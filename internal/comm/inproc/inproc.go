// Package inproc is a Transport whose ranks are goroutines of one process: for runs on one machine
// without MPI, and for tests.
//
// A message goes into the receiver's inbox. The receiver's own driving goroutine matches, copies and completes it, so
// matching needs no lock. A short message is copied at once and its send completes at once; a long one completes when
// the receiver has copied it straight from the sender's buffer. A program that forgets a receive therefore hangs here
// as it does over MPI.
//
// A rank that panics takes the process down, as any goroutine does.
package inproc

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fluentps/internal/comm"
)

// Options of a world; the zero value is ready to use.
type Options struct {
	PoolMax  int64 // bytes of all ranks' buffers together; 0: comm.PoolMax
	EagerMax int   // short messages that one receiver keeps copies of; 0: 1024, which take 8 MiB
	Hosts    []int // host of each rank, to test what several hosts would do; nil: all on one
}

// New returns the n ranks of a world. Each must be driven by one goroutine at a time and closed.
func New(n int, o Options) []comm.Transport {
	if n < 1 {
		panic(fmt.Sprintf("inproc: a world of %d ranks", n))
	}
	if o.Hosts != nil && len(o.Hosts) != n {
		panic(fmt.Sprintf("inproc: %d hosts for %d ranks", len(o.Hosts), n))
	}
	if o.EagerMax == 0 {
		o.EagerMax = 1024
	}
	w := &world{pool: comm.NewPool(o.PoolMax), start: time.Now(), eagerMax: o.EagerMax, open: n, sums: map[int64]*sum{}}
	ranks := make([]comm.Transport, n)
	for i := range ranks {
		e := &endpoint{world: w, rank: i, wake: make(chan struct{}, 1)}
		for peer := range n {
			if o.Hosts == nil || o.Hosts[peer] == o.Hosts[i] {
				e.peers = append(e.peers, comm.Peer(peer))
			}
		}
		w.ranks = append(w.ranks, e)
		ranks[i] = e
	}
	return ranks
}

// world is what the ranks share.
type world struct {
	pool     *comm.Pool
	start    time.Time
	ranks    []*endpoint
	eagerMax int
	aborted  atomic.Pointer[comm.AbortError] // set once, by the first Abort
	passed   atomic.Int64                    // barriers that all ranks have entered

	mu      sync.Mutex
	waiting int            // ranks inside the barrier
	open    int            // ranks not closed
	making  *window        // the window that some ranks, but not all, have joined
	sums    map[int64]*sum // collectives that some ranks have not joined yet, by number
}

func (w *world) wakeAll() {
	for _, e := range w.ranks {
		e.signal()
	}
}

// enterBarrier counts a rank into the barrier and returns the barrier's number.
func (w *world) enterBarrier() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	number := w.passed.Load() + 1
	if w.waiting++; w.waiting == len(w.ranks) {
		w.waiting = 0
		w.passed.Store(number)
		w.wakeAll()
	}
	return number
}

// closeRank counts a closed rank. After the last one no rank drives any more, so it releases the operations that an abort
// left in flight.
func (w *world) closeRank() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.open--; w.open > 0 {
		return
	}
	for _, e := range w.ranks {
		e.ops.Each(func(slot uint32, o *operation) { o.release() })
		for _, b := range e.windows {
			b.Free()
		}
	}
	w.pool.Close()
}

func (e *endpoint) Rank() int              { return e.rank }
func (e *endpoint) Size() int              { return len(e.world.ranks) }
func (e *endpoint) NodePeers() []comm.Peer { return e.peers }
func (e *endpoint) Now() time.Duration     { return time.Since(e.world.start) }

// SyncClock finds no drift: all ranks have one clock.
func (e *endpoint) SyncClock() (time.Duration, error) { return 0, e.Barrier() }

func (e *endpoint) NodeRank() (rank, size int) {
	return slices.Index(e.peers, comm.Peer(e.rank)), len(e.peers)
}

// Alloc takes from the one pool of the world.
func (e *endpoint) Alloc(n int) (*comm.Buf, error) { return e.world.pool.Alloc(n) }

// Abort ends Drive and Barrier of every rank; the first Abort decides the code.
func (e *endpoint) Abort(code int) {
	e.world.aborted.CompareAndSwap(nil, &comm.AbortError{Rank: e.rank, Code: code})
	e.world.wakeAll()
}
