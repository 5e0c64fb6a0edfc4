package runtime

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/ps/core"
	"fluentps/ps/metrics"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// PlanText is what the verb plan prints and plan.txt holds: roles by host, the shard table, memory and
// traffic, and warnings.
func PlanText(c *configs.Config, p *shard.Plan, roles shard.Roles, hosts []string, set *workload.Set) string {
	rows := set.Train.Rows()
	var b strings.Builder
	planRoles(&b, roles, hosts)
	planTraining(&b, c, p, roles, rows)
	planBaseline(&b, c, p)
	planMixed(&b, c, p, roles)
	if !reduces(c) {
		planShards(&b, c, p)
		planChanges(&b, c, p, len(roles.Computing()), rows)
	}
	planMemory(&b, c, p, roles, rows, ScratchOf(c, set.Samples(), len(roles.Computing())))
	if all, err := Hosts(c, p, roles, hosts, set); err == nil { // else planMemory tells what is wrong
		planHosts(&b, all, set)
	}
	planCheckpoints(&b, c, p, len(roles.Workers))
	planTraffic(&b, c, p, roles)
	planShared(&b, c, p, roles, hosts)
	planTeams(&b, p, roles, hosts)
	planSend(&b, c, p)
	planReplicas(&b, c, p, roles, hosts)
	for _, w := range slices.Concat(planWarnings(c, p, roles), replicaWarnings(c, hosts)) {
		fmt.Fprintf(&b, "WARNING: %s\n", w)
	}
	return b.String()
}

