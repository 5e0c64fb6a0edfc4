package workernode

import (
	"fmt"
	"slices"
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/coretest"
)

// One worker, three layers, one piece in flight at a time: the next iteration starts as soon as layer 0 and the reply
// of the lead shard are there, while another layer waits to be pushed. What belongs to an exchange follows when it is
// over.
func TestForwardStartsWhileAPushIsHeldBack(t *testing.T) {
	plan := coretest.Layered(t, 3) // shards 0, 1, 2 are layers 2, 0, 1, and so are the pieces
	w := New(0, plan, &coretest.Lowest{}, 0)
	w.StartEarly(func(int) bool { return false })
	step := func(in core.Input) string {
		out := coretest.Text(w.Step(in, nil))
		if err := w.Check(); err != nil {
			t.Fatal(err)
		}
		return out
	}
	reply := func(s int32, iter int64) string {
		landed := step(core.Input{Kind: core.PieceLanded, Piece: s})
		if landed != "" {
			t.Errorf("a piece without its header: %s", landed)
		}
		return step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Reply, Shard: s, Iter: iter, Clock: iter - int64(s)}})
	}
	readable := func(want string) {
		t.Helper()
		if got := fmt.Sprint(w.Readable(0), w.Readable(1), w.Readable(2)); got != want {
			t.Errorf("layers readable %s, want %s: %v", got, want, w)
		}
	}
	same := func(got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	step(core.Input{Kind: core.Begin})
	readable("false false false")
	same(reply(1, 0)+reply(2, 0), "") // before the first iteration all must say where to start
	readable("true true false")
	same(reply(0, 0), "Compute iter=0")
	step(core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: 1}})
	for _, p := range []int32{0, 2, 1} {
		step(core.Input{Kind: core.PieceReady, Piece: p})
	}
	same(step(core.Input{Kind: core.TaskDone}), "")
	same(step(core.Input{Kind: core.PieceSent, Piece: 0}), "SendPiece to=1 p1; Expect shard1; Send to=1 Pull w0 shard1 iter=1")
	same(reply(1, 1), "")
	same(reply(0, 1), "Compute iter=1")
	readable("true false true")
	if w.Iter() != 0 || w.State() != core.Pushing || w.Counts.Started != 2 || w.Writable(2) || !slices.Equal(w.Missing(), []int32(nil)) {
		t.Errorf("%v, %d started, layer 2 writable: %v", w, w.Counts.Started, w.Writable(2))
	}
	same(step(core.Input{Kind: core.PieceSent, Piece: 1}), "SendPiece to=0 p2; Expect shard2; Send to=0 Pull w0 shard2 iter=1")
	same(reply(2, 1), "")
	readable("true true true")
	if w.Iter() != 1 || w.State() != core.Computing || w.reportedClock != 1 || w.Counts.LeadMax != 2 ||
		w.Counts.WaitedLast[2] != 1 || !w.Writable(2) || w.Writable(1) {
		t.Errorf("%v, known %d, lead %d, last %v; layers 1, 2 writable %v %v", w, w.reportedClock, w.Counts.LeadMax,
			w.Counts.WaitedLast, w.Writable(1), w.Writable(2))
	}
	step(core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: 1}})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the gradient of a piece in flight was overwritten")
			}
		}()
		w.Step(core.Input{Kind: core.PieceReady, Piece: 2}, nil)
	}()
	step(core.Input{Kind: core.PieceSent, Piece: 2})
	if !w.Writable(1) {
		t.Error("layer 1 is not writable, though it was sent")
	}
}

// A worker that may be sent past iterations hears all shards that may do so before it starts.
func TestAWorkerStartsNoIterationThatAShardSendsItPast(t *testing.T) {
	plan := coretest.Layered(t, 3)
	w := New(0, plan, coretest.FIFO(), 0)
	w.StartEarly(func(rule int) bool { return rule == 1 }) // shards 1 and 2
	answer := func(s int32, iter int64) string {
		out := w.Step(core.Input{Kind: core.PieceLanded, Piece: s}, nil)
		return coretest.Text(w.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Reply, Shard: s, Iter: iter}}, out))
	}
	w.Step(core.Input{Kind: core.Begin}, nil)
	answer(0, 0)
	answer(1, 0)
	answer(2, 0)
	w.Step(core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: 1}}, nil)
	for p := range int32(3) {
		w.Step(core.Input{Kind: core.PieceReady, Piece: p}, nil)
	}
	w.Step(core.Input{Kind: core.TaskDone}, nil)
	if got := answer(0, 1) + answer(1, 1); got != "" {
		t.Errorf("%s before shard 2 answered", got)
	}
	if got := answer(2, 3); got != "Compute iter=3" {
		t.Errorf("%s, want iteration 3", got)
	}
}
