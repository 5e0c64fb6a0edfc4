package runtime

import (
	"fmt"
	"strings"
	"testing"

	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
)

// The copy of a single worker equals its server's parameters to the bit: the worker adds its own updates as the server's
// commits do, also those that a published version lacks. So it trains the same parameters whether it pulls before every
// iteration, keeps a cache, or has versions published to it; on a rank of its own or on the server's; in one piece or many.
func TestALoneWorkersCopyIsTheServersToTheBit(t *testing.T) {
	for _, world := range []struct {
		ranks int
		set   []string
	}{
		{2, []string{"cluster.servers=1"}},
		{4, []string{"cluster.servers=3", "model={name: mlp, layers: [16]}", "shards.max_bytes=128B"}},
		{1, []string{"cluster.servers=1", "cluster.placement=colocate", "model={name: mlp, layers: [16]}"}},
	} {
		for _, rule := range []string{"ssp, push: delta, cache: true, staleness: 3",
			"ssp, push: delta, cache: true, weight: 0.3, staleness: 2", "essp, staleness: 2",
			"essp, staleness: 0, weight: 0.3", "essp, staleness: 40"} {
			t.Run(fmt.Sprintf("%d ranks, %s", world.ranks, rule), func(t *testing.T) {
				got := mustTrain(t, load(t,
					append(world.set, "train.stop={updates: 60}", "sync=[{match: '*', scheme: "+rule+"}]")...), world.ranks).Summary
				n := got.PerWorker[0].Iterations
				weight := ""
				if strings.Contains(rule, "weight") {
					weight = ", weight: 0.3"
				}
				asp := fmt.Sprintf("sync=[{match: '*', scheme: asp, push: delta%s}]", weight)
				want := mustTrain(t, load(t, append(world.set, fmt.Sprintf("train.stop={updates: %d}", n), asp)...), world.ranks).Summary
				if got.ParametersSHA256 != want.ParametersSHA256 || want.PerWorker[0].Iterations != n {
					t.Errorf("%d iterations give %.12s, asp gives %.12s in %d", n, got.ParametersSHA256, want.ParametersSHA256,
						want.PerWorker[0].Iterations)
				}
				for _, sh := range got.PerShard {
					cached, published := strings.Contains(rule, "cache"), strings.HasPrefix(rule, "essp")
					if (sh.CachedReads > 0) != cached || (sh.SavedBytes > 0) != cached || (sh.Published > 0) != published || sh.StalenessMax != 0 {
						t.Errorf("shard %+v", sh)
					}
					asked := int64(0) // at the end, when the budget may be used up before the next version arrives
					if sh.Shard == 0 {
						var s int64
						_, after, _ := strings.Cut(rule, "staleness: ")
						if _, err := fmt.Sscan(after, &s); err != nil {
							t.Fatal(err)
						}
						asked = s + 2
					}
					if published && (sh.Pulls < 1 || sh.Pulls > 1+asked) || cached && sh.Pulls+sh.CachedReads != n+1 {
						t.Errorf("shard %d: %d pulls and %d cached reads in %d iterations", sh.Shard, sh.Pulls, sh.CachedReads, n)
					}
				}
			})
		}
	}
}

// The memory limits count a worker's copies: for published shards a version beside the arena and s+1 pushes.
func TestCopiesAreCountedAsMemory(t *testing.T) {
	bytes := func(sync string) (n, arena int64) {
		c := load(t, "train.optimizer={name: sgd, lr: 0.1}", "sync="+sync)
		p, err := shard.Cut([]shard.Param{{Name: "a", N: 100}, {Name: "b", N: 50}},
			shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 2, Rules: []string{"a", "*"}})
		if err != nil {
			t.Fatal(err)
		}
		return layout.WorkerBytes(c, p, 4), int64(p.Arena) * shard.ElemBytes
	}
	for sync, want := range map[string]int64{
		"[{match: a, scheme: asp}, {match: '*', scheme: asp}]":                               0,
		"[{match: a, scheme: ssp, push: delta, cache: true}, {match: '*', scheme: asp}]":     0,
		"[{match: a, scheme: essp, staleness: 3}, {match: '*', scheme: asp}]":                5 * 400,
		"[{match: a, scheme: essp, staleness: 3}, {match: '*', scheme: essp, staleness: 0}]": 5*400 + 2*200,
	} {
		if n, arena := bytes(sync); n != 2*arena+want {
			t.Errorf("%s: %d bytes, want %d beside 2 of %d", sync, n, want, arena)
		}
	}
}
