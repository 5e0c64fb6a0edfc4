// Package coretest has what the tests of both nodes share: plans, send policies, and effects as text.
package coretest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/send"
)

// FIFO is the send policy that keeps the order.
func FIFO() send.Policy {
	e, _ := send.All.Lookup("fifo")
	return e.New(send.Options{})
}

// Text is effects on one line.
func Text(out []core.Effect) string {
	var lines []string
	for _, e := range out {
		lines = append(lines, e.String())
	}
	return strings.Join(lines, "; ")
}

// ThreeShards is a small net whose plan has exactly 3 shards on 2 servers. fc2's rule takes one parameter, so it has
// one shard; fc1's rule has two.
func ThreeShards(t testing.TB) *shard.Plan {
	p, err := shard.Cut([]shard.Param{
		{Name: "fc1.weight", Layer: 0, N: 6}, {Name: "fc1.bias", Layer: 0, N: 2}, {Name: "fc2.weight", Layer: 1, N: 1},
	}, shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 2, Rules: []string{"fc2.*", "*"}})
	if err != nil || len(p.Shards) != 3 {
		t.Fatalf("plan %+v, %v", p, err)
	}
	return p
}

// Lowest releases one piece at a time, the lowest first: it holds back the pieces that the next forward needs last.
type Lowest struct {
	held   []int32
	flying bool
}

// Step is part of send.Policy.
func (l *Lowest) Step(ev send.Event, out []int32) []int32 {
	if ev.Kind == send.Handed {
		l.held = append(l.held, ev.Piece)
		slices.Sort(l.held)
	} else if ev.Kind == send.Sent {
		l.flying = false
	}
	if ev.Kind != send.Started && !l.flying && len(l.held) > 0 {
		out = append(out, l.held[0])
		l.held, l.flying = l.held[1:], true
	}
	return out
}

// Held is part of send.Policy.
func (l *Lowest) Held() int { return len(l.held) }

func (l *Lowest) String() string { return fmt.Sprintf("lowest held=%d", len(l.held)) }

// Layered is a net of n layers of one parameter each, one shard per layer on two servers. Layer 0 is not in the lead shard.
func Layered(t testing.TB, n int) *shard.Plan {
	var params []shard.Param
	for l := range n {
		params = append(params, shard.Param{Name: fmt.Sprintf("l%d", l), Layer: l, N: 1})
	}
	p, err := shard.Cut(params, shard.Options{Slice: "layer", MaxBytes: 4, Servers: 2, Rules: []string{fmt.Sprintf("l%d", n-1), "*"}})
	if err != nil || len(p.Shards) != n || p.Shards[0].Pieces[0].Layer == 0 {
		t.Fatalf("plan %+v, %v", p, err)
	}
	return p
}

// TwoServers is a plan with a shard of a, under asp, and a shard of b, under r2sp, on each of two servers.
func TwoServers(t *testing.T) (*shard.Plan, func(int) string) {
	t.Helper()
	plan, err := shard.Cut([]shard.Param{{Name: "a", Layer: 1, N: 4}, {Name: "b", Layer: 0, N: 4}},
		shard.Options{Slice: "even", MaxBytes: 4, Servers: 2, Rules: []string{"a", "b"}})
	if err != nil || len(plan.Shards) != 4 {
		t.Fatalf("%+v, %v", plan, err)
	}
	return plan, func(rule int) string { return []string{"asp", "r2sp"}[rule] }
}
