package servernode

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/coretest"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/workernode"
	"fluentps/ps/scheme"
)

// A server that stands still holds no other server's push back: each worker pushes everything else to the others, whatever
// they have granted. And wherever and for however long servers stand still, the run ends, in the strict order and in the
// other one, beside shards of other schemes.
func TestAServerThatStandsStillHoldsNoOtherPushBack(t *testing.T) {
	plan, _ := coretest.TwoServers(t)
	const workers = 3
	for _, skip := range []int64{0, 3} {
		for still := range int32(2) {
			rules := []rule{{name: "asp"},
				{name: "r2sp", params: &scheme.R2SPParams{SkipAfter: skip, Profile: 1, Delta: 0.25, DeltaRounds: 2, Smoothing: 0.2}}}
			c := newCluster(plan, workers, rules, Budget{Samples: 100}, 0)
			stands, pushed := true, map[string]bool{} // while it stands: pieces that landed at the other one
			c.stalled = func(n core.Node) bool {
				begun := !slices.ContainsFunc(c.workers, func(w *workernode.Worker) bool { return w.Iter() < 0 })
				return begun && n == core.Node(c.servers[still])
			}
			c.trace = func(node string, in core.Input, _ []core.Effect) {
				stands = stands && !(node == fmt.Sprintf("s%d", still) && c.stalled(c.servers[still]))
				if stands && in.Kind == core.PieceLanded && node == fmt.Sprintf("s%d", 1-still) {
					pushed[fmt.Sprintf("w%d p%d", in.Worker, in.Piece)] = true
				}
			}
			if err := c.run(10000); err != nil {
				t.Fatalf("server %d stands still, skip_after %d: %v", still, skip, err)
			}
			if want := workers * len(plan.Pieces) / 2; len(pushed) != want {
				t.Errorf("server %d stands still, skip_after %d: the other has %v, %d of %d pieces", still, skip, pushed, len(pushed), want)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		c, _ := genCluster(t)
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		c.pick, c.overtake = rng.IntN, rapid.Bool().Draw(t, "overtake")
		still, until := 0, 0
		steps := 0
		c.stalled = func(n core.Node) bool { return n == core.Node(c.servers[still]) }
		c.trace = func(string, core.Input, []core.Effect) {
			if steps++; steps > until {
				still, until = rng.IntN(len(c.servers)), steps+rng.IntN(200)
			}
		}
		if err := c.run(200000); err != nil {
			t.Fatal(err)
		}
	})
}

// A server tells the scheme of its rotation of an announcement, a sent reply and an alarm, with their times, and turns
// its decisions into messages and WakeAt.
func TestServerOfARotation(t *testing.T) {
	plan, schemeOf := coretest.TwoServers(t)
	ids := plan.OfServer(1)
	first := ids[slices.IndexFunc(ids, func(id int32) bool { return schemeOf(plan.Shards[id].Rule) == "r2sp" })]
	schemes := map[int32]inturn.ShardScheme{}
	var s *spy
	for _, id := range ids {
		name := schemeOf(plan.Shards[id].Rule)
		ss := mustScheme(rule{name: name}, []int32{id}, 1, 2)
		if id == first {
			s = &spy{Scheme: ss.Scheme}
			ss.Scheme = s
		}
		schemes[id] = ss
	}
	node := New(Config{Me: 1, Plan: plan, Workers: 2, Schemes: schemes})
	node.Step(core.Input{Kind: core.Arrived, At: 3, Msg: wire.Header{Kind: wire.Pull, Shard: first}}, nil)
	out := node.Step(core.Input{Kind: core.ReplySent, At: 4, Shard: first}, nil)
	out = node.Step(core.Input{Kind: core.Arrived, At: 5, Msg: wire.Header{Kind: wire.PushReady, Shard: first}}, out)
	node.Step(core.Input{Kind: core.Alarm, At: 9, Shard: first}, nil)
	var told []string
	for _, ev := range s.events {
		told = append(told, fmt.Sprint(ev.Kind, " ", int64(ev.At)))
	}
	if got, want := strings.Join(told, "; "), "wanted 3; sent 4; ready 5; alarm 9"; got != want {
		t.Errorf("the scheme was told %s, want %s", got, want)
	}
	if len(out) != 1 || out[0].Kind != core.Send || out[0].To != 0 || out[0].Msg != (wire.Header{Kind: wire.Grant, Shard: first}) {
		t.Errorf("the server answers with %v, want a grant to worker 0", out)
	}
	out = node.obeyLink(scheme.Decision{Kind: scheme.Revoke, Worker: 1, Shard: first, Iter: 6, Epoch: 7}, nil)
	out = node.obeyLink(scheme.Decision{Kind: scheme.WakeAt, Worker: scheme.NoWorker, Shard: first, At: 8}, out)
	if got, want := fmt.Sprint(out),
		fmt.Sprintf("[Send to=1 Revoke w1 shard%d iter=6 epoch=7 WakeAt shard%d at=8ns]", first, first); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// A push that had to wait for its turn is counted with its wait, at every shard of the rotation and at no other. A push
// that was granted at once is not. A worker that left waits for nothing. A pause keeps the counts.
func TestWaitsForTurnsAreCounted(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 4}, {Name: "b", N: 4}, {Name: "c", N: 4}},
		shard.Options{Slice: "even", MaxBytes: 64, Servers: 1, Rules: []string{"a", "b", "c"}})
	if err != nil {
		t.Fatal(err)
	}
	newNode := func() *Server {
		both := mustScheme(rule{name: "r2sp"}, []int32{0, 2}, 0, 3)
		return New(Config{Plan: plan, Workers: 3,
			Schemes: map[int32]inturn.ShardScheme{0: both, 1: mustScheme(rule{name: "asp"}, []int32{1}, 0, 3), 2: both}})
	}
	node := newNode()
	at := func(at time.Duration, m wire.Header) {
		node.Step(core.Input{Kind: core.Arrived, At: at, Msg: m}, nil)
	}
	for w := range int32(3) { // the turn is worker 0's; nobody waits for it before others announce
		at(time.Duration(5+w), wire.Header{Kind: wire.PushReady, Worker: w})
	}
	for _, id := range []int32{0, 2} {
		at(10, wire.Header{Kind: wire.Push, Shard: id, Parts: 1, Samples: 1})
		for p := range plan.Shards[id].Pieces {
			node.Step(core.Input{Kind: core.PieceLanded, At: 11 + time.Duration(id), Shard: id, Piece: plan.Shards[id].Pieces[p].ID}, nil)
		}
	}
	at(20, wire.Header{Kind: wire.Left, Worker: 2})
	want := Turns{Delayed: 2, DelayedFor: 13 - 6}
	for _, of := range []*Server{node, newNode()} {
		if of != node {
			of.Succeed(node)
		}
		for id := range int32(3) {
			turns := of.Shard(id).Stats.Turns
			if id != 1 && turns != want || id == 1 && turns != (Turns{}) {
				t.Errorf("shard %d: %+v, want %+v of a rotation", id, turns, want)
			}
		}
	}
}
