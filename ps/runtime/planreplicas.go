package runtime

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/configs"
	"fluentps/ps/shard"
)

// planReplicas says how much of the memory file system of each host the replicas of checkpoints take.
func planReplicas(b *strings.Builder, c *configs.Config, p *shard.Plan, roles shard.Roles, hosts []string) {
	if c.Checkpoint.Replica == 0 {
		return
	}
	nodeOf := make([]int, len(hosts))
	for rank, host := range hosts {
		nodeOf[rank] = slices.Index(hosts, host)
	}
	bytes, senders := make([]int64, len(hosts)), make([]int, len(hosts))
	for rank, to := range neighbors(nodeOf) {
		n := 2 * savedBytes(c, p, roles, rank) // the version that is whole, and the next
		bytes[nodeOf[rank]] += n
		if to >= 0 {
			bytes[nodeOf[to]] += n
			senders[to]++
		}
	}
	var text []string
	for rank, node := range nodeOf {
		if rank == node {
			text = append(text, fmt.Sprintf("%s on %s", size(bytes[rank]), hosts[rank]))
		}
	}
	if n := len(text); n > 8 {
		text = append(text[:8], fmt.Sprintf("and so on for %d more", n-8))
	}
	fmt.Fprintf(b, "Replicas: at most, beside headers, %s in %s; each rank: at most %s of parcels\n", strings.Join(text, ", "), memoryRoot, size(int64(slices.Max(senders)+2)*(parcelHead+parcelMax)))
}

// savedBytes is what a rank's vectors take in a checkpoint.
func savedBytes(c *configs.Config, p *shard.Plan, roles shard.Roles, rank int) (bytes int64) {
	if server := roles.Server(rank); server >= 0 {
		for _, id := range p.OfServer(int32(server)) {
			vectors := int64(1)
			if c.Optimized(&p.Shards[id]) {
				vectors += optimizerVectors(c)
			}
			bytes += vectors * p.Shards[id].Bytes()
		}
	}
	if roles.Worker(rank) >= 0 {
		bytes += keptBytes(c, p)
	}
	return bytes
}

// replicaWarnings says where replicas protect against less than one may think.
func replicaWarnings(c *configs.Config, hosts []string) []string {
	if c.Checkpoint.Replica == 0 || slices.ContainsFunc(hosts, func(host string) bool { return host != hosts[0] }) {
		return nil
	}
	return []string{"checkpoint.replica: all ranks are on one host, so that replicas outlive processes and not the host"}
}
