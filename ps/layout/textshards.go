package layout

import (
	"fmt"
	"strings"

	"fluentps/configs"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
)

// planNameMax is the columns of a shard's name. Of a longer one the end is shown, which tells it from others.
const planNameMax = 24

// planShards is the table of shards. Which parts of which parameters each of them has stands beside the rest, or below where that
// would be too wide.
func planShards(b *strings.Builder, c *configs.Config, p *shard.Plan) {
	most := c.Shards.MaxBytes
	if c.InRounds() {
		most = messageBytes(c, len(p.Params))
	}
	fmt.Fprintf(b, "\nShards: %d of %d parameters, slice %s, pieces of at most %s\n", len(p.Shards), p.Arena, c.Shards.Slice, metrics.Size(most))
	rows := [][]string{{"shard", "name", "scheme", "server", "elements", "bytes", "pieces"}}
	params := []string{"parameters"}
	for i := range p.Shards {
		s := &p.Shards[i]
		rows = append(rows, []string{fmt.Sprint(s.ID), metrics.Cut(s.Name, planNameMax), c.Sync[s.Rule].Schemes(), fmt.Sprint(s.Server), fmt.Sprintf("%d:%d", s.Lo, s.Hi), metrics.Size(s.Bytes()), fmt.Sprint(len(s.Pieces))})
		params = append(params, partsOf(p, s))
	}
	b.WriteString(metrics.Listed(rows, params, 2))
}

// partsOf names the parts of parameters in a shard, the first few of them.
func partsOf(p *shard.Plan, s *shard.Shard) string {
	var names []string
	for _, g := range s.Segs {
		names = append(names, fmt.Sprintf("%s[%d:%d]", p.Params[g.Param].Name, g.Lo, g.Hi))
	}
	if n := len(names); n > 4 {
		names = append(names[:3], fmt.Sprintf("... %d more", n-3))
	}
	return strings.Join(names, " ")
}
