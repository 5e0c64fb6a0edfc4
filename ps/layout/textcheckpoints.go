package layout

import (
	"fmt"
	"strings"

	"fluentps/configs"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
)

// planCheckpoints says when checkpoints are written while training goes on, how large they are, and which are kept.
func planCheckpoints(b *strings.Builder, c *configs.Config, p *shard.Plan, workers int) {
	k := &c.Checkpoint
	if !k.Periodic() {
		return
	}
	every := fmt.Sprintf("every %s", k.Every)
	if k.EveryUpdates > 0 {
		every = fmt.Sprintf("every %d versions of the lead shard", k.EveryUpdates)
	}
	how := "of a version that is named ahead; nobody waits"
	if !c.InStep() {
		how = "for each all workers pause until the slowest has ended its iteration"
		if c.Whole() {
			how += ", the same one for all"
		}
	}
	var bytes int64
	for i := range p.Shards {
		s := &p.Shards[i]
		bytes += s.Bytes() * int64(Vectors(c, s))
	}
	bytes += int64(workers) * keptBytes(c, p)
	fmt.Fprintf(b, "\nCheckpoints of %s: %s, %s\n  kept: the newest %d", metrics.Size(bytes), every, how, k.Keep)
	if k.Best != configs.BestNone {
		fmt.Fprintf(b, ", and the best by test %s, for which rank 0 looks at each, beside training", k.Best)
	}
	b.WriteString("\n")
}
