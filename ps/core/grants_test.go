package core

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
	"fluentps/ps/send"
	"fluentps/ps/shard"
)

// twoServers is a plan with a shard of a, under asp, and a shard of b, under r2sp, on each of two servers.
func twoServers(t *testing.T) (*shard.Plan, func(int) string) {
	t.Helper()
	plan, err := shard.Cut([]shard.Param{{Name: "a", Layer: 1, N: 4}, {Name: "b", Layer: 0, N: 4}},
		shard.Options{Slice: "even", MaxBytes: 4, Servers: 2, Rules: []string{"a", "b"}})
	if err != nil || len(plan.Shards) != 4 {
		t.Fatalf("%+v, %v", plan, err)
	}
	return plan, func(rule int) string { return []string{"asp", "r2sp"}[rule] }
}

// computed lets a worker compute an iteration, and returns all its effects.
func computed(t *testing.T, plan *shard.Plan, w *Worker) (out []Effect) {
	t.Helper()
	out = w.Step(Input{Kind: Begin}, out)
	for s := range plan.Shards {
		for _, p := range plan.Shards[s].Pieces {
			out = w.Step(Input{Kind: PieceLanded, Piece: p.ID}, out)
		}
		out = w.Step(Input{Kind: Arrived, Msg: wire.Header{Kind: wire.Reply, Worker: w.me, Shard: int32(s)}}, out)
	}
	out = w.Step(Input{Kind: Forwarded, Msg: wire.Header{Samples: 1}}, out)
	for _, p := range plan.Pieces {
		out = w.Step(Input{Kind: PieceReady, Piece: p.ID}, out)
	}
	return w.Step(Input{Kind: TaskDone}, out)
}

// sendsOf names the effects that send to a server: pieces by their shard, messages by their kind.
func sendsOf(plan *shard.Plan, server int32, effects []Effect) string {
	var words []string
	for _, e := range effects {
		switch {
		case e.Kind == SendPiece && e.To == server:
			words = append(words, fmt.Sprintf("piece/%d", e.Shard))
		case e.Kind == Send && e.To == server && e.Msg.Iter >= 0:
			words = append(words, fmt.Sprintf("%v/%d", e.Msg.Kind, e.Msg.Shard))
		}
	}
	return strings.Join(words, " ")
}

// A grant controls its own server's shards and nothing else. The other shards are pushed without any reply, and so are
// those of the other server when it grants. The worker is pushing until all pieces are released.
func TestAWorkerHoldsBackOnlyWhatIsNotGranted(t *testing.T) {
	plan, schemeOf := twoServers(t)
	e, _ := send.Lookup("fifo")
	w := NewWorker(3, plan, e.New(send.Options{}), 0)
	w.HoldBack(schemeOf)
	out := computed(t, plan, w)
	var own [2]int32
	for s, sh := range plan.Shards {
		if schemeOf(sh.Rule) == "r2sp" {
			own[sh.Server] = int32(s)
		}
	}
	for m := range int32(2) {
		got := sendsOf(plan, m, out)
		if strings.Contains(got, fmt.Sprintf("piece/%d", own[m])) || strings.Count(got, "piece/") != 2 || strings.Count(got, fmt.Sprintf("pushready/%d", own[m])) != 1 {
			t.Fatalf("server %d: %s; its shard %d waits for the grant", m, got, own[m])
		}
	}
	if w.State() != Pushing || !slices.Equal(w.Ungranted(), []int32{0, 1}) {
		t.Fatalf("%v, waits for %v", w, w.Ungranted())
	}
	out = w.Step(Input{Kind: Arrived, Msg: wire.Header{Kind: wire.Grant, Worker: 3, Shard: own[1]}}, nil)
	if got, want := sendsOf(plan, 1, out), fmt.Sprintf("piece/%d piece/%d pull/%d", own[1], own[1], own[1]); got != want || sendsOf(plan, 0, out) != "" {
		t.Errorf("server 1: %s, want %s; server 0: %s", got, want, sendsOf(plan, 0, out))
	}
	if w.State() != Pushing || !slices.Equal(w.Ungranted(), []int32{0}) {
		t.Errorf("%v, waits for %v", w, w.Ungranted())
	}
	w.Step(Input{Kind: Arrived, Msg: wire.Header{Kind: wire.Grant, Worker: 3, Shard: own[0]}}, nil)
	if err := w.Check(); err != nil || w.State() != Waiting {
		t.Errorf("%v, %v", w, err)
	}
}

