package link

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"fluentps/internal/comm"
	"fluentps/internal/comm/inproc"
	"fluentps/internal/comm/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// links runs a body on each rank of a world, and returns the first error of each rank.
func links(t *testing.T, n int, body func(l *Link) error) []error {
	t.Helper()
	errs := make([]error, n)
	hosts := make([]string, n)
	for i := range hosts {
		hosts[i] = fmt.Sprint("h", i/2)
	}
	var all sync.WaitGroup
	for i, tr := range inproc.New(n, inproc.Options{}) {
		all.Go(func() {
			l := New(tr, Options{})
			l.Know(hosts)
			if errs[i] = l.Open(); errs[i] == nil {
				errs[i] = body(l)
			}
			if errs[i] != nil {
				tr.Abort(1)
				return
			}
			errs[i] = errors.Join(tr.Barrier(), l.Close(func() {}, func() bool { return true }), tr.Close())
		})
	}
	all.Wait()
	return errs
}

// Each record of a message goes to the handler of its kind, in order, and one batch is one message.
func TestRecordsGoToTheirHandlers(t *testing.T) {
	var got []string
	errs := links(t, 2, func(l *Link) error {
		l.HandleHeader(wire.Push, func(h *wire.Header) { got = append(got, fmt.Sprint("push ", h.Iter)) })
		l.HandleHeader(wire.Pull, func(h *wire.Header) { got = append(got, fmt.Sprint("pull ", h.Iter)) })
		l.Handle(wire.PushPiece, func(from int, m *wire.Record) {
			got = append(got, fmt.Sprint(from, " piece ", m.Piece, string(m.Data)))
		})
		if err := l.t.Barrier(); err != nil {
			return err
		}
		if l.me == 0 {
			l.Begin()
			l.Send(1, &wire.Header{Kind: wire.Push, Iter: 7})
			l.SendInline(1, wire.PushPiece, 3, []byte("abcd"))
			l.Send(1, &wire.Header{Kind: wire.Pull, Iter: 8})
			l.End()
			return l.Drive(l.Idle)
		}
		return l.Drive(func() bool { return len(got) == 3 })
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(got, ", "); text != "push 7, 0 piece 3abcd, pull 8" {
		t.Errorf("got %s", text)
	}
}

// A message without a handler ends the run with an error, not with a nil pointer.
func TestAMessageWithoutAHandlerEndsTheRun(t *testing.T) {
	errs := links(t, 2, func(l *Link) error {
		if l.me == 0 {
			l.Send(1, &wire.Header{Kind: wire.Push})
			return l.Drive(func() bool { return false })
		}
		return l.Drive(func() bool { return false })
	})
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "control message of rank 0: a push, which this rank does not expect") {
		t.Errorf("rank 1: %v", errs[1])
	}
	var aborted *comm.AbortError
	if !errors.As(errs[0], &aborted) {
		t.Errorf("rank 0: %v", errs[0])
	}
}

func TestASecondHandlerIsABug(t *testing.T) {
	l := New(inproc.New(1, inproc.Options{})[0], Options{})
	l.Handle(wire.Push, func(int, *wire.Record) {})
	defer func() {
		if recover() == nil {
			t.Error("a second handler for push was accepted")
		}
	}()
	l.Handle(wire.Push, func(int, *wire.Record) {})
}

// If one rank finds a problem, all ranks return the same error, which names the rank and its host.
func TestAllRanksReturnTheErrorOfOne(t *testing.T) {
	errs := links(t, 3, func(l *Link) error {
		all, err := Gather(l, l.me*l.me)
		if err != nil {
			return err
		}
		if l.me == 0 && fmt.Sprint(all) != "[0 1 4]" || l.me > 0 && all != nil {
			return fmt.Errorf("gathered %v", all)
		}
		value := 10 * l.me
		if l.me == 0 {
			value = 42
		}
		if err := Spread(l, &value); err != nil || value != 42 {
			return fmt.Errorf("spread %d, %w", value, err)
		}
		if err := l.Agree(nil, 3); err != nil {
			return err
		}
		var mine error
		if l.me == 2 {
			mine = errors.New("the disk is gone")
		}
		var agreed *ExitError
		if err := l.Agree(mine, 3); !errors.As(err, &agreed) || agreed.Code != 3 ||
			agreed.Text != "the disk is gone\n  (only on rank 2, host h1; the other 2 of 3 ranks are fine)" {
			return fmt.Errorf("rank %d: %w", l.me, err)
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
}

// Bytes to ranks of other hosts are counted separately.
func TestTrafficBetweenHosts(t *testing.T) {
	l := New(inproc.New(4, inproc.Options{})[1], Options{})
	l.Know([]string{"a", "a", "b", "a"})
	for to, n := range []int{10, 1, 100, 1000} {
		l.Sent(to, n)
	}
	if l.Traffic.Sent != 1111 || l.Traffic.Between != 100 {
		t.Errorf("%+v", l.Traffic)
	}
}
