package workernode

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/coretest"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
)

// computed lets a worker compute an iteration, and returns all its effects.
func computed(t *testing.T, plan *shard.Plan, w *Worker) (out []core.Effect) {
	t.Helper()
	out = w.Step(core.Input{Kind: core.Begin}, out)
	for s := range plan.Shards {
		for _, p := range plan.Shards[s].Pieces {
			out = w.Step(core.Input{Kind: core.PieceLanded, Piece: p.ID}, out)
		}
		out = w.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Reply, Worker: w.me, Shard: int32(s)}}, out)
	}
	out = w.Step(core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: 1}}, out)
	for _, p := range plan.Pieces {
		out = w.Step(core.Input{Kind: core.PieceReady, Piece: p.ID}, out)
	}
	return w.Step(core.Input{Kind: core.TaskDone}, out)
}

// sendsOf names the effects that send to a server: pieces by their shard, messages by their kind.
func sendsOf(plan *shard.Plan, server int32, effects []core.Effect) string {
	var words []string
	for _, e := range effects {
		switch {
		case e.Kind == core.SendPiece && e.To == server:
			words = append(words, fmt.Sprintf("piece/%d", e.Shard))
		case e.Kind == core.Send && e.To == server && e.Msg.Iter >= 0:
			words = append(words, fmt.Sprintf("%v/%d", e.Msg.Kind, e.Msg.Shard))
		}
	}
	return strings.Join(words, " ")
}

// A grant controls its own server's shards and nothing else. The other shards are pushed without any reply. A push that is
// granted while another one is on its way follows when that has left, without a reply, too, and the worker tells the server
// how long it waited. The worker is pushing until all pieces are released.
func TestAWorkerHoldsBackOnlyWhatIsNotGranted(t *testing.T) {
	plan, schemeOf := coretest.TwoServers(t)
	e, _ := send.All.Lookup("fifo")
	w := New(3, plan, e.New(send.Options{}), 0)
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
	if w.State() != core.Pushing || !slices.Equal(w.Ungranted(), []int32{0, 1}) {
		t.Fatalf("%v, waits for %v", w, w.Ungranted())
	}
	grant := func(m int32, at time.Duration) string {
		out := w.Step(core.Input{Kind: core.Arrived, At: at, Msg: wire.Header{Kind: wire.Grant, Worker: 3, Shard: own[m]}}, nil)
		if err := w.Check(); err != nil {
			t.Error(err)
		}
		return sendsOf(plan, 0, out) + sendsOf(plan, 1, out)
	}
	both := func(m int32) string { return fmt.Sprintf("piece/%d piece/%d pull/%d", own[m], own[m], own[m]) }
	if got := grant(1, 20); got != both(1) {
		t.Errorf("server 1 granted: %s, want %s", got, both(1))
	}
	if got := grant(0, 30); got != "" || w.State() != core.Pushing || !slices.Equal(w.Ungranted(), []int32{0}) {
		t.Errorf("server 0 granted, too: %s before the push to server 1 has left; %v, waits for %v", got, w, w.Ungranted())
	}
	got := ""
	for _, p := range plan.Shards[own[1]].Pieces {
		if got != "" {
			t.Errorf("%s before the last piece for server 1 has left", got)
		}
		out := w.Step(core.Input{Kind: core.PieceSent, At: 50, Piece: p.ID}, nil)
		got = sendsOf(plan, 0, out) + sendsOf(plan, 1, out)
	}
	if err := w.Check(); err != nil || got != both(0) || w.State() != core.Waiting {
		t.Errorf("the push to server 1 has left: %s, want %s; %v, %v", got, both(0), w, err)
	}
	if to0, to1 := w.announce(0, nil)[0].Msg, w.announce(1, nil)[0].Msg; to0.Clock != 20 || to1.Clock != 0 {
		t.Errorf("the worker tells server 0 that its push waited %d ns, and server 1 %d ns; want 20 and 0", to0.Clock, to1.Clock)
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
			plan, schemeOf := coretest.TwoServers(t)
			e, _ := send.All.Lookup("fifo")
			w := New(0, plan, e.New(send.Options{}), 0)
			w.HoldBack(schemeOf)
			computed(t, plan, w)
			first := int32(slices.IndexFunc(plan.Shards, func(s shard.Shard) bool { return s.Server == 0 && schemeOf(s.Rule) == "r2sp" }))
			got := ""
			for _, m := range strings.Fields(c.messages) {
				in := core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Grant, Shard: first}}
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
	plan, schemeOf := coretest.TwoServers(t)
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
		w := New(0, plan, e.New(send.Options{}), 0)
		w.HoldBack(schemeOf)
		computed(t, plan, w)
		w.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Grant, Shard: own[1]}}, nil)
		var out []core.Effect
		for _, m := range strings.Fields(c.messages) {
			in := core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Grant, Shard: own[0]}}
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
			out = w.Step(core.Input{Kind: core.PieceSent, Piece: p.ID}, out)
		}
		got := strings.NewReplacer(fmt.Sprintf("pushready/%d", own[0]), "a",
			fmt.Sprintf("piece/%d piece/%d pull/%d", own[0], own[0], own[0]), "p", " ", "").Replace(sendsOf(plan, 0, out))
		if got != c.want {
			t.Errorf("%s: did %q, want %q", c.messages, got, c.want)
		}
	}
}
