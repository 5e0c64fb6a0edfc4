package serve_test

import (
	"fmt"
	"testing"

	"fluentps/internal/configs"
	"fluentps/internal/configs/configstest"
	"fluentps/internal/rank/sidestest"
)

func load(t testing.TB, set ...string) *configs.Config {
	t.Helper()
	return configstest.Load(t, append([]string{"evaluate.every_epochs=0"}, set...)...)
}

// mustTrain trains with the sides of so many ranks.
func mustTrain(t testing.TB, c *configs.Config, ranks int) *sidestest.Result {
	t.Helper()
	return sidestest.Train(t, c, ranks, sidestest.Options{})
}

// Optimizers with more state than a velocity keep the law "BSP is exact" over servers and pieces.
func TestOptimizersGiveTheSameBitsOverServersAndPieces(t *testing.T) {
	for name, set := range map[string][]string{
		"adam":  {"train.optimizer={name: adam, lr: 0.02, weight_decay: 0.01}", "train.schedule={name: cosine, over: 25, warm_up: 5}"},
		"adamw": {"train.optimizer={name: adamw, lr: 0.02, weight_decay: 0.5}", "train.schedule={name: cosine, over: 25, warm_up: 5}"},
		"muon": {"train.optimizer={name: muon, lr: 0.02, weight_decay: 0.1, others: {lr: 0.02}}",
			"train.schedule={name: cosine, over: 25, warm_up: 5}", "shards.slice=layer"},
		"clip": {"train.clip={norm: 0.3}"},
		"lars": {"train.optimizer={name: lars, lr: 2, trust: 0.02, weight_decay: 0.01}",
			"train.schedule={name: poly, over: 25, warm_up: 5}", "shards.slice=layer"},
	} {
		t.Run(name, func(t *testing.T) {
			base := append([]string{"model={name: mlp, layers: [16, 8]}"}, set...)
			want := mustTrain(t, load(t, append(base, "cluster.servers=1")...), 5)
			for ranks, cut := range map[int]string{6: "cluster={servers: 2}", 7: "cluster={servers: 3}",
				4: "cluster={servers: 2, placement: colocate}"} {
				got := mustTrain(t, load(t, append(base, cut, "shards.max_bytes=64B", "device.threads=2")...), ranks)
				if got.SHA256() != want.SHA256() {
					t.Errorf("%s: sha256 %s, want %s", cut, got.SHA256(), want.SHA256())
				}
			}
		})
	}
}

// Mixed placement, with dedicated servers beside servers that also work, only changes where sums are computed.
func TestMixedPlacementEndsWithTheBitsOfSpread(t *testing.T) {
	want := mustTrain(t, load(t), 6).SHA256()
	for servers, ranks := range map[string]int{"1": 5, "3": 7, "4": 8} {
		s := mustTrain(t, load(t, "cluster.placement=mixed", "cluster.servers="+servers), ranks)
		if s.SHA256() != want || len(s.Workers) != 4 || len(s.Servers) != ranks {
			t.Errorf("%s dedicated servers: %d servers, %d workers, %s, want %s", servers, len(s.Servers), len(s.Workers), s.SHA256(), want)
		}
	}
}

// One worker under r2sp is sequential SGD bit for bit (invariant 5 of section 1.3 of the notes on stragglers [R]), over any
// number of servers and of rules that share the rotation.
func TestR2SPOfOneWorkerIsSequentialToTheBit(t *testing.T) {
	base := []string{"train.stop.updates=40", "train.optimizer={name: momentum, lr: 0.05, momentum: 0.9}", "model={name: mlp, layers: [16]}"}
	hash := func(ranks int, sync string) string {
		return mustTrain(t, load(t, append(base, fmt.Sprintf("cluster.servers=%d", ranks-1), "sync="+sync)...), ranks).SHA256()
	}
	want := hash(2, "[{match: '*', scheme: bsp}]")
	for _, sync := range []string{"[{match: '*', scheme: r2sp}]",
		"[{match: '*.bias', scheme: r2sp}, {match: '*', scheme: r2sp}]",
		"[{match: '*.bias', scheme: bsp}, {match: '*', scheme: r2sp, skip_after: 0}]"} {
		for _, ranks := range []int{2, 4} {
			if got := hash(ranks, sync); got != want {
				t.Errorf("%s over %d servers: parameters %.12s, bsp %.12s", sync, ranks-1, got, want)
			}
		}
	}
}