// The effects of grants and revocations on a worker, in every order of arrival.
func TestGrantsAndRevokesInAnyOrder(t *testing.T) {
	for _, c := range []struct {
		messages string // g: grant, r: revoke, with the epoch; i-: of the iteration before
		want     string // p: pieces and the pull, a: another announcement
	}{
		{"g0", "p"},
		{"g0 r0", "p"},         // crosses the push: ignored
		{"r0 g0", "a"},         // overtakes the grant, which is void then
		{"r0 g0 g1", "a p"},    //
		{"r0 g1 g0", "a p"},    //
		{"r0 g1 r1", "a p"},    //
		{"r0 r3 g3 g4", "aap"}, // epochs count the server's revocations, also of others' grants
		{"i-g0", ""},           // late, of an iteration that is over
		{"i-r0 g1", "p"},       //
		{"g0 g0", "p"},         // delivered twice
	} {
		t.Run(c.messages, func(t *testing.T) {
			plan, schemeOf := twoServers(t)
			e, _ := send.Lookup("fifo")
			w := NewWorker(0, plan, e.New(send.Options{}), 0)
			w.HoldBack(schemeOf)
			computed(t, plan, w)
			first := int32(slices.IndexFunc(plan.Shards, func(s shard.Shard) bool { return s.Server == 0 && schemeOf(s.Rule) == "r2sp" }))
			got := ""
			for _, m := range strings.Fields(c.messages) {
				in := Input{Kind: Arrived, Msg: wire.Header{Kind: wire.Grant, Shard: first}}
				if rest, before := strings.CutPrefix(m, "i-"); before {
					m, in.Msg.Iter = rest, -1
				}
				if m[0] == 'r' {
					in.Msg.Kind = wire.Revoke
				}
				in.Msg.Epoch = int32(m[1] - '0')
				switch sends := sendsOf(plan, 0, w.Step(in, nil)); sends {
				case fmt.Sprintf("pushready/%d", first):
					got += "a"
				case fmt.Sprintf("piece/%d piece/%d pull/%d", first, first, first):
					got += "p"
				case "":
				default:
					t.Fatalf("after %s: %s", m, sends)
				}
			}
			if got != strings.ReplaceAll(c.want, " ", "") {
				t.Errorf("did %q, want %q", got, c.want)
			}
		})
	}
}

// One instance decides for all shards of a server that are under the scheme, under whichever rules; other shards have
// their own instance.
func TestShardsOfARotationAreTogether(t *testing.T) {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 4}, {Name: "b", N: 4}, {Name: "c", N: 4}},
		shard.Options{Slice: "even", MaxBytes: 64, Servers: 2, Rules: []string{"a", "b", "c"}})
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"r2sp", "ssp", "r2sp"}
	for _, sh := range plan.Shards {
		var want []int32
		for _, other := range plan.Shards {
			if other.ID == sh.ID || sh.Rule != 1 && other.Rule != 1 && other.Server == sh.Server {
				want = append(want, other.ID)
			}
		}
		if got := Together(plan, sh.ID, func(rule int) string { return names[rule] }); !slices.Equal(got, want) {
			t.Errorf("shard %d of server %d, %s: together with %v, want %v", sh.ID, sh.Server, names[sh.Rule], got, want)
		}
	}
}

// A server tells the scheme of its rotation of an announcement, a sent reply and an alarm, with their times, and turns
// its decisions into messages and WakeAt.
func TestServerOfARotation(t *testing.T) {
	plan, schemeOf := twoServers(t)
	ids := plan.OfServer(1)
	first := ids[slices.IndexFunc(ids, func(id int32) bool { return schemeOf(plan.Shards[id].Rule) == "r2sp" })]
	schemes := map[int32]ShardScheme{}
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
	node := NewServer(ServerConfig{Me: 1, Plan: plan, Workers: 2, Schemes: schemes})
	node.Step(Input{Kind: Arrived, At: 3, Msg: wire.Header{Kind: wire.Pull, Shard: first}}, nil)
	out := node.Step(Input{Kind: ReplySent, At: 4, Shard: first}, nil)
	out = node.Step(Input{Kind: Arrived, At: 5, Msg: wire.Header{Kind: wire.PushReady, Shard: first}}, out)
	node.Step(Input{Kind: Alarm, At: 9, Shard: first}, nil)
	var told []string
	for _, ev := range s.events {
		told = append(told, fmt.Sprint(ev.Kind, " ", int64(ev.At)))
	}
	if got, want := strings.Join(told, "; "), "wanted 3; sent 4; ready 5; alarm 9"; got != want {
		t.Errorf("the scheme was told %s, want %s", got, want)
	}
	if len(out) != 1 || out[0].Kind != Send || out[0].To != 0 || out[0].Msg != (wire.Header{Kind: wire.Grant, Shard: first}) {
		t.Errorf("the server answers with %v, want a grant to worker 0", out)
	}
	out = node.obeyLink(scheme.Decision{Kind: scheme.Revoke, Worker: 1, Shard: first, Iter: 6, Epoch: 7}, nil)
	out = node.obeyLink(scheme.Decision{Kind: scheme.WakeAt, Worker: scheme.NoWorker, Shard: first, At: 8}, out)
	if got, want := fmt.Sprint(out), fmt.Sprintf("[Send to=1 Revoke w1 shard%d iter=6 epoch=7 WakeAt shard%d at=8ns]", first, first); got != want {
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
		return NewServer(ServerConfig{Plan: plan, Workers: 3, Schemes: map[int32]ShardScheme{0: both, 1: mustScheme(rule{name: "asp"}, []int32{1}, 0, 3), 2: both}})
	}
	node := newNode()
	at := func(at time.Duration, m wire.Header) {
		node.Step(Input{Kind: Arrived, At: at, Msg: m}, nil)
	}
	for w := range int32(3) { // the turn is worker 0's; nobody waits for it before others announce
		at(time.Duration(5+w), wire.Header{Kind: wire.PushReady, Worker: w})
	}
	for _, id := range []int32{0, 2} {
		at(10, wire.Header{Kind: wire.Push, Shard: id, Parts: 1, Samples: 1})
		for p := range plan.Shards[id].Pieces {
			node.Step(Input{Kind: PieceLanded, At: 11 + time.Duration(id), Shard: id, Piece: plan.Shards[id].Pieces[p].ID}, nil)
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
