package layout

import (
	"fmt"
	"strings"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/show/metrics"
)

// planRoutes prints the pieces of an iteration by their ways, provided that ranks of one host share memory.
func planRoutes(b *strings.Builder, t *Routes) {
	if Reduces(t.cfg) {
		return
	}
	var pushed, replied [ways]struct{ pieces, bytes int64 }
	for i := range t.plan.Pieces {
		p := &t.plan.Pieces[i]
		for w := range t.roles.Workers {
			push, reply := &pushed[t.Push(p.ID, int32(w))], &replied[t.Reply(p.ID, int32(w))]
			push.pieces, push.bytes = push.pieces+1, push.bytes+p.PushBytes
			reply.pieces, reply.bytes = reply.pieces+1, reply.bytes+p.ReplyBytes
		}
	}
	fmt.Fprintf(b, "\nRoutes of the pieces of an iteration, over all workers\n")
	fmt.Fprintf(b, "  %-29s  %8s  %10s  %8s  %10s\n", "", "pushed", "bytes", "replied", "bytes")
	for way := range ways {
		if push, reply := pushed[way], replied[way]; push.pieces+reply.pieces > 0 {
			fmt.Fprintf(b, "  %-29s  %8d  %10s  %8d  %10s\n", way, push.pieces, metrics.Size(push.bytes), reply.pieces, metrics.Size(reply.bytes))
		}
	}
	if t.cfg.Device.Kind == "cuda" && t.cfg.Device.CUDAAwareMPI != configs.CUDAAwareOff {
		sent, received := 0, 0
		for w := range t.roles.Workers {
			push, reply := t.Direct(int32(w))
			sent, received = sent+countTrue(push), received+countTrue(reply)
		}
		fmt.Fprintf(b, "  of these from and to the memory of GPUs, if MPI reaches that: %d pushed, %d replied\n", sent, received)
	}
}

func countTrue(list []bool) (n int) {
	for _, yes := range list {
		if yes {
			n++
		}
	}
	return n
}

// planTeams prints which ranks compute for which worker, if the ranks of a host are one worker, and how many bytes that
// saves on the network.
func planTeams(b *strings.Builder, p *shard.Plan, roles shard.Roles, hosts []string) {
	if roles.Teams == nil {
		return
	}
	computes := roles.Computing()
	fmt.Fprintf(b, "\nHierarchy node: %s for %s, which push and pull; gradients are summed on each host\n",
		metrics.Count(len(computes), "rank")+" compute", metrics.Count(len(roles.Workers), "worker"))
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
		return fmt.Sprintf("%.1f%% of the parameters, about %s", 100*float64(share)/float64(total),
			metrics.Size(int64(p.Arena)*shard.ElemBytes*int64(share)/int64(total)))
	}
	fmt.Fprintf(b, "\nPlacement mixed (the split of BytePS, for one rank a machine): %d that only serve hold %s "+
		"each\n  %d that work too hold %s each\n",
		dedicated, part(shares[0]), len(shares)-dedicated, part(shares[len(shares)-1]))
}
