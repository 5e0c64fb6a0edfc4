package servernode

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

// A shard changes from quorum to bsp, or to quorum again, while an alarm is on its way. The new scheme, which may know no
// alarms, does not hear of it; it hears of those that it has asked for itself.
func TestAlarmsOfAnEarlierSchemeAreForNobody(t *testing.T) {
	for _, next := range []rule{{name: "bsp"}, {name: "quorum", params: &scheme.QuorumParams{Required: 1, MAD: 3, GraceMax: 1}}} {
		plan, err := shard.Cut([]shard.Param{{Name: "l0.w", N: 4}},
			shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 1, Rules: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		r := rule{name: "quorum", params: &scheme.QuorumParams{Required: 1, MAD: 3, GraceMax: 1}, until: []int64{1}, then: []rule{next}}
		var told []time.Duration // times of the alarms that schemes heard of
		node := New(Config{Plan: plan, Workers: 2, Schemes: map[int32]inturn.ShardScheme{0: mustScheme(r, []int32{0}, 0, 2)},
			Decided: func(ev scheme.Event, _ []scheme.Decision) {
				if ev.Kind == scheme.Alarm {
					told = append(told, ev.At)
				}
			}})
		var asked []time.Duration
		step := func(in core.Input) {
			for _, e := range node.Step(in, nil) {
				if e.Kind == core.WakeAt {
					asked = append(asked, e.At)
				}
			}
		}
		version := int64(0)
		push := func(w int32, i int64, at time.Duration) {
			step(core.Input{Kind: core.Arrived, At: at,
				Msg: wire.Header{Kind: wire.Push, Worker: w, Owner: w, Parts: 1, Iter: i, Samples: 1, Version: version}})
			slot := node.shards[0].peers[w].landing.slot
			step(core.Input{Kind: core.PieceLanded, At: at, Worker: w, Slot: slot})
		}
		pull := func(w int32, i int64, at time.Duration) {
			step(core.Input{Kind: core.Arrived, At: at, Msg: wire.Header{Kind: wire.Pull, Worker: w, Iter: i}})
			if buf := node.shards[0].peers[w].replyBuf; buf >= 0 {
				step(core.Input{Kind: core.ReplySent, At: at, Worker: w, Buf: buf})
			}
		}
		pull(0, 0, 0)
		pull(1, 0, 0)
		push(0, 0, 10)
		push(1, 0, 12) // the round ends, and with it the scheme
		pull(0, 1, 12)
		pull(1, 1, 12)
		if fmt.Sprint(asked) != "[20ns]" {
			t.Fatalf("asked for alarms at %v, want one at 20ns", asked)
		}
		version = node.shards[0].version
		push(0, 1, 18)
		asked = slices.DeleteFunc(asked, func(at time.Duration) bool { return at == 20 })
		step(core.Input{Kind: core.Alarm, At: 20})
		if len(told) > 0 {
			t.Errorf("quorum, then %s: the new scheme hears of alarms at %v", next.name, told)
		}
		for _, at := range asked {
			step(core.Input{Kind: core.Alarm, At: at})
		}
		if fmt.Sprint(told) != fmt.Sprint(asked) || (len(asked) > 0) != (next.name == "quorum") {
			t.Errorf("quorum, then %s: alarms at %v were asked for, the scheme hears of %v", next.name, asked, told)
		}
	}
}
