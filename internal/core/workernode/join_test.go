package workernode

import (
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/coretest"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
	"fluentps/ps/scheme"
)

// A worker that comes back asks with the message Joined, and starts at the largest iteration that it is told.
func TestAJoiningWorkerTakesTheLargestIteration(t *testing.T) {
	plan := coretest.ThreeShards(t)
	e, _ := send.All.Lookup("fifo")
	w := NewJoining(1, plan, e.New(send.Options{}), 1, 2)
	joined := 0
	for _, ef := range w.Step(core.Input{Kind: core.Begin}, nil) {
		if ef.Kind == core.Send {
			joined++
			if ef.Msg.Kind != wire.Joined || ef.Msg.Worker != 1 || ef.Msg.Iter != 2 || ef.Msg.Clock != 1 {
				t.Errorf("sends %v", ef)
			}
		}
	}
	if joined != 2 || w.Check() != nil {
		t.Errorf("told %d servers of 2, %v", joined, w.Check())
	}
	for s, iter := range []int64{3, 6, 5} {
		for _, p := range plan.Shards[s].Pieces {
			w.Step(core.Input{Kind: core.PieceLanded, Piece: p.ID}, nil)
		}
		w.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Reply, Worker: 1, Shard: int32(s), Iter: iter}}, nil)
	}
	if w.Iter() != 6 || w.State() != core.Computing {
		t.Errorf("continues at %d, want 6", w.Iter())
	}
}

// While a worker that came back is being answered, others may push, and a version is published to it at once. The
// worker receives that version when nothing is missing of the reply: before, it could not tell which of the two a piece
// belongs to.
func TestAVersionIsPublishedToAWorkerThatIsBeingAnswered(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 2}}, shard.Options{Slice: "even", MaxBytes: 4, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	reply := core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Reply, Iter: 2, Version: 4, Clock: 1}}
	published := core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Publish, Iter: 2, Version: 5, Clock: 2}}
	first, second := core.Input{Kind: core.PieceLanded, Piece: 0}, core.Input{Kind: core.PieceLanded, Piece: 1}
	for _, order := range [][]core.Input{
		{reply, first, published, second},
		{reply, published, second, first},
		{published, first, second, reply}, // control messages overtake
	} {
		w := NewJoining(0, plan, coretest.FIFO(), 1, 2)
		w.KeepCopies(func(int) inturn.Copy {
			return inturn.CopyOf("essp", scheme.Common{}, &scheme.ESSPParams{Staleness: 1}, 2)
		})
		step := func(in core.Input) string {
			t.Helper()
			out := coretest.Text(w.Step(in, nil))
			if err := w.Check(); err != nil {
				t.Fatal(err)
			}
			return out
		}
		step(core.Input{Kind: core.Begin})
		for i, in := range order {
			want := ""
			if i == len(order)-1 {
				want = "ExpectBeside shard0; Compute iter=2"
			}
			if got := step(in); got != want {
				t.Errorf("%v: %v gives %q, want %q", order, in, got, want)
			}
		}
		step(second)
		step(first)
		step(core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: 4}})
		step(core.Input{Kind: core.PieceReady, Piece: 1})
		if got, want := step(core.Input{Kind: core.PieceReady, Piece: 0}),
			"SendPiece to=0 p0; Keep shard0 slot0; Adopt shard0; AddLocal shard0 += 0.5*0.25*slot0; Send to=0 Taken w0 "+
				"shard0 version=5"; got != want {
			t.Errorf("%v: pushed: %q, want %q", order, got, want)
		}
	}
}
