package layout

import (
	"fmt"
	"strings"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/show/metrics"
)

// planNameMax is the columns of a shard's name. A longer name is shown by its end, which tells it from others.
const planNameMax = 24

// planShards prints the table of shards. The parts of parameters in a shard are in its row, or below it if the row would be
// too wide.
func planShards(b *strings.Builder, c *configs.Config, p *shard.Plan) {
	pieceMax := p.PieceMax()
	if c.InRounds() {
		pieceMax = messageBytes(c, len(p.Params))
	}
	fmt.Fprintf(b, "\nShards: %d of %d parameters, slice %s, pieces of at most %s\n", len(p.Shards), p.Arena,
		c.Shards.Slice, metrics.Size(pieceMax))
	rows := [][]string{{"shard", "name", "scheme", "server", "elements", "bytes", "pieces"}}
	params := []string{"parameters"}
	for i := range p.Shards {
		s := &p.Shards[i]
		rows = append(rows, []string{fmt.Sprint(s.ID), metrics.Cut(s.Name, planNameMax), c.Sync[s.Rule].Schemes(),
			fmt.Sprint(s.Server), fmt.Sprintf("%d:%d", s.Lo, s.Hi), metrics.Size(s.Bytes()), fmt.Sprint(len(s.Pieces))})
		params = append(params, partsOf(p, s))
	}
	b.WriteString(metrics.Listed(rows, params, 2))
}

// partsOf names the first few parts of parameters in a shard.
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
