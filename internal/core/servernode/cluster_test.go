package servernode

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/workernode"
	"fluentps/internal/policy/send"
	"fluentps/ps/scheme"
)

// cluster drives real nodes in process: messages and pieces are pending events, and pick says which happens next.
// Buffers hold, instead of floats, the list of pushes that they contain, so that "exactly once" and "a version in
// flight is immutable" are compared, not believed.
type cluster struct {
	plan     *shard.Plan
	workers  []*workernode.Worker
	servers  []*Server
	pending  []pending
	trace    func(node string, in core.Input, out []core.Effect)
	iters    []int64   // per worker: how many iterations it computed
	computed [][]int64 // per worker: which iterations
	done     map[core.Node]bool
	dead     []*workernode.Worker // died: replies to them go nowhere
	lives    []int64              // per worker: how often it has come back
	releases int
	messages int
	norms    int
	last     *cluster // the last one that resumed from this one; see playParts
	problem  error    // the first violation found while an event happened

	habits
	conditions
	lines
	stores
	ownCopies
}

// habits are how the nodes of a cluster are made.
type habits struct {
	order     send.Entry
	options   send.Options
	scheduler *core.Scheduler // nil unless the workers work in rounds
	schemeOf  func(rule int) string
	copyOf    func(rule int) inturn.Copy
	drops     []bool      // by rule: a push may be dropped
	near      *nearDriver // nil: no pair shares memory
	work      *workDriver // nil: all workers compute all of their own iterations
	due       func(shard int32, iter int64) bool
	turns     func(shard int32, iter int64) int64 // exchanges of a shard before an iteration; nil: workers start without any
	early     *earlyDriver                        // nil: an iteration starts when the last exchange is over
	together  bool                                // all workers pause at the same iteration
}

// conditions are what a cluster does to its nodes.
type conditions struct {
	pick         func(n int) int      // index into the candidates
	deliverTwice func() bool          // deliver this push header twice
	overtake     bool                 // control messages of a pair may overtake each other
	stalled      func(core.Node) bool // nothing happens to this node now, unless nothing else can happen; nil: none is stalled
	slowDisk     bool                 // the disk finishes when the workers are done
	blocked      func() int64         // what a worker says that it waited before an iteration; nil: nothing
}

// lines carry pieces.
type lines struct {
	inbox  map[string][]int64   // by line: the iterations of pieces that were sent and have no receive yet
	posted map[string][]pending // by line: receives that were posted and have no piece yet
}

// stores are what the servers have in place of floats.
type stores struct {
	slots         map[[3]int32]*slotOf  // server, shard, slot
	sums          map[[2]int32]string   // per shard and accumulator, of which 0 are the pending sums: pushes folded and not committed
	bufs          map[[2]int32]string   // shard, buffer: pushes in that version
	inFlight      map[[2]int32]int      // shard, buffer: replies in flight
	replied       map[string]int        // "shard w iter": replies
	versions      map[int32][]string    // per shard: content of the versions in the order of commits
	replyContents map[[2]int32][]string // shard, worker: content of each reply
	snaps         map[int32][]int64
	lead          map[int32]map[int64]int64 // per shard and iteration: largest c - v of a reply
}

// ownCopies are what the workers have in place of floats.
type ownCopies struct {
	arena           map[[2]int32]string                          // worker, piece: pushes in its copy
	beside          map[[2]int32]string                          // worker, shard: pushes in the version beside it
	kept            map[[3]int32]string                          // worker, shard, slot: the push kept there
	piecewise       map[[2]int32]*piecewiseReply                 // worker, shard: the reply in flight
	publishedPieces map[string][]string                          // published pieces sent and not received, by line: content
	heard           map[heardBy]*heard                           // what headers have told the workers
	reads           func(w *workernode.Worker, iter int64) error // may be nil; checks the arena when an iteration starts
}

type slotOf struct {
	worker    int32
	iter      int64
	pieces    int
	copiedOut bool // it was copied out of its worker's memory
}

// pending is an input for a node that may happen now or later. Inputs of one line happen in order.
type pending struct {
	line string
	node core.Node
	name string
	in   core.Input
	then func()
	when func() bool       // nil: at any time
	fill func(*core.Input) // completes the input when it happens; nil: it is complete
}

