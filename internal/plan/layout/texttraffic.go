package layout

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/network"
	"fluentps/internal/policy/send"
	"fluentps/internal/show/metrics"
)

// planTraffic prints what a worker and its servers send in one iteration, at most: messages that could leave together are
// counted apart.
func planTraffic(b *strings.Builder, t *Routes) {
	c, p, workers := t.cfg, t.plan, len(t.roles.Workers)
	if Reduces(c) {
		planReduced(b, p, workers)
		return
	}
	var messages, bulk, small, smallReplies, push, pull, reply int64
	for i := range p.Shards {
		n := t.traffic(&p.Shards[i], false)
		messages, bulk = messages+n.framesUp+n.framesDown, bulk+n.bulkPush+n.bulkReply
		small, smallReplies = small+n.inlinePush, smallReplies+n.inlineReply
		up, down := p.Shards[i].WireBytes()
		push, reply = push+up, reply+down
	}
	headers := 3 * int64(len(p.Shards)) // push, pull, reply
	if c.InRounds() {                   // also acknowledgements, the barrier and its release; each is a message
		headers += int64(len(p.Shards)) + 2
		messages = headers
		for i := range p.Shards { // and the keys of pulls
			if keys := p.Shards[i].PullBytes(); keys > 0 {
				bulk, pull = bulk+int64(len(p.Shards[i].Pieces)), pull+keys
			}
		}
	}
	bytes := push + pull + reply + headers*wire.Size + (small+smallReplies)*wire.PieceSize
	per := "iteration"
	if turns := c.Local.Turns(); turns > 1 {
		per = fmt.Sprintf("%d iterations, in which each shard is exchanged once", turns)
	}
	fmt.Fprintf(b, "\nTraffic per %s: each worker at most %d messages, %s; all %d workers %s\n", per, messages+bulk,
		metrics.Size(bytes), workers, metrics.Size(bytes*int64(workers)))
	pieces := fmt.Sprint(small)
	if smallReplies != small {
		pieces = fmt.Sprintf("%d of pushes and %d of replies", small, smallReplies)
	}
	fmt.Fprintf(b, "  %s of %s, those of at most %s, travel with the headers\n", pieces,
		metrics.Count(len(p.Pieces), "piece"), metrics.Size(InlineMax))
	planPayload(b, c, p, push, reply)
}

// planPayload prints the encoded size of a push and of a reply.
func planPayload(b *strings.Builder, c *configs.Config, p *shard.Plan, push, reply int64) {
	if !c.Payload.Lossy() {
		return
	}
	arena := int64(p.Arena) * shard.ElemBytes
	fmt.Fprintf(b, "Payload: lossy: pushes %s, at most %s of %s; replies %s, %s\n", c.Payload.PushText(),
		metrics.Size(push), metrics.Size(arena), c.Payload.Pull, metrics.Size(reply))
	if bytes := workerEncodedBytes(c, p); c.Payload.Residual() {
		fmt.Fprintf(b, "  each worker: %s of the above for encoded pieces, %s for the residual of its pushes\n",
			metrics.Size(bytes-arena), metrics.Size(arena))
	} else {
		fmt.Fprintf(b, "  each worker: %s of the above for encoded pieces\n", metrics.Size(bytes))
	}
}

// planLink prints the link between the hosts by which the shards are cut.
func planLink(b *strings.Builder, c *configs.Config, hosts []string, link Link) {
	switch {
	case !Apart(hosts) || !link.counts(c) && !(link.Rate == 0 && AsksForLink(c)):
	case link.Rate == 0:
		b.WriteString("\nLink between hosts: not known here. A run measures it at its start: over up to 1.6 Gbit/s it " +
			"cuts more and shorter shards and pieces than below; cluster.link says the rate beforehand\n")
	default:
		from := "measured"
		if link.Given {
			from = "cluster.link"
		}
		fmt.Fprintf(b, "\nLink between hosts: %s (%s)\n", network.FormatRate(link.Rate), from)
	}
}

