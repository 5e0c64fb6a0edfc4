package layout

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/show/metrics"
)

// A file travels in parcels, one at a time between two ranks. Each parcel has a header: version, offset, length of the
// file, index, kind.
const (
	ParcelMax  = 256 << 10 // bytes of the file in a parcel
	ParcelHead = 32
)

// planReplicas prints how much of the memory file system of each host the replicas of checkpoints take.
func planReplicas(b *strings.Builder, c *configs.Config, p *shard.Plan, roles shard.Roles, hosts []string) {
	if c.Checkpoint.Replica == 0 {
		return
	}
	bytes := replicaBytes(c, p, roles, hosts)
	var text []string
	for rank, host := range hosts {
		if slices.Index(hosts, host) == rank {
			text = append(text, fmt.Sprintf("%s on %s", metrics.Size(bytes[host]), host))
		}
	}
	if n := len(text); n > 8 {
		text = append(text[:8], fmt.Sprintf("and so on for %d more", n-8))
	}
	senders := make([]int, len(hosts))
	for _, to := range Neighbors(nodesOf(hosts)) {
		if to >= 0 {
			senders[to]++
		}
	}
	fmt.Fprintf(b, "Replicas: at most, beside headers, %s in %s; each rank: at most %s of parcels\n",
		strings.Join(text, ", "), MemoryRoot, metrics.Size(int64(slices.Max(senders)+2)*(ParcelHead+ParcelMax)))
}

// nodesOf returns, by rank, the first rank of its host.
func nodesOf(hosts []string) []int {
	nodes, first := make([]int, len(hosts)), map[string]int{}
	for rank, host := range hosts {
		if _, seen := first[host]; !seen {
			first[host] = rank
		}
		nodes[rank] = first[host]
	}
	return nodes
}

// replicaBytes is what the replicas of checkpoints take in the memory file system of each host.
func replicaBytes(c *configs.Config, p *shard.Plan, roles shard.Roles, hosts []string) map[string]int64 {
	bytes := map[string]int64{}
	if c.Checkpoint.Replica == 0 {
		return bytes
	}
	for rank, to := range Neighbors(nodesOf(hosts)) {
		n := 2 * savedBytes(c, p, roles, rank) // the complete version and the next one
		bytes[hosts[rank]] += n
		if to >= 0 {
			bytes[hosts[to]] += n
		}
	}
	return bytes
}

// savedBytes is the size of a rank's vectors in a checkpoint.
func savedBytes(c *configs.Config, p *shard.Plan, roles shard.Roles, rank int) (bytes int64) {
	if server := roles.Server(rank); server >= 0 {
		for _, id := range p.OfServer(int32(server)) {
			bytes += int64(Vectors(c, &p.Shards[id])) * p.Shards[id].Bytes()
		}
	}
	if roles.Worker(rank) >= 0 {
		bytes += checkpointCopyBytes(c, p)
	}
	return bytes
}

// ReplicaWarnings warns if replicas protect against less than a user may expect.
func ReplicaWarnings(c *configs.Config, hosts []string) []string {
	if c.Checkpoint.Replica == 0 || slices.ContainsFunc(hosts, func(host string) bool { return host != hosts[0] }) {
		return nil
	}
	return []string{"checkpoint.replica: all ranks are on one host, so replicas survive the loss of processes, but not of the host"}
}

// MemoryRoot is the memory file system of a host.
const MemoryRoot = "/dev/shm"

// Neighbors returns, by rank, the rank that receives its files: the ranks of a host spread their files over those of the
// next host. -1: there is only one host.
func Neighbors(nodeOf []int) []int {
	var nodes []int
	ranks := map[int][]int{}
	for rank, node := range nodeOf {
		if ranks[node] == nil {
			nodes = append(nodes, node)
		}
		ranks[node] = append(ranks[node], rank)
	}
	next := make([]int, len(nodeOf))
	for rank, node := range nodeOf {
		next[rank] = -1
		if len(nodes) > 1 {
			on := ranks[nodes[(slices.Index(nodes, node)+1)%len(nodes)]]
			next[rank] = on[slices.Index(ranks[node], rank)%len(on)]
		}
	}
	return next
}
