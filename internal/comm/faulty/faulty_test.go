package faulty

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"fluentps/internal/comm"
	"fluentps/internal/comm/commtest"
	"fluentps/internal/comm/inproc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestConformance(t *testing.T) {
	for _, c := range []struct {
		delay int
		cases []commtest.Case
		sizes []int
	}{
		{0, commtest.Order(), []int{2}},
		{3, commtest.All(), []int{3}},
		{200, commtest.Order(), []int{1, 4}},
	} {
		t.Run(fmt.Sprintf("delay=%d", c.delay), func(t *testing.T) {
			commtest.Run(t, c.cases, func(_ *testing.T, n int) []comm.Transport {
				return Wrap(inproc.New(n, inproc.Options{}), Options{Seed: 5, DelayMax: c.delay})
			}, c.sizes...)
		})
	}
}

func TestAbort(t *testing.T) {
	commtest.Abort(t, func(_ *testing.T, n int) []comm.Transport {
		return Wrap(inproc.New(n, inproc.Options{}), Options{Seed: 6, DelayMax: 50})
	})
}

// arrivals sends the numbers 0 to 9 on each of 8 tags to itself, and returns the messages as tag*10+number, in order of
// arrival.
func arrivals(t *testing.T, o Options) []int {
	tr := New(inproc.New(1, inproc.Options{})[0], o)
	b, err := tr.Alloc(100)
	if err != nil {
		t.Fatal(err)
	}
	var got []int
	sent := 0
	for number := range 10 {
		for tag := range 8 {
			tr.Irecv(0, comm.Ctl, uint32(tag), b, 0, 100, func(d comm.Done) { got = append(got, tag*10+d.N) })
			tr.Isend(0, comm.Ctl, uint32(tag), b, 0, number, func(comm.Done) { sent++ })
		}
	}
	if err := tr.Drive(func() bool { return len(got) == 80 && sent == 80 }); err != nil {
		t.Fatal(err)
	}
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
	return got
}

func TestSeedDecidesTheOrder(t *testing.T) {
	first := arrivals(t, Options{Seed: 1, DelayMax: 20})
	if postTurn := arrivals(t, Options{Seed: 1, DelayMax: 20}); !slices.Equal(first, postTurn) {
		t.Errorf("the same seed gave\n%v then\n%v", first, postTurn)
	}
	if other := arrivals(t, Options{Seed: 2, DelayMax: 20}); slices.Equal(first, other) {
		t.Errorf("two seeds gave the same order %v", first)
	}
	plain := arrivals(t, Options{})
	if slices.Equal(first, plain) {
		t.Errorf("nothing overtook anything: %v", first)
	}
	for tag := range 8 {
		var numbers []int
		for _, v := range first {
			if v/10 == tag {
				numbers = append(numbers, v%10)
			}
		}
		if !slices.IsSorted(numbers) || len(numbers) != 10 {
			t.Errorf("tag %d arrived as %v", tag, numbers)
		}
	}
}

func TestDroppedRankFallsSilent(t *testing.T) {
	tr := New(inproc.New(1, inproc.Options{})[0], Options{DelayMax: 3, Drop: &Drop{Rank: 0, AfterSend: 2}})
	sent, got := 0, 0
	var pending []comm.Op
	for range 5 {
		pending = append(pending, tr.Irecv(comm.AnyPeer, comm.Ctl, 1, nil, 0, 0, func(d comm.Done) {
			if d.Err == nil {
				got++
			}
		}))
		tr.Isend(0, comm.Ctl, 1, nil, 0, 0, func(d comm.Done) { sent++ })
	}
	if err := tr.Close(); err == nil || !strings.Contains(err.Error(), "5 sends held back") {
		t.Errorf("Close: %v", err)
	}
	if err := tr.Drive(func() bool { return sent == 5 }); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		tr.Tick()
	}
	if got != 2 {
		t.Errorf("%d of 5 messages arrived, want 2", got)
	}
	for _, op := range pending {
		tr.Cancel(op)
	}
	tr.Tick()
	if err := tr.Close(); err != nil {
		t.Error(err)
	}
}

func TestDroppedRankAborts(t *testing.T) {
	world := Wrap(inproc.New(2, inproc.Options{}), Options{Drop: &Drop{Rank: 1, AfterSend: 1, Code: 3}})
	sent := 0
	for range 2 {
		world[1].Isend(0, comm.Ctl, 1, nil, 0, 0, func(comm.Done) { sent++ })
	}
	for rank, tr := range world {
		err := tr.Drive(func() bool { return false })
		var abort *comm.AbortError
		if !errors.As(err, &abort) || *abort != (comm.AbortError{Rank: 1, Code: 3}) {
			t.Errorf("rank %d: Drive: %v", rank, err)
		}
	}
}