func planRoles(b *strings.Builder, roles shard.Roles, hosts []string) {
	fmt.Fprintf(b, "Roles: %s, %s, %s\n", count(len(hosts), "rank"), count(len(roles.Servers), "server"), count(len(roles.Workers), "worker"))
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

// planChanges says when a rule's shards change their scheme.
func planChanges(b *strings.Builder, c *configs.Config, p *shard.Plan, workers, rows int) {
	for i := range c.Sync {
		if len(c.Sync[i].Then) == 0 || !slices.ContainsFunc(p.Shards, func(s shard.Shard) bool { return int(s.Rule) == i }) {
			continue
		}
		phases, err := c.PhasesOf(i, workers, rows)
		if err != nil {
			fmt.Fprintf(b, "  %v\n", err)
			continue
		}
		fmt.Fprintf(b, "  %s: %s", c.Sync[i].Match, phases[0].Scheme)
		for k, ph := range phases[1:] {
			fmt.Fprintf(b, " until iteration %d, then %s", phases[k].Until, ph.Scheme)
		}
		b.WriteString("; each change waits until all workers have come to it\n")
	}
}

func planMemory(b *strings.Builder, c *configs.Config, p *shard.Plan, roles shard.Roles, rows int, scratch Scratch) {
	fmt.Fprintf(b, "\nMemory limits per rank (beside the data set), together at most cluster.memory_max (%s)\n", size(c.Cluster.MemoryMax))
	for m := range roles.Servers {
		bytes, err := ServerBytes(c, p, int32(m), len(roles.Workers))
		if err != nil {
			fmt.Fprintf(b, "  server %d: %v\n", m, err)
			continue
		}
		fmt.Fprintf(b, "  server %d: %s (versions in flight, staged pushes, sums, optimizer%s)\n", m, size(bytes), besideText(c))
	}
	fmt.Fprintf(b, "  each worker: %s (%s)\n", size(WorkerBytes(c, p, len(roles.Workers))), workerText(c, p))
	computes := len(roles.Computing())
	records := recordsMax(c, computes)
	fmt.Fprintf(b, "  each worker: %s (records of its first %d iterations)\n", size(int64(records)*metrics.IterationBytes), records)
	if scratch.Worker > 0 {
		fmt.Fprintf(b, "  each rank that computes: %s (values and gradients of the layers, on a batch of %d)\n", size(scratch.Worker), batchOf(c, computes, 0))
	}
	if computes > len(roles.Workers) {
		arena := size(int64(p.Arena) * shard.ElemBytes)
		fmt.Fprintf(b, "  each worker with members: %s more for the sums of their gradients; each member: %s (gradients; the parameters are its worker's), and the records\n", arena, arena)
		fmt.Fprintf(b, "  shared between the ranks of a host, of these: %s of parameters of a worker with members, %s of gradients of each member\n", arena, arena)
	}
	ranks := len(roles.Servers) + computes
	var frames int64
	for rank := range ranks {
		frames = max(frames, frameBytes(c, p, roles, rank)+roundBytes(c, p, roles))
	}
	fmt.Fprintf(b, "  each rank: %s of receives for control messages, at most %s behind them inside MPI, at most %s of those that are filled and leave, %s while it evaluates\n",
		size(int64(ringDepth(ranks))*comm.CtlMax), size(int64(ranks-1)*comm.BacklogMax*comm.CtlMax), size(frames), size(int64(p.Arena)*shard.ElemBytes+scratch.Evaluation))
	if n, err := Limits(c, p, roles, scratch); err == nil && c.Evaluate.Samples(rows) > 0 {
		n = min(n, snapshotsOf(c, c.Length(FactsOf(p, roles, rows)), rows))
		fmt.Fprintf(b, "  snapshots for evaluation, over all servers: at most %d, %s\n", n, size(n*int64(p.Arena)*shard.ElemBytes))
	}
}

// workerText says what a worker's memory is for.
func workerText(c *configs.Config, p *shard.Plan) string {
	text := "parameters and gradients" + besideText(c)
	if localBytes(c, p) > 0 {
		text += ", optimizer of its own"
	}
	for i := range p.Shards {
		if CopyOf(c, p.Shards[i].Rule, 1).Kind == scheme.Published {
			return text + ", published versions and pushes that they may lack"
		}
	}
	return text
}

// snapshotsOf is about how many snapshots a run of that length takes; Limits is what holds.
func snapshotsOf(c *configs.Config, n configs.Length, rows int) int64 {
	every, samples := float64(c.Evaluate.Samples(rows)), min(n.Samples, n.Iterations*float64(n.PerIteration))
	if every == 0 {
		return 0
	}
	// Pushes on their way when the budget is used up may pass a few marks more; each shard keeps one a commit.
	return int64(min(SnapshotsMax, math.Floor(samples/every)+1+float64(c.Cluster.Servers)))
}

// planTraffic counts what a worker and its servers send in one iteration, if nothing leaves together that need not.
func planTraffic(b *strings.Builder, c *configs.Config, p *shard.Plan, roles shard.Roles) {
	workers := len(roles.Workers)
	if reduces(c) {
		planReduced(b, p, workers)
		return
	}
	copyOf := func(rule int) core.Copy { return CopyOf(c, rule, workers) }
	inline, inlineReply := inlined(p, copyOf, pushBytes, inlineMax), inlined(p, copyOf, replyBytes, inlineMax)
	var messages, bulk, small, smallReplies, push, pull, reply int64
	for i := range p.Shards {
		t := trafficOf(&p.Shards[i], inline, inlineReply, false)
		messages, bulk = messages+t.up+t.down, bulk+t.bulkPush+t.bulkReply
		small, smallReplies = small+t.push, smallReplies+t.reply
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
	fmt.Fprintf(b, "\nTraffic per iteration: each worker at most %d messages, %s; all %d workers %s\n", messages+bulk, size(bytes), workers, size(bytes*int64(workers)))
	of := fmt.Sprint(small)
	if smallReplies != small {
		of = fmt.Sprintf("%d of pushes and %d of replies", small, smallReplies)
	}
	fmt.Fprintf(b, "  %s of %s, those of at most %s, travel with the headers\n", of, count(len(p.Pieces), "piece"), size(inlineMax))
	planPayload(b, c, p, push, reply)
}

// besideText names the memory of codecs and checkpoints, where there is any.
func besideText(c *configs.Config) string {
	text := ""
	if c.Payload.Lossy() {
		text = ", encoded pieces"
	}
	if withKeys(c) {
		text = ", pieces with their keys"
	}
	if c.Checkpoint.Periodic() {
		text += ", copies for checkpoints"
	}
	return text
}

// planPayload says what the codecs make of a push and of a reply.
func planPayload(b *strings.Builder, c *configs.Config, p *shard.Plan, push, reply int64) {
	if !c.Payload.Lossy() {
		return
	}
	whole := int64(p.Arena) * shard.ElemBytes
	fmt.Fprintf(b, "Payload: lossy: pushes %s, at most %s of %s; replies %s, %s\n", c.Payload.PushText(), size(push), size(whole), c.Payload.Pull, size(reply))
	if bytes := workerEncodedBytes(c, p); c.Payload.Residual() {
		fmt.Fprintf(b, "  each worker: %s of the above for encoded pieces, %s for the residual of its pushes\n", size(bytes-whole), size(whole))
	} else {
		fmt.Fprintf(b, "  each worker: %s of the above for encoded pieces\n", size(bytes))
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
		fmt.Fprintf(b, "Send: priority: at most %s in flight between a worker and a server, each way; the largest piece has %s\n", size(max(window, largest)), size(largest))
	case "credit":
		fmt.Fprintf(b, "Send: credit: at most %s in flight between a worker and a server, each way; the largest piece has %s\n", size(c.Send.Credit+largest-1), size(largest))
		if t := c.Send.Tune; t.Points > 0 {
			fmt.Fprintf(b, "  each worker tries %d credits between %s and %s in its first %d iterations\n", t.Points, size(t.Min), size(t.Max), t.Points*(t.Steps+1))
		}
	}
}

func planWarnings(c *configs.Config, p *shard.Plan, roles shard.Roles) []string {
	var w []string
	load := make([]int64, p.Servers)
	var most int64
	for i := range p.Shards {
		load[p.Shards[i].Server] += p.Shards[i].Bytes()
		most = max(most, load[p.Shards[i].Server])
	}
	for m, n := range load {
		if n == 0 {
			w = append(w, fmt.Sprintf("server %d (rank %d) owns no shard and will be idle: use shards.slice: even, or fewer servers", m, roles.Servers[m]))
		}
	}
	mean := float64(p.Arena) * shard.ElemBytes / float64(p.Servers)
	if float64(most) > 1.5*mean && p.Servers > 1 && c.Shards.Slice != "even" { // else it holds what it shall: see placement mixed
		w = append(w, fmt.Sprintf("the fullest server holds %.1f times the mean: use shards.slice: even", float64(most)/mean))
	}
	names, used := map[string]bool{}, map[int]bool{}
	for i := range p.Shards {
		names[c.Sync[p.Shards[i].Rule].Schemes()] = true
		used[p.Shards[i].Rule] = true
	}
	for i, rule := range c.Sync {
		if !used[i] && strings.Trim(rule.Match, "*") != "" { // the last rule must take what the others leave, if that is nothing
			w = append(w, fmt.Sprintf("sync: match %q takes no parameter of this model; they are %s", rule.Match, paramNames(p)))
		}
	}
	push, reply := p.Largest()
	if window, largest := c.Send.Window, max(push, reply); window > 0 && window < 2*largest {
		w = append(w, fmt.Sprintf("send.window %s is less than two of the largest pieces (%s): a link idles between two of them; set shards.max_bytes to at most %s, or raise the window", size(window), size(largest), size(window/2)))
	}
	if i := slices.IndexFunc(p.Shards, func(s shard.Shard) bool { return len(s.Pieces) > 1 }); i >= 0 && c.Send.Order != "fifo" {
		w = append(w, fmt.Sprintf("send.order %s: shard %d has %s, which others overtake, and is answered when all of them have landed: with shards.slice: slices each is answered by itself", c.Send.Order, i, count(len(p.Shards[i].Pieces), "piece")))
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

// count is a number of things, in the singular where there is one.
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// size is a byte count for people, in binary units.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.2f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.2f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// planMixed says what the servers of mixed placement hold.
func planMixed(b *strings.Builder, c *configs.Config, p *shard.Plan, roles shard.Roles) {
	if c.Cluster.Placement != "mixed" || reduces(c) {
		return
	}
	alone := c.Cluster.Servers
	shares := shard.MixedShares(alone, len(roles.Servers)-alone)
	total := 0
	for _, s := range shares {
		total += s
	}
	part := func(share int) string {
		return fmt.Sprintf("%.1f%% of the parameters, about %s", 100*float64(share)/float64(total), size(int64(p.Arena)*shard.ElemBytes*int64(share)/int64(total)))
	}
	fmt.Fprintf(b, "\nPlacement mixed (the split of BytePS, for one rank a machine): %d that only serve hold %s each\n  %d that work too hold %s each\n",
		alone, part(shares[0]), len(shares)-alone, part(shares[len(shares)-1]))
}