// planSend prints how much is in flight between a worker and a server. That bounds how long a piece delays a more urgent
// one.
func planSend(b *strings.Builder, c *configs.Config, p *shard.Plan) {
	if c.Baseline != configs.BaselineNone {
		return
	}
	if w := p.Windows; w != nil && c.Send.Window == 0 && c.Send.Order != "credit" {
		order := c.Send.Order
		if order == "auto" {
			order = "priority"
		}
		text := metrics.Size(slices.Min(w))
		if most := slices.Max(w); most > slices.Min(w) {
			text += " to " + metrics.Size(most) + ", by what the server owns,"
		}
		fmt.Fprintf(b, "Send: %s: %s in flight between a worker and a server, each way, until the other rank has received it\n", order, text)
		return
	}
	push, reply := p.Largest()
	largest := max(push, reply)
	switch c.Send.Order {
	case "priority":
		window := c.Send.Window
		if window == 0 {
			window = 2 * largest
		}
		fmt.Fprintf(b, "Send: priority: at most %s in flight between a worker and a server, each way; the largest piece "+
			"has %s\n", metrics.Size(max(window, largest)), metrics.Size(largest))
	case "credit":
		o := send.Options{Spec: c.Send, Windows: p.Windows}
		credit, t := o.CreditOf()
		fmt.Fprintf(b, "Send: credit: at most %s in flight between a worker and a server, each way; the largest piece "+
			"has %s\n", metrics.Size(credit+largest-1), metrics.Size(largest))
		if t.Points > 0 {
			fmt.Fprintf(b, "  each worker tries %d credits between %s and %s in its first %d iterations\n", t.Points,
				metrics.Size(t.Min), metrics.Size(t.Max), t.Points*(t.Steps+1))
		}
	}
}

// planBaseline prints what a baseline does instead of our protocol.
func planBaseline(b *strings.Builder, c *configs.Config, p *shard.Plan) {
	switch c.Baseline {
	case configs.BaselineAllreduce:
		n := len(p.Buckets())
		fmt.Fprintf(b, "\nBaseline allreduce: no servers and no shards, all ranks work (cluster.servers, "+
			"cluster.placement, shards and send are not used)\n"+
			"  gradients of %d parameters are summed over all ranks in %s of at least %s (but the last), last layers first, while backward runs\n",
			p.Arena, metrics.Count(n, "collective"), metrics.Size(shard.BucketBytes))
	case configs.BaselinePSLite:
		fmt.Fprintf(b, "\nBaseline pslite: keys: %s: %s (shards.max_bytes and send are not used)\n"+
			"  after backward all keys are pushed, each push is acknowledged, a barrier at rank 0, then all keys are pulled\n",
			c.BaselineKeys, keysText[c.BaselineKeys])
	}
}

// keysText describes, by the setting, a key and a message.
var keysText = map[string]string{
	shard.KeysTensor: "every tensor is a key, with a message of its own",
	shard.KeysList: "every tensor is a key, and a message has all that a server holds, with 12 bytes a tensor of " +
		"key and length, a pull with 8",
	shard.KeysScalar: "every scalar is a key, and a message has all that a server holds: 12 bytes a parameter pushed, 8 pulled, 12 replied",
}

// planReduced prints the traffic of an all-reduce. What moves inside it is up to the MPI library.
func planReduced(b *strings.Builder, p *shard.Plan, workers int) {
	bytes := int64(p.Arena+shard.BucketTail) * shard.ElemBytes
	fmt.Fprintf(b, "\nTraffic per iteration: each worker passes %s to the collective and receives sums of the same "+
		"size; a ring would move %s each way\n",
		metrics.Size(bytes), metrics.Size(2*bytes*int64(workers-1)/int64(workers)))
}

// Cards is what crosses the network cards in an iteration of every worker.
func Cards(c *configs.Config, p *shard.Plan, roles shard.Roles, hosts []string) []network.Card {
	if Reduces(c) {
		return network.AllReduce(int64(p.Arena)*shard.ElemBytes, hosts)
	}
	return network.Cards(p, roles, hosts)
}

// Rates are those of the network cards; nil: cluster.link does not say them.
func Rates(c *configs.Config, hosts []string) (*network.Rates, error) {
	if c.Cluster.Link == "" {
		return nil, nil
	}
	rates, err := network.ParseRates(c.Cluster.Link, hosts)
	if err != nil {
		return nil, fmt.Errorf("cluster.link: %w", err)
	}
	return &rates, nil
}
