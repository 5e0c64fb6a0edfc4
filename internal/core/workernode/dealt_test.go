package workernode

import (
	"testing"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/coretest"
)

// A worker waits between two iterations until it knows the batch of the next one. If no batch follows, it ends as after a stop.
func TestAWorkerWaitsForItsBatch(t *testing.T) {
	for _, early := range []bool{false, true} {
		for _, flags := range []uint8{0, wire.Stop} {
			w := New(0, coretest.Layered(t, 2), coretest.FIFO(), 0)
			if early {
				w.StartEarly(func(int) bool { return false })
			}
			w.DealUntil(1)
			started := func(out []core.Effect) (n int) {
				for _, e := range out {
					if e.Kind == core.Compute {
						n++
					}
				}
				return n
			}
			reply := func(iter int64) []core.Effect {
				var out []core.Effect
				for s := range int32(2) {
					out = w.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Reply, Shard: s, Iter: iter, Clock: iter}}, out)
					out = w.Step(core.Input{Kind: core.PieceLanded, Piece: s}, out)
				}
				return out
			}
			w.Step(core.Input{Kind: core.Begin}, nil)
			if n := started(reply(0)); n != 1 || w.AwaitsBatch() {
				t.Fatalf("early %t: %d iterations started before the first batch ended: %v", early, n, w)
			}
			w.Step(core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: 1}}, nil)
			for _, in := range []core.Input{{Kind: core.PieceReady, Piece: 1}, {Kind: core.PieceReady}, {Kind: core.TaskDone},
				{Kind: core.PieceSent, Piece: 1}, {Kind: core.PieceSent}} {
				w.Step(in, nil)
			}
			if n := started(reply(1)); n != 0 || !w.AwaitsBatch() || w.State() != core.Waiting {
				t.Fatalf("early %t: %d iterations started without a batch: %v", early, n, w)
			}
			out := w.Step(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Dealt, Flags: flags, Clock: 2}}, nil)
			if flags == wire.Stop {
				if started(out) != 0 || w.State() != core.Finished {
					t.Errorf("early %t: with no more batches %v: %v", early, out, w)
				}
			} else if started(out) != 1 || w.AwaitsBatch() {
				t.Errorf("early %t: with its batch %v: %v", early, out, w)
			}
			if err := w.Check(); err != nil {
				t.Error(err)
			}
		}
	}
}
