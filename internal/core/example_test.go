package core_test

import (
	"fmt"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/servernode"
	"fluentps/internal/core/shard"
	"fluentps/ps/scheme"
)

// A push, a fold, a version and a reply, from one end to the other. Two workers train the parameters w under bsp. The
// example is the server's driver: it holds the floats, and the node decides what happens to them.
func Example() {
	plan, _ := shard.Cut([]shard.Param{{Name: "w", N: 2}}, shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 1, Rules: []string{"*"}})
	bsp, _ := scheme.All.Lookup("bsp")
	phase := scheme.Phase{Scheme: bsp.Name, Common: scheme.Common{Fold: bsp.Fold}, Params: bsp.Params()}
	schemes, _ := inturn.NewShardSchemes([]scheme.Phase{phase}, scheme.Env{Workers: 2, Shards: []int32{0}, Servers: 1}, 0)
	server := servernode.New(servernode.Config{Plan: plan, Workers: 2, Schemes: map[int32]inturn.ShardScheme{0: schemes}})

	gradients := [][2]float64{{1, 2}, {3, 4}}       // by worker
	slots := map[int32][2]float64{}                 // pushes that have landed
	var pending [2]float64                          // the sum that the next version applies
	versions := map[int32][2]float64{0: {100, 100}} // parameters, by buffer; no commit touches the buffer of a reply
	var happens func(core.Input)
	happens = func(in core.Input) {
		for _, e := range server.Step(in, nil) {
			switch s := e.Slot; e.Kind {
			case core.Stage: // the header has come, the gradient follows
				slots[s] = gradients[e.To]
				happens(core.Input{Kind: core.PieceLanded, Slot: s, Worker: e.To})
			case core.Fold:
				fmt.Printf("  fold the push of worker %d\n", e.Msg.Worker)
				for i := range pending {
					pending[i] = e.Scale*pending[i] + e.Weight*slots[s][i]
				}
			case core.Commit: // plain SGD at a rate of 10
				v := versions[e.Src]
				for i := range v {
					v[i] -= 10 * e.Weight * pending[i]
				}
				versions[e.Dst], pending = v, [2]float64{}
				fmt.Println("  commit", v)
			case core.Reply:
				fmt.Printf("  reply to worker %d: compute iteration %d on version %d, %v\n", e.To, e.Msg.Iter, e.Msg.Version, versions[e.Src])
				happens(core.Input{Kind: core.ReplySent, Buf: e.Src, Worker: e.To})
			}
		}
	}
	for w := range int32(2) { // each worker pushes what it computed in iteration 0, and pulls for iteration 1
		fmt.Printf("worker %d pushes %v and pulls\n", w, gradients[w])
		happens(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Push, Worker: w, Owner: w, Parts: 1, Samples: 1}})
		happens(core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Pull, Worker: w, Iter: 1}})
	}
	// Output:
	// worker 0 pushes [1 2] and pulls
	// worker 1 pushes [3 4] and pulls
	//   fold the push of worker 0
	//   fold the push of worker 1
	//   commit [80 70]
	//   reply to worker 0: compute iteration 1 on version 1, [80 70]
	//   reply to worker 1: compute iteration 1 on version 1, [80 70]
}
