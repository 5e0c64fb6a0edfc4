package layout

import (
	"fmt"
	"strings"

	"fluentps/configs"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
)

// planBaseline says what the run is, in place of our protocol.
func planBaseline(b *strings.Builder, c *configs.Config, p *shard.Plan) {
	switch c.Baseline {
	case configs.BaselineAllreduce:
		n := len(p.Buckets())
		fmt.Fprintf(b, "\nBaseline allreduce: no servers and no shards, all ranks work (cluster.servers, cluster.placement, shards and send are not used)\n"+
			"  gradients of %d parameters are summed over all ranks in %s of at least %s (but the last), last layers first, while backward runs\n",
			p.Arena, metrics.Count(n, "collective"), metrics.Size(shard.BucketBytes))
	case configs.BaselinePSLite:
		fmt.Fprintf(b, "\nBaseline pslite: keys: %s: %s (shards.max_bytes and send are not used)\n"+
			"  after backward all keys are pushed, each push is acknowledged, a barrier at rank 0, then all keys are pulled\n", c.BaselineKeys, keysText[c.BaselineKeys])
	}
}

// keysText says what a key is and what a message.
var keysText = map[string]string{
	shard.KeysTensor: "every tensor is a key, with a message of its own",
	shard.KeysList:   "every tensor is a key, and a message has all that a server holds, with 12 bytes a tensor of key and length, a pull with 8",
	shard.KeysScalar: "every scalar is a key, and a message has all that a server holds: 12 bytes a parameter pushed, 8 pulled, 12 replied",
}

// planReduced is the traffic of an all-reduce. What moves inside it is the MPI library's affair.
func planReduced(b *strings.Builder, p *shard.Plan, workers int) {
	bytes := int64(p.Arena+shard.BucketTail) * shard.ElemBytes
	fmt.Fprintf(b, "\nTraffic per iteration: each worker gives %s to the collective and takes as much, the sums; a ring would move %s each way\n",
		metrics.Size(bytes), metrics.Size(2*bytes*int64(workers-1)/int64(workers)))
}
