package layout

import (
	"fmt"
	"strings"

	"fluentps/configs"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
)

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
		if c.Whole() {
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
