//go:build mpi

package mpi

/*
#cgo !mpich pkg-config: ompi-c
#cgo mpich CFLAGS: -DFLUENTPS_MPICH
#cgo CFLAGS: -O2 -Wall -pthread
#include "shim.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	gompi "github.com/sbromberger/gompi"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inflight"
)

// Options of Init; the zero value is ready to use.
type Options struct {
	PoolMax int64  // bytes of this rank's buffers; 0: comm.PoolMax
	Scratch string // folder for files of Open MPI in the host's memory file system; "": its default
}

// transport is the one rank of this process.
type transport struct {
	rank, size int
	nodeRank   int
	nodePeers  []comm.Peer
	pool       *comm.Pool
	clock      clock
	offerBuf   *comm.Buf // for agree: an offer of this rank and one of each rank

	ops        inflight.Slots[operation]
	streams    inflight.Queues  // receives that MPI fills in posting order
	ready      []uint32         // slots complete and in order, handler not yet run
	spareReady []uint32         // handlers running now; swapped with ready
	flows      map[uint64]*flow // of control messages, by stream
	held       inflight.Queues  // sends that wait for admission by their flow
	matched    []uint64         // flows whose marked sends were matched since the last releaseHeld
	windows    []*window        // not yet freed, in order of creation
	driving    bool
	woken      int64 // sleeps that a bell has ended
	rests      int64 // times that Go was let reschedule the goroutine that drives
	closed     bool
	finished   atomic.Bool // MPI_Finalize has begun
	stuck      atomic.Bool // MPI_Finalize hangs

	posts posts
}

// posts are functions that other goroutines give to the driver.
type posts struct {
	mu    sync.Mutex
	some  atomic.Bool // list is not empty
	list  []func()
	spare []func() // empty; swapped with list; belongs to the driver
}

var started bool // MPI can be initialised once per process

func init() {
	// init functions run on the main thread; main stays there, as Init and Close need.
	if UnderLauncher(os.Getenv) {
		runtime.LockOSThread()
	}
}

// Init starts MPI and returns this process's rank. All processes of the launch must call it, once,
// each from its main goroutine locked to the main thread. After an error the process should exit
// with a code other than 0.
func Init(o Options) (comm.Transport, error) {
	if started {
		return nil, errors.New("mpi: Init was called before; MPI can be initialised once per process")
	}
	if err := onMainThread("Init"); err != nil {
		return nil, err
	}
	compiled, running := versions()
	if err := checkVendor(compiled, firstLine(running)); err != nil {
		return nil, err
	}
	if err := checkLauncher(compiled, os.Getenv); err != nil {
		return nil, err
	}
	started = true
	useScratch(o.Scratch)
	var w C.struct_fp_world
	if rc := C.fp_init(&w); rc != 0 {
		return nil, fmt.Errorf("mpi: %s: %s", C.GoString(w.failed), errorText(rc))
	}
	t := &transport{
		rank: gompi.WorldRank(), size: gompi.WorldSize(),
		nodeRank: int(w.node_rank),
		pool:     comm.NewPool(o.PoolMax),
		clock:    clock{base: time.Now()}, // our own clock until all ranks have agreed
		flows:    make(map[uint64]*flow),
	}
	for _, peer := range unsafe.Slice(w.node_peers, int(w.node_size)) {
		t.nodePeers = append(t.nodePeers, comm.Peer(peer))
	}
	if err := CheckWorld(t.size, firstLine(running), os.Getenv); err != nil {
		finalize()
		return nil, err
	}
	if w.tag_max < comm.TagMax {
		finalize()
		return nil, fmt.Errorf("mpi: %s offers tags up to %d, this program needs %d: use another MPI or transport layer",
			firstLine(running), w.tag_max, comm.TagMax)
	}
	var err error
	if t.offerBuf, err = t.pool.Alloc(offerBytes * (1 + t.size)); err != nil {
		return nil, fmt.Errorf("mpi: %w", err)
	}
	if err := t.agreeOnClock(); err != nil {
		return nil, fmt.Errorf("mpi: measuring clock offsets: %w", err)
	}
	if err := t.hangBells(); err != nil {
		return nil, fmt.Errorf("mpi: bells of the ranks of a host: %w", err)
	}
	populateMapped(len(t.nodePeers)) // by now the ranks have reached each other
	return t, nil
}

// Library returns the first line of the MPI library's description of itself.
func Library() string {
	_, running := versions()
	return firstLine(running)
}

func versions() (compiled, running string) {
	var c, r [C.FP_TEXT]C.char
	C.fp_library(&c[0], &r[0])
	return C.GoString(&c[0]), C.GoString(&r[0])
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return strings.Join(strings.Fields(line), " ") // MPICH's has a tab
}

func errorText(code C.int) string {
	var text [C.FP_TEXT]C.char
	C.fp_error(code, &text[0])
	return C.GoString(&text[0])
}

func onMainThread(use string) error {
	if syscall.Gettid() != syscall.Getpid() {
		return fmt.Errorf("mpi: %s is not on the main thread: call it from main, with runtime.LockOSThread in an init function", use)
	}
	return nil
}

func (t *transport) Rank() int                      { return t.rank }
func (t *transport) Size() int                      { return t.size }
func (t *transport) NodeRank() (int, int)           { return t.nodeRank, len(t.nodePeers) }
func (t *transport) NodePeers() []comm.Peer         { return t.nodePeers }
func (t *transport) Alloc(n int) (*comm.Buf, error) { return t.pool.Alloc(n) }
func (t *transport) Now() time.Duration             { return t.clock.now() }

// outputGrace is the time that the launcher gets to pass on the output of this rank: at an abort MPICH's ends its
// proxies without emptying their pipes, and the reason would be lost.
const outputGrace = 100 * time.Millisecond

// abortMax is how long MPI_Abort may take: if the launcher is cut off, it never returns.
const abortMax = 5 * time.Second

// Abort ends all processes of the world with the code, or at least this one, and does not return.
func (t *transport) Abort(code int) {
	time.Sleep(outputGrace)
	time.AfterFunc(abortMax, func() { os.Exit(code) })
	if !t.finished.Load() {
		C.fp_abort(C.int(code))
	}
	if t.stuck.Load() {
		abortByLauncher(code)
	}
	os.Exit(code)
}

// Close waits for all ranks and finalizes MPI. It refuses while operations are in flight.
func (t *transport) Close() error {
	if t.closed {
		return t.stopped()
	}
	if err := onMainThread("Close"); err != nil {
		return err
	}
	if t.ops.Len() > 0 {
		return t.busyError()
	}
	if err := t.lastBarrier(); err != nil {
		return err
	}
	for len(t.windows) > 0 {
		if err := t.windows[0].release(); err != nil {
			return err
		}
	}
	t.closed = true
	t.finished.Store(true)
	if rc := C.fp_close(); rc != 0 {
		return fmt.Errorf("mpi: MPI_Comm_free: %s", errorText(rc))
	}
	t.offerBuf.Free()
	t.pool.Close()
	if !finalize() {
		t.stuck.Store(true)
		return fmt.Errorf("mpi: MPI_Finalize is not done after %d s: %w", finalizeMax, comm.ErrStuck)
	}
	return nil
}

func (t *transport) stopped() error {
	if t.closed {
		return fmt.Errorf("mpi: rank %d: %w", t.rank, comm.ErrClosed)
	}
	return nil
}

func (t *transport) busyError() (err error) {
	t.ops.Each(func(slot uint32, o *operation) {
		err = fmt.Errorf("mpi: rank %d closes with %d operations in flight, among them a %s rank %d, channel %d, tag %d: "+
			"wait for sends, cancel receives",
			t.rank, t.ops.Len(), o.kind, o.peer, o.ch, o.tag)
	})
	return err
}
