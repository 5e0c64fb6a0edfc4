package layout

import (
	"fmt"
	"strings"

	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
)

// planTraffic counts what a worker and its servers send in one iteration, if nothing leaves together that need not.
func planTraffic(b *strings.Builder, t *Routes) {
	c, p, workers := t.cfg, t.plan, len(t.roles.Workers)
	if Reduces(c) {
		planReduced(b, p, workers)
		return
	}
	var messages, bulk, small, smallReplies, push, pull, reply int64
	for i := range p.Shards {
		n := t.traffic(&p.Shards[i], false)
		messages, bulk = messages+n.up+n.down, bulk+n.bulkPush+n.bulkReply
		small, smallReplies = small+n.push, smallReplies+n.reply
		up, down := p.Shards[i].WireBytes()
		push, reply = push+up, reply+down
	}
	headers := 3 * int64(len(p.Shards)) // push, pull, reply
	if c.InRounds() {                   // acknowledgements, the barrier and its release too; each is a message
		headers += int64(len(p.Shards)) + 2
		messages = headers
		for i := range p.Shards { // and the keys that pulls have
			if keys := p.Shards[i].PullBytes(); keys > 0 {
				bulk, pull = bulk+int64(len(p.Shards[i].Pieces)), pull+keys
			}
		}
	}
	bytes := push + pull + reply + headers*wire.Size + (small+smallReplies)*wire.PieceSize
	fmt.Fprintf(b, "\nTraffic per iteration: each worker at most %d messages, %s; all %d workers %s\n", messages+bulk, metrics.Size(bytes), workers, metrics.Size(bytes*int64(workers)))
	of := fmt.Sprint(small)
	if smallReplies != small {
		of = fmt.Sprintf("%d of pushes and %d of replies", small, smallReplies)
	}
	fmt.Fprintf(b, "  %s of %s, those of at most %s, travel with the headers\n", of, metrics.Count(len(p.Pieces), "piece"), metrics.Size(InlineMax))
	planPayload(b, c, p, push, reply)
}

// planPayload says what the codecs make of a push and of a reply.
func planPayload(b *strings.Builder, c *configs.Config, p *shard.Plan, push, reply int64) {
	if !c.Payload.Lossy() {
		return
	}
	whole := int64(p.Arena) * shard.ElemBytes
	fmt.Fprintf(b, "Payload: lossy: pushes %s, at most %s of %s; replies %s, %s\n", c.Payload.PushText(), metrics.Size(push), metrics.Size(whole), c.Payload.Pull, metrics.Size(reply))
	if bytes := workerEncodedBytes(c, p); c.Payload.Residual() {
		fmt.Fprintf(b, "  each worker: %s of the above for encoded pieces, %s for the residual of its pushes\n", metrics.Size(bytes-whole), metrics.Size(whole))
	} else {
		fmt.Fprintf(b, "  each worker: %s of the above for encoded pieces\n", metrics.Size(bytes))
	}
}

// planSend says how much is in flight between a worker and a server, and so for how long a piece delays a more urgent one.
func planSend(b *strings.Builder, c *configs.Config, p *shard.Plan) {
	if c.Baseline != configs.BaselineNone {
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
		fmt.Fprintf(b, "Send: priority: at most %s in flight between a worker and a server, each way; the largest piece has %s\n", metrics.Size(max(window, largest)), metrics.Size(largest))
	case "credit":
		fmt.Fprintf(b, "Send: credit: at most %s in flight between a worker and a server, each way; the largest piece has %s\n", metrics.Size(c.Send.Credit+largest-1), metrics.Size(largest))
		if t := c.Send.Tune; t.Points > 0 {
			fmt.Fprintf(b, "  each worker tries %d credits between %s and %s in its first %d iterations\n", t.Points, metrics.Size(t.Min), metrics.Size(t.Max), t.Points*(t.Steps+1))
		}
	}
}
