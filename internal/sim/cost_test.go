package sim_test

import (
	"fmt"
	"testing"
	"time"

	"fluentps/internal/configs/configstest"
	"fluentps/internal/core/shard"
	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
)

// The time of computing is the cost of the worker's batch times the worker's multiple.
func TestComputingCostsByTheBatch(t *testing.T) {
	for _, batch := range []string{"batch_per_worker: 24", "batch_global: 49"} {
		c := configstest.Load(t, "cluster.servers=1", "train={"+batch+", optimizer: {name: sgd, lr: 0.1}, stop: {updates: 20}}",
			"simulate={workers: 2, compute: {fixed: 1ms, per_sample: 200us}, per_worker: [1, 2], network: {latency: 0s}, "+
				"server: {fold: 0B, commit: 0B}}", "evaluate.every_epochs=0")
		plan, err := shard.Cut([]shard.Param{{Name: "a", N: 8}},
			shard.Options{Slice: "even", MaxBytes: 1 << 20, Servers: 1, Rules: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		shares := []int64{24, 24}
		if c.Train.BatchGlobal > 0 {
			shares = []int64{25, 24}
		}
		computed := 0
		_, err = check.Run(sim.Options{Config: c, Plan: plan, Rows: 480, Computed: func(w int, iter int64, from, until time.Duration) {
			computed++
			want := time.Duration(1+w) * (time.Millisecond + time.Duration(shares[w])*200*time.Microsecond)
			if until-from != want {
				t.Errorf("%s: worker %d computes iteration %d for %v, want %v", batch, w, iter, until-from, want)
			}
		}})
		if err != nil || computed != 40 {
			t.Error(fmt.Errorf("%s: %d iterations: %w", batch, computed, err))
		}
	}
}
