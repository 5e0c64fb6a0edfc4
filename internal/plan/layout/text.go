package layout

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/network"
	"fluentps/internal/show/metrics"
	"fluentps/ps/workload/dataset"
)

// Text is what plan prints and plan.txt holds: roles by host, the table of shards, memory and traffic, and warnings.
func Text(c *configs.Config, p *shard.Plan, roles shard.Roles, hosts []string, set *dataset.Set, link Link) string {
	rows := set.Train.Rows()
	t := NewRoutes(c, p, roles, nodesOf(hosts), Thresholds{})
	rates := link.Rates(c, hosts)
	var b strings.Builder
	planRoles(&b, roles, hosts)
	planTraining(&b, c, p, roles, rows)
	planBaseline(&b, c, p)
	planMixed(&b, c, p, roles)
	if !Reduces(c) {
		planLink(&b, c, hosts, link)
		planShards(&b, c, p)
		planChanges(&b, c, p, roles.Computes(), rows)
	}
	planMemory(&b, t, hosts, set)
	planCheckpoints(&b, c, p, len(roles.Workers))
	planRoutes(&b, t)
	planTraffic(&b, t)
	b.WriteString(network.Text(Cards(c, p, roles, hosts), rates))
	planShared(&b, t, hosts)
	planTeams(&b, p, roles, hosts)
	planSend(&b, c, p)
	planReplicas(&b, c, p, roles, hosts)
	for _, w := range slices.Concat(Warnings(c, p, roles), ReplicaWarnings(c, hosts)) {
		fmt.Fprintf(&b, "WARNING: %s\n", w)
	}
	return b.String()
}

func planRoles(b *strings.Builder, roles shard.Roles, hosts []string) {
	fmt.Fprintf(b, "Roles: %s, %s, %s\n", metrics.Count(len(hosts), "rank"), metrics.Count(len(roles.Servers), "server"),
		metrics.Count(len(roles.Workers), "worker"))
	var order []string
	byHost := map[string][]string{}
	for rank, h := range hosts {
		if byHost[h] == nil {
			order = append(order, h)
		}
		byHost[h] = append(byHost[h], fmt.Sprintf("%d:%s", rank, roles.Name(rank)))
	}
	for _, h := range order {
		b.WriteString(metrics.Wrap("  "+h+"  "+strings.Join(byHost[h], " "), metrics.TextWidth, len("    ")+len(h)) + "\n")
	}
}
