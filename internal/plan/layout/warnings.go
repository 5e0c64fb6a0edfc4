package layout

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/show/metrics"
)

func Warnings(c *configs.Config, p *shard.Plan, roles shard.Roles) []string {
	var w []string
	load := make([]int64, p.Servers)
	var fullest int64
	for i := range p.Shards {
		load[p.Shards[i].Server] += p.Shards[i].Bytes()
		fullest = max(fullest, load[p.Shards[i].Server])
	}
	for m, n := range load {
		if n == 0 {
			w = append(w, fmt.Sprintf("server %d (rank %d) owns no shard and will be idle: use shards.slice: even, or fewer "+
				"servers", m, roles.Servers[m]))
		}
	}
	mean := float64(p.Arena) * shard.ElemBytes / float64(p.Servers)
	if float64(fullest) > 1.5*mean && p.Servers > 1 && c.Shards.Slice != "even" { // with even slices it is uneven on purpose: placement mixed
		w = append(w, fmt.Sprintf("the fullest server holds %.1f times the mean: use shards.slice: even", float64(fullest)/mean))
	}
	names, used := map[string]bool{}, map[int]bool{}
	for i := range p.Shards {
		names[c.Sync[p.Shards[i].Rule].Schemes()] = true
		used[p.Shards[i].Rule] = true
	}
	for i, rule := range c.Sync {
		if !used[i] && strings.Trim(rule.Match, "*") != "" { // the last rule takes what the others leave, which may be nothing
			w = append(w, fmt.Sprintf("sync: match %q takes no parameter of this model; they are %s", rule.Match, paramNames(p)))
		}
	}
	push, reply := p.Largest()
	if window, largest := c.Send.Window, max(push, reply); window > 0 && window < 2*largest {
		w = append(w, fmt.Sprintf("send.window %s is less than two of the largest pieces (%s): a link idles between two "+
			"of them; set shards.max_bytes to at most %s, or raise the window", metrics.Size(window), metrics.Size(largest), metrics.Size(window/2)))
	}
	if i := slices.IndexFunc(p.Shards, func(s shard.Shard) bool { return len(s.Pieces) > 1 }); i >= 0 &&
		c.Send.Order != "auto" && c.Send.Order != "fifo" {
		w = append(w, fmt.Sprintf("send.order %s: shard %d has %s, which others may overtake, and is answered only after "+
			"all of them have landed; with shards.slice: slices each piece is answered by itself", c.Send.Order, i,
			metrics.Count(len(p.Shards[i].Pieces), "piece")))
	}
	if names["bsp"] && len(names) > 1 {
		w = append(w, "a bsp shard beside others: a worker starts when its last shard has replied, so the strictest shard sets the pace")
	}
	return w
}

func paramNames(p *shard.Plan) string {
	var names []string
	for i, q := range p.Params {
		if i == 8 {
			names = append(names, fmt.Sprintf("and %d more", len(p.Params)-i))
			break
		}
		names = append(names, q.Name)
	}
	return strings.Join(names, " ")
}
