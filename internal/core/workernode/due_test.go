package workernode

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/coretest"
	"fluentps/internal/core/inturn"
	"fluentps/ps/scheme"
)

// Each shard continues where its own server says. A shard that is sent past exchanges pushes the next one that it was
// let into; the others, and the worker, count on without a gap. When the worker leaves, each server is told what all of
// its shards have pushed.
func TestAShardIsSentPastItsOwnExchanges(t *testing.T) {
	plan := coretest.Layered(t, 2)
	w := New(0, plan, coretest.FIFO(), 0)
	w.SetDue(func(int32, int64) bool { return true }, []int64{0, 2})
	out := w.Step(core.Input{Kind: core.Begin}, nil)
	answer := func(into [2]int64, flags uint8) {
		for s := range plan.Shards {
			for _, p := range plan.Shards[s].Pieces {
				out = w.Step(core.Input{Kind: core.PieceLanded, Piece: p.ID}, out)
			}
			m := wire.Header{Kind: wire.Reply, Shard: int32(s), Iter: into[s]}
			if s == 0 {
				m.Flags = flags
			}
			out = w.Step(core.Input{Kind: core.Arrived, Msg: m}, out)
		}
	}
	iterate := func() {
		out = w.Step(core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: 1}}, out)
		for _, p := range plan.Pieces {
			out = w.Step(core.Input{Kind: core.PieceReady, Piece: p.ID}, out)
		}
		out = w.Step(core.Input{Kind: core.TaskDone}, out)
		for _, p := range plan.Pieces {
			out = w.Step(core.Input{Kind: core.PieceSent, Piece: p.ID}, out)
		}
	}
	answer([2]int64{0, 2}, 0)
	iterate()
	answer([2]int64{5, 3}, 0)
	iterate()
	answer([2]int64{6, 4}, wire.Stop)
	var got []string
	for _, e := range out {
		if e.Kind == core.Compute || e.Kind == core.Send && (e.Msg.Kind == wire.Push || e.Msg.Kind == wire.Pull) {
			got = append(got, strings.Split(e.String(), " seen")[0])
		} else if e.Kind == core.Send {
			got = append(got, fmt.Sprintf("Left to=%d iter=%d", e.To, e.Msg.Iter))
		}
	}
	home := func(s int) int32 { return plan.Shards[s].Server }
	want := []string{
		fmt.Sprintf("Send to=%d Pull w0 shard0 iter=0", home(0)), fmt.Sprintf("Send to=%d Pull w0 shard1 iter=2", home(1)), "Compute iter=0",
		fmt.Sprintf("Send to=%d Push w0 shard0 iter=0", home(0)), fmt.Sprintf("Send to=%d Pull w0 shard0 iter=1", home(0)),
		fmt.Sprintf("Send to=%d Push w0 shard1 iter=2", home(1)), fmt.Sprintf("Send to=%d Pull w0 shard1 iter=3", home(1)), "Compute iter=1",
		fmt.Sprintf("Send to=%d Push w0 shard0 iter=5", home(0)), fmt.Sprintf("Send to=%d Pull w0 shard0 iter=6", home(0)),
		fmt.Sprintf("Send to=%d Push w0 shard1 iter=3", home(1)), fmt.Sprintf("Send to=%d Pull w0 shard1 iter=4", home(1)),
	}
	left := map[int32]int64{home(0): 6}
	if home(1) == home(0) {
		left[home(0)] = 4
	} else {
		left[home(1)] = 4
	}
	for m := range int32(plan.Servers) {
		want = append(want, fmt.Sprintf("Left to=%d iter=%d", m, left[m]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the worker does\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// idle is a Work that assigns nothing.
type idle struct{}

func (idle) Step(_ core.WorkEvent, out []core.Order) []core.Order { return out }

// Exchange clocks and work policies refuse settings that they do not go with.
func TestAxesRefuseIncompatibleSettings(t *testing.T) {
	due, work := func(int32, int64) bool { return true }, idle{}
	for what, do := range map[string]func(w *Worker){
		"clocks and rounds": func(w *Worker) { w.InRounds(); w.SetDue(due, nil) },
		"clocks and work":   func(w *Worker) { w.SetWork(work, 2); w.SetDue(due, nil) },
		"clocks and copies": func(w *Worker) {
			w.KeepCopies(func(int) inturn.Copy { return inturn.Copy{Kind: scheme.Cached} })
			w.SetDue(due, nil)
		},
		"work and rounds":         func(w *Worker) { w.InRounds(); w.SetWork(work, 2) },
		"work and an early start": func(w *Worker) { w.StartEarly(func(int) bool { return false }); w.SetWork(work, 2) },
		"work and copies": func(w *Worker) {
			w.KeepCopies(func(int) inturn.Copy { return inturn.Copy{Kind: scheme.Cached} })
			w.SetWork(work, 2)
		},
		"work and shared memory": func(w *Worker) { w.ShareMemory(func(int32) bool { return true }); w.SetWork(work, 2) },
		"clocks, nothing else":   nil,
	} {
		func() {
			defer func() {
				if got := recover() != nil; got != (do != nil) {
					t.Errorf("%s: refused: %v", what, got)
				}
			}()
			w := New(0, coretest.ThreeShards(t), coretest.FIFO(), 0)
			if do == nil {
				w.SetDue(due, []int64{3, 4, 5})
				return
			}
			do(w)
		}()
	}
}

// A worker that comes back finds the iteration from the exchanges that the shards let it into: where the shards are exchanged in turn,
// all of them are then due as for the others, and the numbers of the exchanges follow.
func TestAWorkerComesBackInTheTurnOfTheOthers(t *testing.T) {
	plan := coretest.ThreeShards(t)
	n := int64(len(plan.Shards))
	due := func(s int32, iter int64) bool { return iter%n == int64(s) }
	clock := func(s int32, iter int64) int64 { return (iter + n - 1 - int64(s)) / n }
	for start := range int64(7) {
		for others := start; others < start+11; others++ {
			turns := make([]int64, n)
			for s := range turns {
				turns[s] = clock(int32(s), start)
			}
			w := NewJoining(0, plan, coretest.FIFO(), 1, start)
			w.SetDue(due, turns)
			out := w.Step(core.Input{Kind: core.Begin}, nil)
			for s := range plan.Shards {
				for _, p := range plan.Shards[s].Pieces {
					out = w.Step(core.Input{Kind: core.PieceLanded, Piece: p.ID}, out)
				}
				out = w.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Reply, Shard: int32(s), Iter: clock(int32(s), others)}}, out)
			}
			if w.State() != core.Computing || w.Iter() != others {
				t.Fatalf("from iteration %d, beside workers at %d: %v", start, others, w)
			}
			for s := range int32(n) {
				if due(s, others) && w.exchangeIter(s) != clock(s, others) || w.isResting(s) == due(s, others) {
					t.Fatalf("from iteration %d, beside workers at %d: shard %d is at exchange %d, resting: %v", start, others, s,
						w.exchangeIter(s), w.isResting(s))
				}
			}
		}
	}
}
