package inproc

import (
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"fluentps/internal/comm"
	"fluentps/internal/comm/commtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newWorld(_ *testing.T, n int) []comm.Transport { return New(n, Options{}) }

func TestConformance(t *testing.T) { commtest.Run(t, commtest.All(), newWorld, 1, 2, 3, 4, 5, 6) }

func TestHeartbeats(t *testing.T) { commtest.Run(t, commtest.Beats(), newWorld, 1, 2, 3, 5) }

func TestMatches(t *testing.T) { commtest.Run(t, commtest.Matches(), newWorld, 1, 2, 3) }

func TestSums(t *testing.T) { commtest.Run(t, commtest.Sums(), newWorld, 1, 2, 3, 5) }

// With room for two copies only, almost every short message takes the path of long ones.
func TestConformanceWithoutEager(t *testing.T) {
	commtest.Run(t, commtest.All(), func(_ *testing.T, n int) []comm.Transport { return New(n, Options{EagerMax: 2}) }, 3)
}

// Ranks of two hosts see the segments of their own host only.
func TestConformanceOnTwoHosts(t *testing.T) {
	commtest.Run(t, commtest.All(), func(_ *testing.T, n int) []comm.Transport { return New(n, Options{Hosts: []int{3, 1, 3, 1, 1}}) }, 5)
}

func TestAbort(t *testing.T) { commtest.Abort(t, newWorld) }

// A receiver that does not look keeps eagerMax copies; further sends wait, and none is lost.
func TestBacklogIsBounded(t *testing.T) {
	const limit, count = 10, 35
	ranks := New(2, Options{EagerMax: limit})
	out, _ := ranks[0].Alloc(1)
	in, _ := ranks[1].Alloc(1)
	sent, got := 0, 0
	for range count {
		ranks[0].Isend(1, comm.Ctl, 1, out, 0, 1, func(comm.Done) { sent++ })
	}
	for range 10 {
		ranks[0].Tick()
	}
	if sent != limit {
		t.Fatalf("%d sends completed without a receiver, want %d", sent, limit)
	}
	for range count {
		ranks[1].Irecv(0, comm.Ctl, 1, in, 0, 1, func(comm.Done) { got++ })
	}
	if err := ranks[1].Drive(func() bool { return got == count }); err != nil {
		t.Fatal(err)
	}
	if err := ranks[0].Drive(func() bool { return sent == count }); err != nil {
		t.Fatal(err)
	}
	end(t, ranks, "", "")
}

// A long send completes only when it is matched, so a forgotten receive shows.
func TestLongSendWaitsForItsReceive(t *testing.T) {
	ranks := New(1, Options{})
	b, _ := ranks[0].Alloc(2 * comm.CtlMax)
	sent := false
	ranks[0].Isend(0, comm.Data, 1, b, 0, comm.CtlMax+1, func(comm.Done) { sent = true })
	for range 10 {
		ranks[0].Tick()
	}
	if sent {
		t.Fatal("a long send completed without a receive")
	}
	if err := ranks[0].Close(); err == nil ||
		!strings.Contains(err.Error(), "1 operations in flight, among them a send to rank 0, channel 1, tag 1") {
		t.Fatalf("Close: %v", err)
	}
	ranks[0].Irecv(comm.AnyPeer, comm.Data, 1, b, 0, 2*comm.CtlMax, nil)
	if err := ranks[0].Drive(func() bool { return sent }); err != nil {
		t.Fatal(err)
	}
	end(t, ranks, "")
}

func TestCloseReportsUnreceived(t *testing.T) {
	ranks := New(2, Options{})
	sent := 0
	for range 3 {
		ranks[0].Isend(1, comm.Ctl, 8, nil, 0, 0, func(comm.Done) { sent++ })
	}
	if err := ranks[0].Drive(func() bool { return sent == 3 }); err != nil {
		t.Fatal(err)
	}
	end(t, ranks, "", "rank 1 closes with 3 messages that nobody received, among them one of 0 bytes from rank 0 on channel 0, tag 8")
}

func TestClosedIsClosed(t *testing.T) {
	ranks := New(1, Options{})
	end(t, ranks, "")
	never := func() bool { t.Error("until was called"); return true }
	for _, err := range []error{ranks[0].Drive(never), ranks[0].Barrier(), ranks[0].Close()} {
		if !errors.Is(err, comm.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
	if _, err := ranks[0].Alloc(1); !errors.Is(err, comm.ErrClosed) {
		t.Errorf("Alloc after Close: %v", err)
	}
}

func TestDriveInsideHandlerPanics(t *testing.T) {
	ranks := New(1, Options{})
	var got any
	ranks[0].Post(func() {
		defer func() { got = recover() }()
		ranks[0].Barrier()
	})
	ranks[0].Tick()
	if text, _ := got.(string); !strings.Contains(text, "Drive on rank 0 inside a handler") {
		t.Fatalf("panic %v", got)
	}
}

func TestPoolLimitIsTheWorlds(t *testing.T) {
	ranks := New(2, Options{PoolMax: 1 << 20})
	b, err := ranks[0].Alloc(1 << 19)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ranks[1].Alloc(1<<19 + 1); !errors.Is(err, comm.ErrNoMemory) {
		t.Fatalf("error %v", err)
	}
	b.Free()
	end(t, ranks, "", "")
}

// end closes all ranks; want is what each error must contain, "" for none.
func end(t *testing.T, ranks []comm.Transport, want ...string) {
	t.Helper()
	errs := make([]error, len(ranks))
	done := make(chan struct{})
	for i := range ranks {
		go func() {
			errs[i] = ranks[i].Close()
			done <- struct{}{}
		}()
	}
	for range ranks {
		<-done
	}
	for i, err := range errs {
		if err == nil && want[i] != "" || err != nil && (want[i] == "" || !strings.Contains(err.Error(), want[i])) {
			t.Errorf("Close of rank %d: %v, want %q", i, err, want[i])
		}
	}
}
