package runtime

import "testing"

// Optimizers with more state than a velocity keep the law "BSP is exact" over servers and pieces.
func TestOptimizersGiveTheSameBitsOverServersAndPieces(t *testing.T) {
	for name, set := range map[string][]string{
		"adam": {"train.optimizer={name: adam, lr: 0.02, weight_decay: 0.01}", "train.schedule={name: cosine, over: 25, warm_up: 5}"},
		"lars": {"train.optimizer={name: lars, lr: 2, trust: 0.02, weight_decay: 0.01}",
			"train.schedule={name: poly, over: 25, warm_up: 5}", "shards.slice=layer"},
	} {
		t.Run(name, func(t *testing.T) {
			base := append([]string{"model={name: mlp, layers: [16, 8]}"}, set...)
			want := mustTrain(t, load(t, append(base, "cluster.servers=1")...), 5).Summary
			if *want.TestAccuracy < 0.6 {
				t.Errorf("test accuracy %.3f after %d iterations", *want.TestAccuracy, want.Iterations)
			}
			for ranks, cut := range map[int]string{6: "cluster={servers: 2}", 7: "cluster={servers: 3}",
				4: "cluster={servers: 2, placement: colocate}"} {
				got := mustTrain(t, load(t, append(base, cut, "shards.max_bytes=64B", "device.threads=2")...), ranks).Summary
				if got.ParametersSHA256 != want.ParametersSHA256 {
					t.Errorf("%s: sha256 %s, want %s", cut, got.ParametersSHA256, want.ParametersSHA256)
				}
			}
		})
	}
}
