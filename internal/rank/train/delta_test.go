package train_test

import "testing"

// One local step with plain SGD, averaged over the workers, is the synchronous update (sync-core 6.1 [P]): bsp with deltas
// trains the same as bsp with gradients. That holds with the workers' own momentum, too, because the mean of the workers'
// velocities is the velocity of the mean. A schedule and weight decay also reach the deltas.
func TestDeltasOfOneStepAreTheSynchronousUpdate(t *testing.T) {
	for name, set := range map[string][]string{
		"sgd":      {"train.optimizer={name: sgd, lr: 0.1, weight_decay: 0.01}"},
		"momentum": {"train.optimizer={name: momentum, lr: 0.05, momentum: 0.8}", "train.schedule={name: step, every: 10, factor: 0.5}"},
		"mixed":    {`sync=[{match: "*.bias", scheme: bsp, push: delta}, {match: "*", scheme: bsp}]`},
	} {
		t.Run(name, func(t *testing.T) {
			base := append([]string{"train.stop.updates=30", "cluster.servers=2", "model={name: mlp, layers: [16]}"}, set...)
			deltas := base
			if name != "mixed" {
				deltas = append(base, `sync=[{match: "*", scheme: bsp, push: delta}]`)
			}
			want := mustTrain(t, load(t, append(base, `sync=[{match: "*", scheme: bsp}]`)...), 6).Parameters
			got := mustTrain(t, load(t, deltas...), 6).Parameters
			if rel := relative(got, want); !(rel <= 1e-5) || len(got) != len(want) {
				t.Errorf("relative difference %.3g over %d parameters, the limit is 1e-5", rel, len(want))
			}
		})
	}
}
