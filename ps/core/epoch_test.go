package core

import (
	"strings"
	"testing"

	"fluentps/comm/wire"
	"fluentps/ps/send"
	"fluentps/ps/shard"
)

// A request made by an older map of the shards changes nothing at the server, which answers with its epoch; the worker
// says that it needs that map. A worker on the new map is served.
func TestRequestsOfAnOldMapAreRefused(t *testing.T) {
	old, err := shard.Cut([]shard.Param{{Name: "a", N: 12}}, shard.Options{Slice: "even", MaxBytes: 64, Servers: 2, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := old.Recut(3)
	if err != nil {
		t.Fatal(err)
	}
	server := NewServer(ServerConfig{Me: 1, Plan: plan, Workers: 1, Schemes: map[int32]ShardScheme{1: mustScheme(rule{name: "bsp"}, []int32{1}, 1, 1)}})
	order, _ := send.Lookup("fifo")
	pull := func(p *shard.Plan) (w *Worker, m wire.Header) {
		w = NewWorker(0, p, order.New(send.Options{}), 0)
		for _, e := range w.Step(Input{Kind: Begin}, nil) {
			if e.Kind == Send && e.Msg.Shard == 1 {
				m = e.Msg
			}
		}
		return w, m
	}
	late, request := pull(old)
	for _, m := range []wire.Header{request, {Kind: wire.Push, Shard: 1, Parts: 1, Samples: 1}, {Kind: wire.Joined, Clock: 1}} {
		before := server.String()
		out := server.Step(Input{Kind: Arrived, Msg: m}, nil)
		if len(out) != 1 || out[0].Kind != Send || out[0].Msg.Kind != wire.Moved || out[0].Msg.Epoch != 1 || server.String() != before {
			t.Fatalf("%v: effects %v, state %s, before %s; want only an answer of kind moved", m.Kind, out, server, before)
		}
		out = late.Step(Input{Kind: Arrived, Msg: out[0].Msg}, nil)
		if len(out) != 1 || out[0].Kind != Remap || out[0].Iter != 1 {
			t.Fatalf("the worker answers with %v, want a remap to epoch 1", out)
		}
	}
	if server.Stale != 3 {
		t.Errorf("%d stale requests counted, want 3", server.Stale)
	}
	_, request = pull(plan)
	if out := server.Step(Input{Kind: Arrived, Msg: request}, nil); len(out) != 1 || out[0].Kind != Reply {
		t.Errorf("effects %v for a worker on the new map, want a reply", out)
	}
	if !strings.Contains(server.String(), "shard1") {
		t.Errorf("state %s", server)
	}
}