type rule struct {
	name   string
	common scheme.Common
	params scheme.Params
	until  []int64 // the clocks at which the rules of then take over, if there are any
	then   []rule
	awaits []scheme.Await // in the place of until: what each of the rules waits for; nil: they change at clocks
}

func newCluster(plan *shard.Plan, workers int, rules []rule, budget Budget, every int64) *cluster {
	return newOrderedCluster(plan, workers, rules, budget, every, "fifo", send.Options{})
}

// newOrderedCluster is newCluster with a send policy.
func newOrderedCluster(plan *shard.Plan, workers int, rules []rule, budget Budget, every int64, order string,
	options send.Options) *cluster {
	c := &cluster{
		plan: plan, done: map[core.Node]bool{}, iters: make([]int64, workers), computed: make([][]int64, workers),
		lives:      make([]int64, workers),
		conditions: conditions{pick: func(int) int { return 0 }, deliverTwice: func() bool { return false }},
		lines:      lines{inbox: map[string][]int64{}, posted: map[string][]pending{}},
		stores: stores{
			slots: map[[3]int32]*slotOf{}, sums: map[[2]int32]string{}, bufs: map[[2]int32]string{}, inFlight: map[[2]int32]int{},
			replied: map[string]int{}, versions: map[int32][]string{}, replyContents: map[[2]int32][]string{},
			snaps: map[int32][]int64{}, lead: map[int32]map[int64]int64{},
		},
		ownCopies: ownCopies{
			arena: map[[2]int32]string{}, beside: map[[2]int32]string{}, kept: map[[3]int32]string{},
			piecewise: map[[2]int32]*piecewiseReply{}, publishedPieces: map[string][]string{}, heard: map[heardBy]*heard{},
		},
	}
	c.order, _ = send.All.Lookup(order)
	c.options = options
	push, reply := plan.Largest()
	c.options.Largest = max(push, reply)
	c.copyOf = func(i int) inturn.Copy {
		r := rules[i]
		if r.params == nil {
			e, _ := scheme.All.Lookup(r.name)
			r.params = e.Params()
		}
		return inturn.CopyOf(r.name, r.common, r.params, workers)
	}
	c.schemeOf = func(k int) string { return rules[k].name }
	for _, r := range rules {
		c.drops = append(c.drops, len(r.then) > 0 || inturn.Behind(r.phases()) || dropsStale(r))
	}
	for m := range plan.Servers {
		schemes := map[int32]inturn.ShardScheme{}
		for _, id := range plan.OfServer(int32(m)) {
			ids := inturn.Together(plan, id, func(rule int) string { return rules[rule].name })
			if ss, made := schemes[ids[0]]; made {
				schemes[id] = ss
			} else {
				schemes[id] = mustScheme(rules[plan.Shards[id].Rule], ids, m, workers, LeadShard(plan, id) != id)
			}
		}
		sc := Config{Me: int32(m), Plan: plan, Workers: workers, Schemes: schemes, Budget: budget,
			SnapshotEvery: every, Saves: true, Awaits: awaitsOf(rules), SkipsAhead: skipsAhead(rules)}
		if c.order.Reply != nil {
			sc.Send = c.order.Reply(c.options)
		}
		c.servers = append(c.servers, New(sc))
	}
	for w := range workers {
		c.workers = append(c.workers, c.prepared(workernode.New(int32(w), plan, c.policy(), 0)))
	}
	return c
}

// awaitsOf is what the rules wait for; those that do wait for the same.
func awaitsOf(rules []rule) []scheme.Await {
	for _, r := range rules {
		if r.awaits != nil {
			return r.awaits
		}
	}
	return nil
}

// skipsAhead says of each turn whether no scheme bounds the lead.
func skipsAhead(rules []rule) (skips []bool) {
	for k := range awaitsOf(rules) {
		bounds := slices.ContainsFunc(rules, func(r rule) bool {
			phases := r.phases()
			if r.awaits != nil {
				phases = phases[k : k+1]
			}
			return slices.ContainsFunc(phases, func(ph scheme.Phase) bool {
				e, _ := scheme.All.Lookup(ph.Scheme)
				_, bounded := e.LeadMax(ph.Params)
				return bounded
			})
		})
		skips = append(skips, !bounds)
	}
	return skips
}

