package layout

import (
	"fmt"
	"strings"

	"fluentps/internal/configs"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/show/metrics"
	"fluentps/ps/scheme"
)

// PausesInStep says whether a pause stops all workers at the same iteration.
func PausesInStep(c *configs.Config, p *shard.Plan) bool {
	rules := make([][]scheme.Phase, len(c.Sync))
	for i := range p.Shards {
		rule := p.Shards[i].Rule
		rules[rule] = c.Sync[rule].InTurn()
	}
	// a worker that waits for its batch gets no reply that could stop it
	return c.DealsBatches() || inturn.MustPauseInStep(rules, int(p.Shards[0].Rule))
}

// planCheckpoints prints when checkpoints are written during training, how large they are, and which are kept.
func planCheckpoints(b *strings.Builder, c *configs.Config, p *shard.Plan, workers int) {
	k := &c.Checkpoint
	if !k.Periodic() {
		return
	}
	every := fmt.Sprintf("every %s", k.Every)
	if k.EveryUpdates > 0 {
		every = fmt.Sprintf("every %d versions of the lead shard", k.EveryUpdates)
	}
	how := "of a version announced in advance; no worker waits"
	if !c.InStep() {
		how = "all workers pause for each until the slowest has ended its iteration"
		if PausesInStep(c, p) {
			how += ", the same iteration for all"
		}
	}
	var bytes int64
	for i := range p.Shards {
		s := &p.Shards[i]
		bytes += s.Bytes() * int64(Vectors(c, s))
	}
	bytes += int64(workers) * checkpointCopyBytes(c, p)
	fmt.Fprintf(b, "\nCheckpoints of %s: %s, %s\n  kept: the newest %d", metrics.Size(bytes), every, how, k.Keep)
	if k.Best != configs.BestNone {
		fmt.Fprintf(b, ", and the best by test %s, for which rank 0 evaluates each, beside training", k.Best)
	}
	b.WriteString("\n")
}
