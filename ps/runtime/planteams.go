package runtime

import (
	"fmt"
	"strings"

	"fluentps/ps/shard"
)

// planTeams says who computes for whom, where the ranks of a host are one worker, and what that spares the network.
func planTeams(b *strings.Builder, p *shard.Plan, roles shard.Roles, hosts []string) {
	if roles.Teams == nil {
		return
	}
	computes := roles.Computing()
	fmt.Fprintf(b, "\nHierarchy node: %s for %s, which push and pull; gradients are summed on each host\n", count(len(computes), "rank")+" compute", count(len(roles.Workers), "worker"))
	const shown = 8
	for w := range roles.Workers {
		if w == shown {
			fmt.Fprintf(b, "  ... and %d more\n", len(roles.Workers)-shown)
			break
		}
		fmt.Fprintf(b, "  w%d on %s: ranks %s\n", w, hosts[roles.Workers[w]], strings.Trim(fmt.Sprint(roles.Team(w)), "[]"))
	}
	fmt.Fprintf(b, "  parameters and gradients between hosts per iteration: %s; without hierarchy %s\n",
		size(betweenHosts(p, roles, roles.Workers, hosts)), size(betweenHosts(p, roles, computes, hosts)))
}

// betweenHosts is how many bytes of parameters and gradients cross the network when these ranks push and pull once.
func betweenHosts(p *shard.Plan, roles shard.Roles, ranks []int, hosts []string) int64 {
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