// policy makes the send policy of a worker of this cluster.
func (c *cluster) policy() send.Policy { return c.order.New(c.options) }

// prepared gives a worker its settings before its first input.
func (c *cluster) prepared(w *workernode.Worker) *workernode.Worker {
	w.HoldBack(c.schemeOf)
	w.KeepCopies(c.copyOf)
	if c.early != nil {
		c.early.prepare(c.plan, w)
	}
	if c.near != nil {
		w.ShareMemory(func(s int32) bool { return c.near.near(s, w.Me()) })
	}
	if c.work != nil {
		w.SetWork(c.work.policy(w.Me()), len(c.workers))
		if c.work.owners != nil {
			w.PullAhead()
		}
	}
	if c.due != nil {
		w.SetDue(c.due, c.turnsBefore(w.Iter()+1))
	}
	return w
}

// locally says how the shards count exchanges.
func (c *cluster) locally() *Locally {
	if c.turns == nil {
		return nil
	}
	return &Locally{Clock: c.turns}
}

// turnsBefore is how many exchanges each shard has had before an iteration.
func (c *cluster) turnsBefore(iter int64) (turns []int64) {
	for s := range c.plan.Shards {
		if c.turns != nil {
			turns = append(turns, c.turns(int32(s), iter))
		}
	}
	return turns
}

// phases are the schemes of the rule in turn, defaults filled.
func (r rule) phases() (all []scheme.Phase) {
	for k, one := range append([]rule{r}, r.then...) {
		e, ok := scheme.All.Lookup(one.name)
		if !ok {
			panic("no scheme " + one.name)
		}
		ph := scheme.Phase{Scheme: one.name, Common: one.common, Params: one.params}
		if ph.Params == nil {
			ph.Params = e.Params()
		}
		if ph.Common.Fold == "" {
			ph.Common.Fold = e.Fold
		}
		if r.awaits != nil {
			ph.Await = r.awaits[k]
		} else if k < len(r.then) {
			ph.Until = r.until[k]
		}
		all = append(all, ph)
	}
	return all
}

func mustScheme(r rule, ids []int32, server, workers int, follows ...bool) inturn.ShardScheme {
	ss, err := inturn.NewShardSchemes(r.phases(),
		scheme.Env{Workers: workers, Shards: ids, Server: server, Follows: slices.Contains(follows, true), Seed: 7}, 0)
	if err != nil {
		panic(err)
	}
	return ss
}

// norm invents a norm, a different one for each push.
func (c *cluster) norm() float32 {
	c.norms++
	return []float32{1, 0.5, 3, 0, 0.25, 1}[c.norms%6]
}

// ctl names the line of a control message: one line for each pair of nodes, or one for each message where messages may
// overtake each other, as when several posted receives complete at once.
func (c *cluster) ctl(line string) string {
	if !c.overtake {
		return line
	}
	c.messages++
	return fmt.Sprintf("%s #%d", line, c.messages)
}

func (c *cluster) add(p pending) { c.pending = append(c.pending, p) }

// run makes everything happen until nothing is left; it fails past limit steps.
func (c *cluster) run(limit int) error {
	for w, node := range c.workers {
		c.add(pending{line: fmt.Sprintf("w%d", w), node: node, name: fmt.Sprintf("w%d", w), in: core.Input{Kind: core.Begin}})
	}
	return c.drain(limit)
}

