//go:build mpi

package mpi

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"fluentps/internal/comm"
	"fluentps/internal/comm/commtest"
	"fluentps/internal/comm/mpi/mpitest"
)

// The tests start this binary again under mpirun. childVar tells such a process which test it is a child of.
const childVar = "FLUENTPS_MPI_TEST"

var world comm.Transport // this process's rank, in a child

func init() {
	if os.Getenv(childVar) != "" {
		runtime.LockOSThread() // also for a launcher that UnderLauncher does not know
	}
}

// TestMain runs the tests named TestRank* in children, all others in the process that go test
// started.
func TestMain(m *testing.M) {
	flag.Parse()
	switch os.Getenv(childVar) {
	case "":
		skip := "^TestRank"
		if given := flag.Lookup("test.skip").Value.String(); given != "" {
			skip += "|" + given
		}
		flag.Set("test.skip", skip)
		os.Exit(m.Run())
	case "conformance":
		flag.Set("test.run", "^TestRank")
		start()
		if rc := m.Run(); rc != 0 {
			world.Abort(rc)
		}
		stop()
	case "cuda":
		start()
		printCUDA()
		stop()
	case "short":
		start()
		shareScarceMemory()
		stop()
	case "windows":
		start()
		cycleWindows()
		stop()
	case "apart":
		start()
		shareAcrossNamespaces()
		stop()
	case "full":
		start()
		sendWithFullMemory()
		stop()
	default:
		start()
		endWorld(os.Getenv(childVar))
	}
}

