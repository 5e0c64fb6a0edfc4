package layout

import (
	"fmt"
	"strings"

	"fluentps/configs"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
)

// planTeams prints which ranks compute for which worker, if the ranks of a host are one worker, and how many bytes that
// saves on the network.
func planTeams(b *strings.Builder, p *shard.Plan, roles shard.Roles, hosts []string) {
	if roles.Teams == nil {
		return
	}
	computes := roles.Computing()
	fmt.Fprintf(b, "\nHierarchy node: %s for %s, which push and pull; gradients are summed on each host\n", metrics.Count(len(computes), "rank")+" compute", metrics.Count(len(roles.Workers), "worker"))
	const shown = 8
	for w := range roles.Workers {
		if w == shown {
			fmt.Fprintf(b, "  ... and %d more\n", len(roles.Workers)-shown)
			break
		}
		fmt.Fprintf(b, "  w%d on %s: ranks %s\n", w, hosts[roles.Workers[w]], strings.Trim(fmt.Sprint(roles.Team(w)), "[]"))
	}
	fmt.Fprintf(b, "  parameters and gradients between hosts per iteration: %s; without hierarchy %s\n",
		metrics.Size(bytesBetweenHosts(p, roles, roles.Workers, hosts)), metrics.Size(bytesBetweenHosts(p, roles, computes, hosts)))
}

// bytesBetweenHosts is how many bytes of parameters and gradients cross the network when these ranks push and pull once.
func bytesBetweenHosts(p *shard.Plan, roles shard.Roles, ranks []int, hosts []string) int64 {
	var bytes int64
	for _, rank := range ranks {
		for i := range p.Shards {
			if sh := &p.Shards[i]; hosts[rank] != hosts[roles.Servers[sh.Server]] {
				push, reply := sh.WireBytes()
				bytes += push + reply
			}
		}
	}
	return bytes
}

// planMixed prints what the servers of mixed placement hold.
func planMixed(b *strings.Builder, c *configs.Config, p *shard.Plan, roles shard.Roles) {
	if c.Cluster.Placement != "mixed" || Reduces(c) {
		return
	}
	dedicated := c.Cluster.Servers
	shares := shard.MixedShares(dedicated, len(roles.Servers)-dedicated)
	total := 0
	for _, s := range shares {
		total += s
	}
	part := func(share int) string {
		return fmt.Sprintf("%.1f%% of the parameters, about %s", 100*float64(share)/float64(total), metrics.Size(int64(p.Arena)*shard.ElemBytes*int64(share)/int64(total)))
	}
	fmt.Fprintf(b, "\nPlacement mixed (the split of BytePS, for one rank a machine): %d that only serve hold %s each\n  %d that work too hold %s each\n",
		dedicated, part(shares[0]), len(shares)-dedicated, part(shares[len(shares)-1]))
}
