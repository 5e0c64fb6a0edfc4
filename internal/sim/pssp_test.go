package sim_test

import (
	"fmt"
	"testing"
	"time"

	"fluentps/internal/core/shard"
	"fluentps/internal/sim"
	"fluentps/internal/sim/check"
	"fluentps/internal/sim/simtest"
)

// psspShards runs 8 workers, one of them 4 times slower, with so many shards on one server. The network costs nothing, so all shards
// get a request at the same time.
func psspShards(t *testing.T, shards int, keys string) *sim.Result {
	t.Helper()
	c := simtest.Setting{Workers: 8, Servers: 1, Seed: 1, Iterations: 600,
		Scheme: "pssp, staleness: 3, probability: 0.1, pause_only_fastest: false" + keys,
		Set:    append(simtest.Noisy(10*time.Millisecond, 0.1, "{worker: 0, slow: {factor: 4}}"), "shards.slice=layer")}
	o := c.Options(t)
	var params []shard.Param
	for k := range shards {
		params = append(params, shard.Param{Name: fmt.Sprintf("l%d.weight", k), Layer: k, N: 4})
	}
	plan, err := shard.Cut(params, shard.Options{Slice: "layer", MaxBytes: 1 << 20, Servers: 1, Rules: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	o.Plan = plan
	r, err := check.Run(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// There is one coin per request: a server with 16 shards of a rule holds and releases the same workers as one with a single shard.
// A coin per shard would hold a worker 1 - 0.9^16 of the time instead of 0.1, and the largest lead would be a fraction.
func TestShardsOfAServerHaveOneCoin(t *testing.T) {
	one, many, each := psspShards(t, 1, ""), psspShards(t, 16, ""), psspShards(t, 16, ", coin: shard")
	t.Logf("c = 0.1, the coin for all, largest lead: 1 shard %d, 16 shards %d, 16 shards with a coin each %d",
		one.Summary.MaxLead, many.Summary.MaxLead, each.Summary.MaxLead)
	t.Logf("delayed pulls of a shard: %d, %d, %d", one.Delayed, many.Delayed/16, each.Delayed/16)
	if many.Delayed != 16*one.Delayed || many.Summary.MaxLead != one.Summary.MaxLead || many.Duration != one.Duration {
		t.Errorf("16 shards: %d delayed pulls, largest lead %d, %v; 1 shard: %d, %d, %v", many.Delayed,
			many.Summary.MaxLead, many.Duration, one.Delayed, one.Summary.MaxLead, one.Duration)
	}
	for i, s := range many.Summary.PerShard {
		if first := one.Summary.PerShard[0]; s.DelayedPulls != first.DelayedPulls || s.LeadMax != first.LeadMax {
			t.Errorf("shard %d of 16 delayed %d pulls, largest lead %d; the only one %d and %d", i, s.DelayedPulls, s.LeadMax,
				first.DelayedPulls, first.LeadMax)
		}
	}
	if each.Summary.MaxLead >= one.Summary.MaxLead/2 {
		t.Errorf("with a coin of each shard the largest lead is %d, with one of the server %d", each.Summary.MaxLead, one.Summary.MaxLead)
	}
}
