package core

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
	"fluentps/ps/scheme"
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

// A grant controls its own server's shards and nothing else. The other shards are pushed without any reply. A push that is
// granted while another one is on its way follows when that has left, without a reply, too, and the worker tells the server
// how long it waited. The worker is pushing until all pieces are released.
func TestAWorkerHoldsBackOnlyWhatIsNotGranted(t *testing.T) {
	plan, schemeOf := twoServers(t)
	e, _ := send.All.Lookup("fifo")
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
		if strings.Contains(got, fmt.Sprintf("piece/%d", own[m])) || strings.Count(got, "piece/") != 2 ||
			strings.Count(got, fmt.Sprintf("pushready/%d", own[m])) != 1 {
			t.Fatalf("server %d: %s; its shard %d waits for the grant", m, got, own[m])
		}
	}
	if w.State() != Pushing || !slices.Equal(w.Ungranted(), []int32{0, 1}) {
		t.Fatalf("%v, waits for %v", w, w.Ungranted())
	}
	grant := func(m int32, at time.Duration) string {
		out := w.Step(Input{Kind: Arrived, At: at, Msg: wire.Header{Kind: wire.Grant, Worker: 3, Shard: own[m]}}, nil)
		if err := w.Check(); err != nil {
			t.Error(err)
		}
		return sendsOf(plan, 0, out) + sendsOf(plan, 1, out)
	}
	both := func(m int32) string { return fmt.Sprintf("piece/%d piece/%d pull/%d", own[m], own[m], own[m]) }
	if got := grant(1, 20); got != both(1) {
		t.Errorf("server 1 granted: %s, want %s", got, both(1))
	}
	if got := grant(0, 30); got != "" || w.State() != Pushing || !slices.Equal(w.Ungranted(), []int32{0}) {
		t.Errorf("server 0 granted, too: %s before the push to server 1 has left; %v, waits for %v", got, w, w.Ungranted())
	}
	got := ""
	for _, p := range plan.Shards[own[1]].Pieces {
		if got != "" {
			t.Errorf("%s before the last piece for server 1 has left", got)
		}
		out := w.Step(Input{Kind: PieceSent, At: 50, Piece: p.ID}, nil)
		got = sendsOf(plan, 0, out) + sendsOf(plan, 1, out)
	}
	if err := w.Check(); err != nil || got != both(0) || w.State() != Waiting {
		t.Errorf("the push to server 1 has left: %s, want %s; %v, %v", got, both(0), w, err)
	}
	if to0, to1 := w.announce(0, nil)[0].Msg, w.announce(1, nil)[0].Msg; to0.Clock != 20 || to1.Clock != 0 {
		t.Errorf("the worker tells server 0 that its push waited %d ns, and server 1 %d ns; want 20 and 0", to0.Clock, to1.Clock)
	}
}

// A server that stands still holds no other server's push back: each worker pushes everything else to the others, whatever
// they have granted. And wherever and for however long servers stand still, the run ends, in the strict order and in the
// other one, beside shards of other schemes.
func TestAServerThatStandsStillHoldsNoOtherPushBack(t *testing.T) {
	plan, _ := twoServers(t)
	const workers = 3
	for _, skip := range []int64{0, 3} {
		for still := range int32(2) {
			rules := []rule{{name: "asp"},
				{name: "r2sp", params: &scheme.R2SPParams{SkipAfter: skip, Profile: 1, Delta: 0.25, DeltaRounds: 2, Smoothing: 0.2}}}
			c := newCluster(plan, workers, rules, Budget{Samples: 100}, 0)
			stands, pushed := true, map[string]bool{} // while it stands: pieces that landed at the other one
			c.stalled = func(n Node) bool {
				begun := !slices.ContainsFunc(c.workers, func(w *Worker) bool { return w.Iter() < 0 })
				return begun && n == Node(c.servers[still])
			}
			c.trace = func(node string, in Input, _ []Effect) {
				stands = stands && !(node == fmt.Sprintf("s%d", still) && c.stalled(c.servers[still]))
				if stands && in.Kind == PieceLanded && node == fmt.Sprintf("s%d", 1-still) {
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
		c.stalled = func(n Node) bool { return n == Node(c.servers[still]) }
		c.trace = func(string, Input, []Effect) {
			if steps++; steps > until {
				still, until = rng.IntN(len(c.servers)), steps+rng.IntN(200)
			}
		}
		if err := c.run(200000); err != nil {
			t.Fatal(err)
		}
	})
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
			e, _ := send.All.Lookup("fifo")
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

// A grant that waits behind another push is revoked: it leaves the queue, and the push is announced again. A revocation of
// an earlier grant, of this iteration or of the one before, takes nothing from it.
func TestAQueuedGrantIsRevoked(t *testing.T) {
	plan, schemeOf := twoServers(t)
	e, _ := send.All.Lookup("fifo")
	var own [2]int32
	for s, sh := range plan.Shards {
		if schemeOf(sh.Rule) == "r2sp" {
			own[sh.Server] = int32(s)
		}
	}
	for _, c := range []struct {
		messages string // to server 0, after the grant of server 1: as in TestGrantsAndRevokesInAnyOrder
		want     string
	}{
		{"g0", "p"}, {"g0 g0", "p"}, {"g0 r0", "a"}, {"g0 r0 g1", "ap"}, {"r0 g1 r0", "ap"}, {"g1 r0", "p"}, {"g1 i-r0", "p"}, {"r0 g0 g1", "ap"},
	} {
		w := NewWorker(0, plan, e.New(send.Options{}), 0)
		w.HoldBack(schemeOf)
		computed(t, plan, w)
		w.Step(Input{Kind: Arrived, Msg: wire.Header{Kind: wire.Grant, Shard: own[1]}}, nil)
		var out []Effect
		for _, m := range strings.Fields(c.messages) {
			in := Input{Kind: Arrived, Msg: wire.Header{Kind: wire.Grant, Shard: own[0]}}
			if rest, before := strings.CutPrefix(m, "i-"); before {
				m, in.Msg.Iter = rest, -1
			}
			if m[0] == 'r' {
				in.Msg.Kind = wire.Revoke
			}
			in.Msg.Epoch = int32(m[1] - '0')
			out = w.Step(in, out)
			if err := w.Check(); err != nil {
				t.Errorf("%s: %v", c.messages, err)
			}
		}
		for _, p := range plan.Shards[own[1]].Pieces {
			out = w.Step(Input{Kind: PieceSent, Piece: p.ID}, out)
		}
		got := strings.NewReplacer(fmt.Sprintf("pushready/%d", own[0]), "a",
			fmt.Sprintf("piece/%d piece/%d pull/%d", own[0], own[0], own[0]), "p", " ", "").Replace(sendsOf(plan, 0, out))
		if got != c.want {
			t.Errorf("%s: did %q, want %q", c.messages, got, c.want)
		}
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
		return NewServer(ServerConfig{Plan: plan, Workers: 3,
			Schemes: map[int32]ShardScheme{0: both, 1: mustScheme(rule{name: "asp"}, []int32{1}, 0, 3), 2: both}})
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