func (c *cluster) drain(limit int) error {
	for step := 0; len(c.pending) > 0; step++ {
		if step > limit {
			return fmt.Errorf("still running after %d steps: %s", limit, c)
		}
		first := map[string]bool{}
		var ready []int
		for i, p := range c.pending {
			if !first[p.line] {
				first[p.line] = true
				if p.when == nil || p.when() {
					ready = append(ready, i)
				}
			}
		}
		if len(ready) == 0 {
			return fmt.Errorf("none of the %d pending events can happen: %s", len(c.pending), c)
		}
		if c.stalled != nil {
			if others := slices.DeleteFunc(slices.Clone(ready), func(i int) bool { return c.stalled(c.pending[i].node) }); len(others) > 0 {
				ready = others
			}
		}
		i := ready[c.pick(len(ready))]
		p := c.pending[i]
		c.pending = slices.Delete(c.pending, i, i+1)
		if p.then != nil {
			p.then()
		}
		if p.fill != nil {
			p.fill(&p.in)
		}
		if c.problem != nil {
			return c.problem
		}
		if s, ok := p.node.(*Server); ok && p.in.Kind == core.Arrived && p.in.Msg.Kind == wire.Joined {
			c.forgetReplies(s, p.in.Msg.Worker)
		}
		p.in.At = max(p.in.At, time.Duration(step)*time.Millisecond)
		c.hears(p.node, &p.in)
		out := p.node.Step(p.in, nil)
		if s, ok := p.node.(*Server); ok && !s.members.done {
			c.done[s] = false
		}
		if c.trace != nil {
			c.trace(p.name, p.in, out)
		}
		if err := p.node.Check(); err != nil {
			return err
		}
		for _, e := range out {
			if err := c.obey(p.node, p.name, e); err != nil {
				return fmt.Errorf("%s: %v: %w", p.name, e, err)
			}
		}
	}
	for _, w := range c.workers {
		if !c.done[w] {
			return fmt.Errorf("nothing left to happen, but worker %d is not done: %s", w.Me(), c)
		}
	}
	for _, s := range c.servers {
		if !c.done[s] {
			return fmt.Errorf("nothing left to happen, but server %d is not done: %s", s.me, c)
		}
	}
	return nil
}

func (c *cluster) obey(n core.Node, name string, e core.Effect) error {
	if e.Kind == core.Done {
		if c.done[n] {
			return fmt.Errorf("done twice")
		}
		c.done[n] = true
		return nil
	}
	if w, ok := n.(*workernode.Worker); ok {
		return c.obeyWorker(w, name, e)
	}
	if n == core.Node(c.scheduler) {
		c.releases++
		c.add(pending{line: c.ctl(fmt.Sprintf("ctl scheduler w%d", e.To)), node: c.workers[e.To],
			name: fmt.Sprintf("w%d", e.To), in: core.Input{Kind: core.Arrived, Msg: e.Msg}})
		return nil
	}
	return c.obeyServer(n.(*Server), name, e)
}

func (c *cluster) obeyWorker(w *workernode.Worker, name string, e core.Effect) error {
	if slices.Contains(c.dead, w) {
		return nil // it died before it could do this
	}
	if c.early != nil {
		if err := c.early.checkArenas(c, w, e); err != nil {
			return err
		}
	}
	if c.work != nil && c.work.obey(c, w, name, e) {
		return nil
	}
	to := fmt.Sprintf("s%d", e.To)
	switch e.Kind {
	case core.Send:
		line := c.ctl("ctl " + name + to)
		if e.Msg.Kind == wire.Push && c.overtake { // pushes of one shard arrive in order, as comm promises
			line = fmt.Sprintf("ctl %s%s push shard%d", name, to, e.Msg.Shard)
		}
		p := pending{line: line, node: c.servers[e.To], name: to, in: core.Input{Kind: core.Arrived, Msg: e.Msg}}
		c.add(p)
		if e.Msg.Kind == wire.Push && c.deliverTwice() {
			c.add(p)
		}
	case core.SendPiece:
		line := fmt.Sprintf("data %s p%d", name, e.Piece)
		iter := e.Iter
		if c.early != nil {
			iter = c.gradientOf(w, e.Piece)
		}
		c.inbox[line] = append(c.inbox[line], iter)
		c.match(line)
		if c.isReadInPlace(w, e.Shard) {
			break // the reply says that the gradient is free
		}
		sent := pending{line: fmt.Sprintf("sent %s p%d", name, e.Piece), node: w, name: name,
			in: core.Input{Kind: core.PieceSent, Piece: e.Piece}}
		if c.early != nil {
			sent.then = func() { c.early.mem[w].grads[e.Piece].inFlight = false }
		}
		c.add(sent)
	case core.Compute:
		c.iters[w.Me()]++
		c.computed[w.Me()] = append(c.computed[w.Me()], e.Iter)
		if c.early != nil {
			return c.early.compute(c, w, name, e.Iter)
		}
		if c.reads != nil {
			if err := c.reads(w, e.Iter); err != nil {
				return err
			}
		}
		line := "compute " + name
		c.add(pending{line: line, node: w, name: name, when: c.over(w),
			in: core.Input{Kind: core.Forwarded, Msg: wire.Header{Samples: 10, Blocked: c.waited()}}})
		for _, p := range slices.Backward(c.plan.Pieces) {
			c.add(pending{line: line, node: w, name: name, when: c.writable(w, p.Layer), in: core.Input{Kind: core.PieceReady, Piece: p.ID}})
		}
		c.add(pending{line: line, node: w, name: name, in: core.Input{Kind: core.TaskDone}})
	case core.SendBarrier:
		c.add(pending{line: c.ctl("ctl " + name + "scheduler"), node: c.scheduler, name: "scheduler",
			in: core.Input{Kind: core.Arrived, Msg: e.Msg}})
	default:
		return c.obeyCopies(w, name, e)
	}
	return nil
}

