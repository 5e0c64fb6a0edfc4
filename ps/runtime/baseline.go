package runtime

import (
	"fmt"
	"strings"

	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/ps/core"
	"fluentps/ps/shard"
)

// Roles says who serves, who works, and who computes for whom, under this configuration. With baseline: allreduce nobody
// serves.
func Roles(c *configs.Config, hosts []string) (shard.Roles, error) {
	if reduces(c) {
		return shard.AllWork(len(hosts)), nil
	}
	roles, err := shard.Assign(hosts, c.Cluster.Servers, c.Cluster.Placement)
	if err == nil && teams(c) {
		roles = roles.ByNode(hosts)
	}
	return roles, err
}

func reduces(c *configs.Config) bool { return c.Baseline == configs.BaselineAllreduce }

// keeper has versions of the parameters for who evaluates.
type keeper interface {
	sendSnapshot(to int, h wire.Header)
	forget(k int64)
}

func (r *rank) keeper() keeper {
	if r.reduce != nil {
		return r.reduce
	}
	return r.server
}

// keepers are the ranks that have the versions of the plan's servers, by server. Without servers rank 0 has all.
func (r *rank) keepers() []int {
	if reduces(r.cfg) {
		return []int{0}
	}
	return r.roles.Servers
}

// stopNow ends the run for a reason that only rank 0 knows.
func (r *rank) stopNow() {
	if r.reduce != nil {
		r.reduce.asked = true
		return
	}
	r.lead.ended = true
	r.server.step(core.Input{Kind: core.StopNow})
}

// stopping says on rank 0 whether the budget is used up. In a pause it is not, by that alone.
func (r *rank) stopping() bool {
	if r.reduce != nil {
		return r.reduce.over
	}
	return r.server.node.Stopping() && (!r.lead.pausing || r.lead.ended || r.server.node.Spent())
}

// atBarrier is rank 0's: PS-Lite's scheduler, which here has no process of its own.
func (r *rank) atBarrier(h wire.Header) {
	r.releases = r.scheduler.Step(core.Input{Kind: core.Arrived, Msg: h}, r.releases[:0])
	for i := range r.releases {
		e := &r.releases[i]
		r.send(r.roles.Workers[e.To], &e.Msg)
	}
}

// roundBytes is the memory for the messages that a rank has in rounds beside those that frameBytes counts: a pull of its own
// for every shard, an acknowledgement of every push, and the releases.
func roundBytes(c *configs.Config, p *shard.Plan, roles shard.Roles) int64 {
	if !c.InRounds() {
		return 0
	}
	workers := int64(len(roles.Workers))
	return frameSmall * (int64(len(p.Shards))*(workers+1) + workers)
}

// differ says which ranks ended with other parameters than the first, where every rank has all of them; "" if none.
func (r *rank) differ(reports []report) string {
	first := -1
	var others []string
	for i, rep := range reports {
		switch {
		case rep.Worker == nil || rep.Worker.Hash == "":
		case first < 0:
			first = i
		case rep.Worker.Hash != reports[first].Worker.Hash:
			others = append(others, r.place(i))
		}
	}
	if others == nil {
		return ""
	}
	return fmt.Sprintf("the all-reduce left other parameters on %s than on %s; use another MPI or another of its algorithms", strings.Join(others, "; "), r.place(first))
}

// planBaseline says what the run is, in place of our protocol.
func planBaseline(b *strings.Builder, c *configs.Config, p *shard.Plan) {
	switch c.Baseline {
	case configs.BaselineAllreduce:
		n := len(p.Buckets())
		fmt.Fprintf(b, "\nBaseline allreduce: no servers and no shards, all ranks work (cluster.servers, cluster.placement, shards and send are not used)\n"+
			"  gradients of %d parameters are summed over all ranks in %s of at least %s (but the last), last layers first, while backward runs\n",
			p.Arena, count(n, "collective"), size(shard.BucketBytes))
	case configs.BaselinePSLite:
		fmt.Fprintf(b, "\nBaseline pslite: keys: %s: %s (shards.max_bytes and send are not used)\n"+
			"  after backward all keys are pushed, each push is acknowledged, a barrier at rank 0, then all keys are pulled\n", c.BaselineKeys, keysText[c.BaselineKeys])
	}
}

// keysText says what a key is and what a message.
var keysText = map[string]string{
	shard.KeysTensor: "every tensor is a key, with a message of its own",
	shard.KeysList:   "every tensor is a key, and a message has all that a server holds, with 12 bytes a tensor of key and length, a pull with 8",
	shard.KeysScalar: "every scalar is a key, and a message has all that a server holds: 12 bytes a parameter pushed, 8 pulled, 12 replied",
}

// planReduced is the traffic of an all-reduce. What moves inside it is the MPI library's affair.
func planReduced(b *strings.Builder, p *shard.Plan, workers int) {
	bytes := int64(p.Arena+tail) * shard.ElemBytes
	fmt.Fprintf(b, "\nTraffic per iteration: each worker gives %s to the collective and takes as much, the sums; a ring would move %s each way\n",
		size(bytes), size(2*bytes*int64(workers-1)/int64(workers)))
}