func start() {
	var err error
	if world, err = Init(Options{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func stop() {
	if err := world.Close(); errors.Is(err, comm.ErrStuck) {
		world.Abort(0)
	} else if err != nil {
		fmt.Fprintln(os.Stderr, err)
		world.Abort(1)
	}
	os.Exit(0)
}

// endWorld brings the world down in one of many ways, from its last rank, while the others wait.
func endWorld(how string) {
	last := world.Rank() == world.Size()-1
	if last {
		switch how {
		case "abort":
			world.Abort(7)
		case "abort in handler":
			world.Post(func() { world.Abort(9) })
		case "abort elsewhere":
			go world.Abort(11) // while this goroutine polls
		case "panic":
			panic("end of the world")
		case "kill":
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
		case "close in flight":
			b, _ := world.Alloc(8)
			world.Irecv(comm.AnyPeer, comm.Ctl, 3, b, 0, 8, nil)
			err := world.Close()
			fmt.Fprintln(os.Stderr, err)
			world.Abort(13)
		}
	}
	err := world.Drive(func() bool { return false })
	fmt.Fprintln(os.Stderr, "Drive returned", err)
	world.Abort(99)
}

// launch starts the ranks of a job from this binary and returns the exit code and their output.
func launch(t *testing.T, j mpitest.Job, child string) (int, string) {
	t.Helper()
	j.Env, j.Program = append(j.Env, childVar+"="+child), []string{os.Args[0]}
	if testing.Verbose() {
		j.Program = append(j.Program, "-test.v")
	}
	return mpitest.Built.Run(t, j)
}

func TestConformance(t *testing.T) {
	for n := 2; n <= mpitest.Built.Ranks(6); n++ {
		t.Run(fmt.Sprintf("ranks=%d", n), func(t *testing.T) {
			rc, out := launch(t, mpitest.Job{Ranks: n}, "conformance")
			if passed := strings.Count(out, "PASS\n"); rc != 0 || passed < n {
				t.Fatalf("mpirun ended with %d, %d of %d ranks passed:\n%s", rc, passed, n, out)
			}
			if testing.Verbose() {
				t.Log(out)
			}
		})
	}
}

// Between hosts messages go by TCP, with other eager limits and another order of completion.
func TestConformanceOverTCP(t *testing.T) {
	rc, out := launch(t, mpitest.Job{Ranks: 3, OverTCP: true}, "conformance")
	if passed := strings.Count(out, "PASS\n"); rc != 0 || passed < 3 {
		t.Fatalf("mpirun ended with %d, %d of 3 ranks passed:\n%s", rc, passed, out)
	}
}

func TestEndOfWorld(t *testing.T) {
	for _, c := range []struct {
		how  string
		code int // of mpirun; -1 for any but 0: the launcher's choice
		want string
	}{
		{"abort", 7, ""},
		{"abort in handler", 9, ""},
		{"abort elsewhere", 11, ""},
		{"panic", -1, "panic: end of the world"},
		{"kill", -1, ""},
		{"close in flight", 13, "1 operations in flight, among them a receive from rank -1, channel 0, tag 3"},
	} {
		t.Run(c.how, func(t *testing.T) {
			t.Parallel()                                       // they mostly wait for mpirun to notice
			rc, out := launch(t, mpitest.Job{Ranks: 3}, c.how) // they mostly wait for mpirun to notice
			if rc == 0 || c.code >= 0 && rc != c.code || !strings.Contains(out, c.want) {
				t.Errorf("mpirun ended with %d, want %d (-1: any but 0) and %q in:\n%s", rc, c.code, c.want, out)
			}
		})
	}
}

func TestInitNeedsMainThread(t *testing.T) {
	err := errors.New("not called")
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // with the test's goroutine locked too, neither is surely off main
		if syscall.Gettid() == syscall.Getpid() {
			inner := make(chan struct{})
			go func() { defer close(inner); _, err = Init(Options{}) }()
			<-inner
			return
		}
		_, err = Init(Options{})
	}()
	<-done
	if err == nil || !strings.Contains(err.Error(), "main thread") {
		t.Fatalf("Init off the main thread: %v", err)
	}
}

func TestLibrary(t *testing.T) {
	if got := Library(); !strings.HasPrefix(got, mpitest.Built.Name+" ") || strings.ContainsAny(got, "\n\t") {
		t.Fatalf("Library is %q", got)
	}
}

func TestRankConformance(t *testing.T) { commtest.Rank(t, world, commtest.All()) }

func TestRankHeartbeats(t *testing.T) { commtest.Rank(t, world, commtest.Beats()) }

func TestRankMatches(t *testing.T) { commtest.Rank(t, world, commtest.Matches()) }

func TestRankSums(t *testing.T) { commtest.Rank(t, world, commtest.Sums()) }

func TestRankMessagesDoNotAllocate(t *testing.T) {
	commtest.Rank(t, world, []commtest.Case{commtest.Allocations()})
}

// A window that does not fit into a pool fails on all ranks alike, and costs nothing.
func TestRankWindowTooLarge(t *testing.T) {
	tr := world.(*transport)
	_, before, _ := tr.pool.Usage()
	n, last := 100, tr.size-1
	if tr.rank == last {
		n = 1 << 40
	}
	_, err := tr.Shared(n)
	want := fmt.Sprintf("rank %d cannot have %d bytes of its pool", last, 1<<40)
	if !errors.Is(err, comm.ErrNoMemory) || !strings.Contains(err.Error(), want) {
		t.Errorf("Shared: %v, want %q", err, want)
	}
	if _, after, _ := tr.pool.Usage(); after != before {
		t.Errorf("%d bytes in use after the failure, %d before it", after, before)
	}
}

func TestRankInitOnce(t *testing.T) {
	if _, err := Init(Options{}); err == nil || !strings.Contains(err.Error(), "once per process") {
		t.Errorf("second Init: %v", err)
	}
}

// Ranks of one host read one clock: the measured offset must be 0.
func TestRankClock(t *testing.T) {
	tr := world.(*transport)
	if me, n := tr.NodeRank(); me != tr.rank || n != tr.size {
		t.Errorf("NodeRank %d of %d on one host, want %d of %d", me, n, tr.rank, tr.size)
	}
	offset, err := tr.clockOffset()
	if err != nil || offset != 0 {
		t.Errorf("offset to rank 0 on the same host is %d ns, error %v", offset, err)
	}
}

// Control messages to a rank that does not look stay with their sender once the bound is reached; in the end all
// arrive, in order.
func TestRankBacklogIsBounded(t *testing.T) {
	const count, size, ring = 5000, 4096, 8
	const growthMax = 8 << 20 // all messages together would take 20 MiB
	looking, err := world.Shared(64)
	if err != nil {
		t.Fatal(err)
	}
	now := (*atomic.Uint32)(unsafe.Pointer(&looking.Of(0).Bytes()[0]))
	before := residentBytes(t)
	bounded := func() {
		for range 1000 {
			world.Tick()
		}
		if grown := residentBytes(t) - before; grown > growthMax {
			t.Errorf("rank %d grew by %d bytes, at most %d", world.Rank(), grown, growthMax)
		}
	}
	b, err := world.Alloc(8*count + size)
	if err != nil {
		t.Fatal(err)
	}
	done := 0
	switch world.Rank() {
	case 0:
		for i := range count {
			binary.LittleEndian.PutUint64(b.Bytes()[8*i:], uint64(i))
			world.Isend(1, comm.Ctl, 77, b, 8*i, size, func(comm.Done) { done++ })
		}
		bounded()
		if done > comm.BacklogMax {
			t.Errorf("%d sends are complete, at most %d may be", done, comm.BacklogMax)
		}
		now.Store(1)
	case 1:
		for now.Load() == 0 {
			time.Sleep(time.Millisecond) // no progress here
		}
		bounded()
		var listen func(i int)
		listen = func(i int) {
			world.Irecv(0, comm.Ctl, 77, b, size*(i%ring), size, func(d comm.Done) {
				if got := binary.LittleEndian.Uint64(b.Bytes()[size*(i%ring):]); d.Err != nil || d.N != size || got != uint64(i) {
					t.Errorf("message %d arrived as %d: %+v", i, got, d)
				}
				if done++; i+ring < count {
					listen(i + ring)
				}
			})
		}
		for i := range ring {
			listen(i)
		}
	default:
		done = count
	}
	if err := world.Drive(func() bool { return done == count }); err != nil {
		t.Fatal(err)
	}
	if err := looking.Free(); err != nil {
		t.Fatal(err)
	}
	b.Free()
}

func residentBytes(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	var total, resident int
	if _, err := fmt.Sscan(string(text), &total, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * os.Getpagesize()
}

// A rank lets Go reschedule its goroutine again and again: while it waits, and while messages come all the time.
func TestRankRests(t *testing.T) {
	const rests, most = 3, 20 * time.Second
	tr := world.(*transport)
	before := tr.rests
	enough := func() bool { return tr.rests-before >= rests }
	over := false
	timer := time.AfterFunc(most, func() { world.Post(func() { over = true }) })
	if err := world.Drive(func() bool { return enough() || over }); err != nil || over {
		t.Errorf("a rank that waits has not rested %d times in %v, error %v", rests, most, err)
	}
	timer.Stop()
	before = tr.rests
	for from := world.Now(); !enough() && world.Now()-from < most; {
		world.Tick()
	}
	if !enough() {
		t.Errorf("a rank that looks all the time has not rested %d times in %v", rests, most)
	}
	if err := world.Barrier(); err != nil {
		t.Fatal(err)
	}
}

// A message wakes a rank of the same host that sleeps. Without that it would see the message when its sleep is over.
func TestRankMessagesWake(t *testing.T) {
	const rounds, pause = 40, 30 * time.Millisecond
	if world.Size() < 2 {
		t.Skip("a single rank")
	}
	b, err := world.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	woken := world.(*transport).woken
	for i := range rounds {
		done := world.Rank() > 1
		switch world.Rank() {
		case 0:
			time.Sleep(pause)
			world.Isend(1, comm.Ctl, 78, b, 0, 64, func(comm.Done) { done = true })
		case 1:
			world.Irecv(0, comm.Ctl, 78, b, 0, 64, func(comm.Done) { done = true })
		}
		if err := world.Drive(func() bool { return done }); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
	if woken = world.(*transport).woken - woken; world.Rank() == 1 && woken < rounds/2 {
		t.Errorf("%d of %d messages woke this rank", woken, rounds)
	}
	b.Free()
	if err := world.Barrier(); err != nil {
		t.Fatal(err)
	}
}