func (c *cluster) obeyServer(s *Server, name string, e core.Effect) error {
	key := [2]int32{e.Shard, e.Src}
	switch e.Kind {
	case core.Send:
		if slices.Contains(c.dead, c.workers[e.To]) {
			return nil
		}
		c.add(pending{line: c.ctl(fmt.Sprintf("ctl %sw%d", name, e.To)), node: c.workers[e.To],
			name: fmt.Sprintf("w%d", e.To), in: core.Input{Kind: core.Arrived, Msg: e.Msg}})
	case core.WakeAt:
		c.messages++
		c.add(pending{line: fmt.Sprintf("alarm #%d", c.messages), node: s, name: name,
			in: core.Input{Kind: core.Alarm, Shard: e.Shard, At: e.At}})
	case core.SendServer:
		to := fmt.Sprintf("s%d", e.To)
		c.add(pending{line: c.ctl("ctl " + name + to), node: c.servers[e.To], name: to, in: core.Input{Kind: core.Arrived, Msg: e.Msg}})
	case core.Stage:
		c.stage(s, e)
		c.work.staged(s, e)
	case core.Merge:
		return c.work.merged(c, s, e)
	case core.Unstage:
		c.pending = slices.DeleteFunc(c.pending, func(p pending) bool {
			return p.node == core.Node(s) && p.in.Kind == core.PieceLanded && p.in.Shard == e.Shard && p.in.Slot == e.Slot
		})
		for _, p := range c.plan.Shards[e.Shard].Pieces {
			delete(c.posted, fmt.Sprintf("data w%d p%d", e.To, p.ID))
		}
	case core.Fold:
		if e.From != scheme.SlotPush { // an accumulator, whose pushes are now in another one
			from, into := [2]int32{e.Shard, int32(e.From.Sums())}, [2]int32{e.Shard, int32(e.Into.Sums())}
			if e.Scale == 0 {
				c.sums[into] = ""
			}
			c.sums[into] += c.sums[from]
			return nil
		}
		slot := c.slots[[3]int32{s.me, e.Shard, e.Slot}]
		if err := c.near.folded(c, s, e, slot); err != nil {
			return err
		}
		if err := c.work.folded(s, e); err != nil {
			return err
		}
		if slot.pieces != 0 || slot.iter != e.Msg.Iter {
			return fmt.Errorf("folded iteration %d with %d pieces missing from a slot of iteration %d", e.Msg.Iter, slot.pieces, slot.iter)
		}
		into := [2]int32{e.Shard, int32(e.Into.Sums())}
		if e.Scale == 0 {
			c.sums[into] = ""
		}
		by := slot.worker
		if c.work != nil {
			by = e.Msg.Worker // several workers' parts are in it
		}
		c.sums[into] += fmt.Sprintf(" w%d.%d", by, slot.iter)
	case core.Commit:
		if c.inFlight[[2]int32{e.Shard, e.Dst}] > 0 || e.Dst == e.Src {
			return fmt.Errorf("wrote into a version that is in flight or current")
		}
		if err := c.near.committed(c, e); err != nil {
			return err
		}
		sums := [2]int32{e.Shard, 0}
		c.bufs[[2]int32{e.Shard, e.Dst}] = c.bufs[key] + c.sums[sums] + " |"
		c.versions[e.Shard] = append(c.versions[e.Shard], c.sums[sums])
		c.sums[sums] = ""
	case core.Reply:
		if !e.Near {
			c.inFlight[key]++
		}
		content := c.bufs[key]
		to := core.Node(c.workers[e.To])
		if slices.Contains(c.dead, c.workers[e.To]) {
			to = deadNode{}
		}
		wname := fmt.Sprintf("w%d", e.To)
		if e.Msg.Kind == wire.Reply {
			if c.lead[e.Shard] == nil {
				c.lead[e.Shard] = map[int64]int64{}
			}
			c.lead[e.Shard][e.Msg.Iter] = max(c.lead[e.Shard][e.Msg.Iter], e.Msg.Iter-e.Msg.Clock)
			c.replied[fmt.Sprintf("shard%d w%d iter%d", e.Shard, e.To, e.Msg.Iter)]++
			c.replyContents[[2]int32{e.Shard, e.To}] = append(c.replyContents[[2]int32{e.Shard, e.To}], content)
		}
		c.add(pending{line: c.ctl(fmt.Sprintf("ctl %sw%d", name, e.To)), node: to, name: wname, in: core.Input{Kind: core.Arrived, Msg: e.Msg}})
		if e.Near {
			c.near.noteReply(e, content)
			break
		}
		if e.Apart {
			c.piecewise[[2]int32{e.To, e.Shard}] = &piecewiseReply{to: c.workers[e.To], kind: e.Msg.Kind, content: content,
				version: key, missing: len(c.plan.Shards[e.Shard].Pieces), held: len(c.plan.Shards[e.Shard].Pieces)}
			break
		}
		for _, p := range c.plan.Shards[e.Shard].Pieces {
			c.replyPiece(p.ID, e.To, to, e.Msg.Kind, content)
		}
		c.add(pending{line: fmt.Sprintf("sent %s shard%d %s", name, e.Shard, wname), node: s, name: name,
			in: core.Input{Kind: core.ReplySent, Shard: e.Shard, Buf: e.Src, Worker: e.To}, then: func() { c.inFlight[key]-- }})
		if got := c.bufs[key]; got != content {
			return fmt.Errorf("version changed in flight")
		}
	case core.Save:
		c.toDisk(s, name, e.Shard, e.Src)
	case core.ReplyPiece:
		a := c.piecewise[[2]int32{e.To, e.Shard}]
		if got := c.bufs[key]; a == nil || got != a.content {
			return fmt.Errorf("a piece of another version than its reply's, or of none")
		}
		a.held--
		to := core.Node(a.to)
		if slices.Contains(c.dead, a.to) {
			to = deadNode{}
		}
		c.replyPiece(e.Piece, e.To, to, a.kind, a.content)
		c.add(pending{line: fmt.Sprintf("sent %s w%d p%d", name, e.To, e.Piece), node: s, name: name,
			in: core.Input{Kind: core.ReplyPieceSent, Piece: e.Piece, Worker: e.To}, then: func() {
				if a.missing--; a.missing == 0 {
					c.inFlight[key]--
				}
			}})
	case core.Own:
		return c.near.own(c, s, e)
	case core.Snapshot:
		c.snaps[e.Shard] = append(c.snaps[e.Shard], e.Iter)
	}
	return nil
}

