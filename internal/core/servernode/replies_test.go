package servernode

import (
	"fmt"
	"slices"
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
)

// A server that has three replies for a worker sends first what the worker needs first, whatever it was asked for
// first. A piece in flight is not interrupted, and a reply is over when its last piece has left.
func TestRepliesOfTheFirstLayersOvertake(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 3}, {Name: "b", Layer: 1, N: 2}, {Name: "c", Layer: 2, N: 2}},
		shard.Options{Slice: "layer", MaxBytes: 4, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	order, _ := send.All.Lookup("priority")
	schemes := map[int32]inturn.ShardScheme{}
	for id := range int32(3) {
		schemes[id] = mustScheme(rule{name: "asp"}, []int32{id}, 0, 2)
	}
	s := New(Config{Plan: plan, Workers: 2, Schemes: schemes, Send: order.Reply(send.Options{Spec: send.Spec{Window: 4}})})
	var log []string
	var flying []int32
	step := func(in core.Input) {
		for _, e := range s.Step(in, nil) {
			switch {
			case e.Kind == core.Reply && e.Apart:
				log = append(log, fmt.Sprintf("w%d shard%d", e.To, e.Shard))
			case e.Kind == core.ReplyPiece:
				log = append(log, fmt.Sprintf("w%d p%d", e.To, e.Piece))
				if e.To == 0 {
					flying = append(flying, e.Piece)
				}
			default:
				t.Fatalf("%v: %v", in, e)
			}
		}
		if err := s.Check(); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []int32{2, 1, 0} {
		step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Pull, Shard: id}})
	}
	step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Pull, Shard: 1, Worker: 1}}) // nothing is in flight to the other worker
	for len(flying) > 0 {
		p := flying[0]
		flying = flying[1:]
		step(core.Input{Kind: core.ReplyPieceSent, Piece: p})
	}
	want := []string{"w0 shard2", "w0 p5", "w0 shard1", "w0 shard0", "w1 shard1", "w1 p3", "w0 p0", "w0 p1", "w0 p2",
		"w0 p3", "w0 p4", "w0 p6"}
	if !slices.Equal(log, want) {
		t.Errorf("sent %v\nwant %v", log, want)
	}
	if got := s.shards[2].peers[0].replyBuf; got != -1 {
		t.Errorf("all has left, and buffer %d is still in flight", got)
	}
}
