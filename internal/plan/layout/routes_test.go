package layout

import (
	"fmt"
	"testing"

	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
	"fluentps/ps/workload"
)

func TestPiecesOfCopiesAreAllInlineOrNone(t *testing.T) {
	long := InlineMax/shard.ElemBytes + 1
	params := []shard.Param{{Name: "a", Layer: 0, N: 3}, {Name: "b", Layer: 1, N: long}, {Name: "c", Layer: 2, N: 5}}
	p, err := shard.Cut(params, shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind scheme.Copies
		want string
	}{{scheme.Pulled, "[with the headers by themselves with the headers]"},
		{scheme.Cached, "[by themselves by themselves by themselves]"}, {scheme.Published, "[by themselves by themselves by themselves]"}} {
		if got := fmt.Sprint(inlineWays(p, func(int) inturn.Copy { return inturn.Copy{Kind: c.kind} }, pushBytes, InlineMax)); got != c.want {
			t.Errorf("%v: %s, want %s", c.kind, got, c.want)
		}
	}
}

// A frame with a piece that is not in the plan, or has another length, is refused.
func TestAPieceThatIsNotOfThePlanIsRefused(t *testing.T) {
	r := &Routes{push: []Way{InFrame, OnData}, plan: &shard.Plan{Pieces: []shard.Piece{{Hi: 4, PushBytes: 16}, {Lo: 4, Hi: 8, PushBytes: 16}}}}
	for _, c := range []struct {
		piece int32
		n     int
		want  bool
	}{{0, 16, true}, {0, 12, false}, {1, 16, false}, {2, 16, false}} {
		if got := r.AcceptsPush(c.piece, c.n); got != c.want {
			t.Errorf("piece %d of %d bytes: %v", c.piece, c.n, got)
		}
	}
}

// However many short shards a server has, it receives a bounded number of pushes ahead, and counts the memory of exactly
// these.
func TestMemoryOfPushesReceivedAhead(t *testing.T) {
	const layers = 80
	c := load(t, "sync=[{match: '*', scheme: bsp}]", "cluster={servers: 1, shared_memory: off}", "shards={slice: layer}")
	var params []workload.Param
	for layer := range layers {
		params = append(params, workload.Param{Name: fmt.Sprint("w", layer), Layer: layer, Shape: []int{4096}})
	}
	p, err := Plan(c, params, 1, Link{})
	if err != nil {
		t.Fatal(err)
	}
	routes, total := routesOf(c, p, 4), int64(0)
	for i := range p.Shards {
		total += routes.aheadBytes(&p.Shards[i])
	}
	if want := int64(AheadReceivesMax) * 4096 * shard.ElemBytes; total != want {
		t.Errorf("%d bytes for pushes received ahead, want %d", total, want)
	}
}

// A worker that shares memory with a shard's server reads the versions there, and the server reads its gradients in place
// unless the worker keeps copies. Without shared memory, with a scheme that schedules the link, or with a codec, all is
// sent.
func TestWaysOfPieces(t *testing.T) {
	long := Thresholds{Inline: 1000}
	for _, c := range []struct {
		set         string
		at          Thresholds
		push, reply [2]Way // of the worker on the server's host, and of the one on another
	}{
		{"{scheme: bsp}", Thresholds{}, [2]Way{InPlace, InFrame}, [2]Way{InPlace, InFrame}},
		{"{scheme: bsp}", long, [2]Way{InPlace, Ahead}, [2]Way{InPlace, OnData}},
		{"{scheme: ssp, staleness: 2, cache: true, push: delta}", Thresholds{}, [2]Way{InFrame, InFrame}, [2]Way{InPlace, InFrame}},
		{"{scheme: essp, staleness: 2}", long, [2]Way{OnData, OnData}, [2]Way{InPlace, OnData}},
		{"{scheme: r2sp}", Thresholds{}, [2]Way{InFrame, InFrame}, [2]Way{InFrame, InFrame}},
		{"{scheme: bsp}", Thresholds{Shared: 1 << 20}, [2]Way{InFrame, InFrame}, [2]Way{InFrame, InFrame}},
	} {
		cfg := load(t, "cluster.servers=1", "sync=[{match: '*', "+c.set[1:]+"]")
		p, err := Plan(cfg, paramsOf(500), 1, Link{})
		if err != nil {
			t.Fatal(err)
		}
		routes := NewRoutes(cfg, p, shard.Roles{Servers: []int{0}, Workers: []int{1, 2}}, []int{0, 0, 2}, c.at)
		by := routes.ByMessages()
		for w := range int32(2) {
			if push, reply := routes.Push(0, w), routes.Reply(0, w); push != c.push[w] || reply != c.reply[w] {
				t.Errorf("%s, %+v, worker %d: pushed %v, replied %v; want %v, %v", c.set, c.at, w, push, reply, c.push[w], c.reply[w])
			}
			if push, reply := by.Push(0, w), by.Reply(0, w); push == InPlace || reply == InPlace {
				t.Errorf("%s: pushed %v, replied %v without shared memory", c.set, push, reply)
			}
		}
	}
}

// MPI sends from GPU memory messages that are not encoded, between ranks that share no memory, of values that the host does
// not touch.
func TestDirectPieces(t *testing.T) {
	for _, c := range []struct {
		set           []string
		at            Thresholds
		nodes         []int
		push, replied bool
	}{
		{nil, Thresholds{Inline: 100}, nil, true, true},
		{nil, Thresholds{}, nil, false, false},
		{nil, Thresholds{Inline: 100}, []int{0, 0}, false, false},
		{[]string{"payload.push=bfloat16"}, Thresholds{Inline: 100}, nil, false, true},
		{[]string{"sync=[{match: '*', scheme: bsp, push: delta}]"}, Thresholds{Inline: 100}, nil, false, false},
		{[]string{"sync=[{match: '*', scheme: essp, staleness: 1}]"}, Thresholds{Inline: 100}, nil, false, false},
		{[]string{"work={policy: flexrr}"}, Thresholds{Inline: 100}, nil, false, false},
	} {
		cfg := load(t, append(c.set, "cluster.servers=1")...)
		p, err := Plan(cfg, paramsOf(500), 1, Link{})
		if err != nil {
			t.Fatal(err)
		}
		pushed, replied := NewRoutes(cfg, p, shard.Roles{Servers: []int{0}, Workers: []int{1}}, c.nodes, c.at).Direct(0)
		if pushed[0] != c.push || replied[0] != c.replied {
			t.Errorf("%v, %+v: pushed %t, replied %t; want %t, %t", c.set, c.at, pushed[0], replied[0], c.push, c.replied)
		}
	}
}