// waited is what a worker says that it waited before an iteration.
func (c *cluster) waited() int64 {
	if c.blocked == nil {
		return 0
	}
	return c.blocked()
}

// over says of an iteration that may have started early, without an earlyDriver, when forward may end; writable says
// when a layer's gradients may be written. nil: at any time.
func (c *cluster) over(w *workernode.Worker) func() bool {
	if c.due == nil {
		return nil
	}
	return func() bool { return w.State() == core.Computing }
}

func (c *cluster) writable(w *workernode.Worker, layer int32) func() bool {
	if c.due == nil {
		return nil
	}
	return func() bool { return w.Writable(int(layer)) }
}

// gradientOf is the iteration whose gradient is in a piece of the gradient arena, where workers compute their own iterations and exchange
// all shards in each.
func (c *cluster) gradientOf(w *workernode.Worker, piece int32) int64 {
	if c.early != nil {
		return c.early.mem[w].grads[piece].iter
	}
	return w.Iter()
}

// write lands a piece of a reply in the arena of a worker.
func (c *cluster) write(to core.Node, piece int32, content string) {
	w, ok := to.(*workernode.Worker)
	if !ok || slices.Contains(c.dead, w) {
		return
	}
	c.arena[[2]int32{w.Me(), piece}] = content
	if c.early != nil {
		c.early.written(c, w, piece)
	}
}

