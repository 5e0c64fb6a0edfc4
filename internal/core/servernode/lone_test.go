package servernode

import (
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
)

// lone is one server with one shard of one piece; the test tells it by hand what its workers do.
type lone struct {
	t        *testing.T
	s        *Server
	id       int32 // of the shard and its piece
	slot     map[int32]int32
	pending  string
	versions []string
	clocks   []float64 // the learning-rate clock of each commit
	replies  []string  // since the last expect
	unstaged int
	slow     []core.Input // where not nil: ReplySent inputs that the transport has not given yet
	done     int
	told     []wire.Header // messages to other servers
}

func newLone(t *testing.T, workers int, ss inturn.ShardScheme) *lone {
	plan, err := shard.Cut([]shard.Param{{Name: "a", N: 1}}, shard.Options{Slice: "even", MaxBytes: 4, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	return newLoneOf(t, plan, 0, workers, ss)
}

// newLoneOf is server id of a plan that gives each server one shard of one piece.
func newLoneOf(t *testing.T, plan *shard.Plan, id int32, workers int, ss inturn.ShardScheme) *lone {
	return &lone{t: t, id: id, slot: map[int32]int32{},
		s: New(Config{Me: id, Plan: plan, Workers: workers, Schemes: map[int32]inturn.ShardScheme{id: ss}})}
}

func (n *lone) step(in core.Input) {
	n.t.Helper()
	for _, e := range n.s.Step(in, nil) {
		switch e.Kind {
		case core.Stage:
			n.slot[e.To] = e.Slot
		case core.SendServer:
			n.told = append(n.told, e.Msg)
		case core.Unstage:
			n.unstaged++
		case core.Done:
			n.done++
		case core.Fold:
			n.pending += fmt.Sprintf(" w%d.%d", e.Msg.Worker, e.Msg.Iter)
		case core.Commit:
			n.versions = append(n.versions, n.pending+" |")
			n.clocks = append(n.clocks, e.Clock)
			n.pending = ""
		case core.Reply:
			n.replies = append(n.replies, fmt.Sprintf("w%d@%d", e.To, e.Msg.Iter))
			sent := core.Input{Kind: core.ReplySent, Shard: n.id, Buf: e.Src, Worker: e.To}
			if n.slow != nil {
				n.slow = append(n.slow, sent)
				continue
			}
			n.step(sent)
		}
	}
	if err := n.s.Check(); err != nil {
		n.t.Fatal(err)
	}
}

func (n *lone) push(w int32, iter int64) {
	n.t.Helper()
	n.step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Push, Shard: n.id, Worker: w, Owner: w, Iter: iter, Parts: 1,
		Samples: 1}})
	n.step(core.Input{Kind: core.PieceLanded, Piece: n.id, Shard: n.id, Worker: w, Slot: n.slot[w]})
}

func (n *lone) pull(w int32, iter int64) {
	n.t.Helper()
	n.step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Pull, Shard: n.id, Worker: w, Iter: iter}})
}

func (n *lone) leave(w int32) {
	n.t.Helper()
	n.step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Left, Worker: w, Clock: n.s.members.life[w]}})
}

func (n *lone) join(w int32) {
	n.t.Helper()
	n.step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Joined, Worker: w, Clock: n.s.members.life[w] + 1}})
}

// expect compares the replies since the last one.
func (n *lone) expect(want string) {
	n.t.Helper()
	if got := strings.Join(n.replies, " "); got != want {
		n.t.Errorf("replies %q, want %q", got, want)
	}
	n.replies = nil
}
