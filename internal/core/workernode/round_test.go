package workernode

import (
	"strings"
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
)

// A worker that waits at the barrier says so, and a message at a wrong time is our own bug.
func TestAtTheBarrier(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a.w", N: 2}},
		shard.Options{Slice: "range", MaxBytes: 16, Servers: 1, Rules: []string{"*"}, Keys: shard.KeysTensor})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := send.All.Lookup("fifo")
	w := New(0, plan, e.New(send.Options{}), 0)
	w.InRounds()
	step := func(in core.Input) string {
		var kinds []string
		for _, e := range w.Step(in, nil) {
			kinds = append(kinds, e.Kind.String())
		}
		return strings.Join(kinds, " ")
	}
	step(core.Input{Kind: core.Begin})
	step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Reply}})
	step(core.Input{Kind: core.PieceLanded})
	step(core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: 1}})
	if got := step(core.Input{Kind: core.PieceReady}); got != "Send SendPiece" {
		t.Errorf("the last piece of a shard gave %q: no pull may follow it", got)
	}
	step(core.Input{Kind: core.TaskDone})
	step(core.Input{Kind: core.PieceSent})
	if w.AtBarrier() {
		t.Error("at the barrier before the push was acknowledged")
	}
	if got := step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Ack}}); got != "SendBarrier" || !w.AtBarrier() {
		t.Errorf("the acknowledgement gave %q", got)
	}
	if got := step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Release}}); got != "Expect Send" || w.AtBarrier() {
		t.Errorf("the release gave %q", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("a second release was accepted")
		}
	}()
	step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Release}})
}