// piecewiseReply is a reply whose pieces leave one by one.
type piecewiseReply struct {
	to      *workernode.Worker // in its life at that time
	kind    wire.Kind
	content string
	version [2]int32 // shard, buffer
	missing int      // pieces that have not left
	held    int      // of these, not released
}

// forgetReplies discards the pieces that a server holds back of its replies to an earlier life of a worker.
func (c *cluster) forgetReplies(s *Server, w int32) {
	for _, id := range s.owned {
		if a := c.piecewise[[2]int32{w, id}]; a != nil && a.held > 0 {
			a.missing -= a.held
			a.held = 0
			if a.missing == 0 {
				c.inFlight[a.version]--
			}
		}
	}
}

// replyPiece sends a piece of a reply to a worker, or to a dead node.
func (c *cluster) replyPiece(piece, w int32, to core.Node, kind wire.Kind, content string) {
	wname := fmt.Sprintf("w%d", w)
	if kind == wire.Publish {
		line := fmt.Sprintf("publish %d %s", piece, wname)
		c.publishedPieces[line] = append(c.publishedPieces[line], content)
		c.matchPublished(line)
		return
	}
	c.add(pending{line: fmt.Sprintf("reply %d %s", piece, wname), node: to, name: wname, in: core.Input{Kind: core.PieceLanded, Piece: piece},
		then: func() { c.write(to, piece, content) }})
}

// stage posts the receives of a push's pieces; a piece that has been sent already lands from the inbox.
func (c *cluster) stage(s *Server, e core.Effect) {
	slot := &slotOf{worker: e.To, iter: -1, pieces: len(c.plan.Shards[e.Shard].Pieces)}
	c.slots[[3]int32{s.me, e.Shard, e.Slot}] = slot
	for _, p := range c.plan.Shards[e.Shard].Pieces {
		line := fmt.Sprintf("data w%d p%d", e.To, p.ID)
		c.posted[line] = append(c.posted[line], pending{line: line, node: s, name: fmt.Sprintf("s%d", s.me),
			in: core.Input{Kind: core.PieceLanded, Piece: p.ID, Shard: e.Shard, Worker: e.To, Slot: e.Slot,
				Norm2: c.norm(), NormInf: c.norm(), NormW: 1},
			then: func() { slot.pieces-- }})
		c.match(line)
	}
}

func (c *cluster) match(line string) {
	for len(c.inbox[line]) > 0 && len(c.posted[line]) > 0 {
		p, iter := c.posted[line][0], c.inbox[line][0]
		c.inbox[line] = c.inbox[line][1:]
		slot := c.slots[[3]int32{p.node.(*Server).me, p.in.Shard, p.in.Slot}]
		if slot.iter >= 0 && slot.iter != iter {
			panic(fmt.Sprintf("pieces of iterations %d and %d in one slot: %v", slot.iter, iter, p.in))
		}
		slot.iter = iter
		c.add(p)
		c.posted[line] = c.posted[line][1:]
	}
}

func (c *cluster) String() string {
	var b strings.Builder
	for _, w := range c.workers {
		fmt.Fprintln(&b, w)
	}
	for _, s := range c.servers {
		fmt.Fprintln(&b, s)
	}
	return b.String()
}

// toDisk reads a version until a random moment, or until the workers are done.
func (c *cluster) toDisk(s *Server, name string, id, buf int32) {
	key := [2]int32{id, buf}
	c.inFlight[key]++
	written := pending{line: fmt.Sprintf("disk shard%d", id), node: s, name: name, in: core.Input{Kind: core.Written, Shard: id},
		then: func() { c.inFlight[key]-- }}
	if c.slowDisk {
		written.when = func() bool {
			return !slices.ContainsFunc(c.workers, func(w *workernode.Worker) bool { return !c.done[w] })
		}
	}
	c.add(written)
}
