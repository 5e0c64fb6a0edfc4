package check

import (
	"math"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/servernode"
	"fluentps/internal/show/metrics"
	"fluentps/internal/sim"
	"fluentps/ps/scheme"
)

// checker checks a run against the laws. It counts the traffic between the nodes independently of them. The first violation ends
// the run.
type checker struct {
	s      *sim.Simulation
	shards []shardCheck
	sets   map[setKey]*contributors

	leaving map[[2]int32]leaver // by server and worker: workers that have said that they leave, but have pushes in flight

	letInto   int64 // the largest iteration that the lead shard let a worker into
	announced int64 // the last iteration behind which a change was announced; -1: none

	rounds bool // no worker pulls before all have pushed

	local     *localCheck // nil: every step is an exchange
	localMost int64       // samples of a push; 0: no limit
	tasks     *taskCheck  // nil: every worker computes its own batches
	updates   int64       // versions that the lead shard may make; 0: no limit
}

// shardCheck is the state of one shard that the laws depend on.
type shardCheck struct {
	server    int32
	pieces    int32
	now       limit   // of the current scheme
	then      []limit // of the following schemes
	cuts      []int64 // changes that were announced for schemes which are not current yet
	changed   int64   // changes at announced clocks
	closed    int64   // iterations committed whole, in order: backup workers do not hold v back
	last      int64   // iteration of the push folded last
	of        []pairCheck
	low       int64 // smallest clock of the workers that are not gone: v
	atLow     int   // number of workers with that clock
	landed    int64 // pushes
	folds     int64
	samples   int64 // in the folded pushes
	versions  int64
	set       []int32           // agrees: workers folded since the last Close
	lead      int32             // the shard whose contributors it has
	followers int               // number of other shards of its rule, if it leads
	flying    []int32           // replies in flight, per parameter buffer
	apart     []apart           // per worker; nil if replies leave whole
	ahead     map[int32][]int64 // by worker: pushes that began before the last one had landed, if workers do not pull
	cur       int32             // the buffer of the current version
	lag, age  metrics.Hist      // at the start of iteration c: c - clock of the copy, and v - clock of the copy
}

// pairCheck is the state of one worker at one shard that the laws depend on. It fits a cache line, because there may be a million.
type pairCheck struct {
	clock      int64 // iterations closed for the worker, by its pushes or by a change of scheme
	reached    int64 // 1 + the last iteration that it pushed
	landing    int64 // iteration of the push in flight, -1: none
	folded     int64 // last iteration folded
	openPull   int64 // iteration of the open pull, -1: none
	sent       int64 // v of the version in flight to it, or that landed last
	copy       int64 // v of its copy
	missing    int32 // pieces of the push that have not landed
	gone       bool  // the server knows that the worker left
	publishing bool  // a version was published to it and not taken
	published  bool  // that version has landed
}

func newChecker(s *sim.Simulation) (*checker, error) {
	p, workers, cfg := s.Plan(), s.Workers(), s.Config()
	c := &checker{s: s, shards: make([]shardCheck, len(p.Shards)), leaving: map[[2]int32]leaver{}, sets: map[setKey]*contributors{},
		letInto: -1, announced: -1, rounds: cfg.InRounds(), updates: cfg.Train.Stop.Updates}
	if s.HasTasks() {
		c.tasks = newTaskCheck(c)
	}
	if cfg.Local.IsSet() {
		c.local = newLocalCheck(workers, len(p.Shards), s.Fragments())
		c.localMost = cfg.Local.StepsMost() * int64(cfg.BatchMax(workers))
	}
	for i := range c.shards {
		phases, err := s.Build().Phases(p.Shards[i].Rule)
		if err != nil {
			return nil, err
		}
		limits := limitsOf(phases)
		s := &c.shards[i]
		*s = shardCheck{server: p.Shards[i].Server, pieces: int32(len(p.Shards[i].Pieces)), now: limits[0], then: limits[1:], atLow: workers,
			flying: make([]int32, servernode.Buffers(workers, false)), ahead: map[int32][]int64{}, lead: servernode.LeadShard(p, int32(i)),
			of: make([]pairCheck, workers)}
		for w := range workers {
			s.of[w] = pairCheck{landing: -1, folded: -1, openPull: -1}
		}
	}
	for i := range c.shards {
		if lead := c.shards[i].lead; lead != int32(i) {
			c.shards[lead].followers++
		}
	}
	return c, nil
}

func (c *checker) fail(format string, args ...any) { c.s.Fail(format, args...) }

// WorkerDid checks an effect of a worker's node.
func (c *checker) WorkerDid(worker int32, e *core.Effect) {
	switch {
	case e.Kind == core.Send && e.Msg.Kind == wire.Pull:
		c.asked(e.Msg)
	case e.Kind == core.Send && e.Msg.Kind == wire.Push:
		c.partSent(e.Msg)
	case e.Kind == core.Adopt:
		c.adopted(e.Shard, worker)
	}
}

// ServerHears checks a message that has reached a server.
func (c *checker) ServerHears(server int32, m wire.Header) {
	switch m.Kind {
	case wire.Push:
		c.offered(m)
	case wire.Taken:
		c.taken(m)
	case wire.Left:
		c.leaves(server, m)
	case wire.Joined:
		c.joined(server, m.Worker, m.Iter)
	}
}

// ServerDid checks an effect of a server's node.
func (c *checker) ServerDid(e *core.Effect) {
	switch e.Kind {
	case core.Fold:
		if e.From == scheme.SlotPush {
			c.folded(e)
		}
	case core.Merge:
		c.merged(e)
	case core.Commit:
		c.committed(e)
	case core.Close:
		c.closes(e)
	case core.ReplyPiece:
		c.pieceStarted(e)
	case core.Reply:
		if e.Msg.Kind == wire.Publish {
			c.published(e)
		} else {
			c.replied(e)
		}
		if e.Apart {
			c.takenApart(e)
		}
	}
}

// asked checks a pull that a worker sends: a worker has at most one open pull per shard.
func (c *checker) asked(m wire.Header) {
	s := &c.shards[m.Shard]
	if s.of[m.Worker].openPull >= 0 {
		c.fail("exactly once: worker %d pulls shard %d for iteration %d while its pull for %d is open", m.Worker, m.Shard,
			m.Iter, s.of[m.Worker].openPull)
	}
	s.of[m.Worker].openPull = m.Iter
	if !c.rounds || m.Shard > 0 { // a worker pulls all shards at once
		return
	}
	for i := range c.shards {
		if v := c.shards[i].v(); v < m.Iter {
			c.fail("rounds: worker %d pulls shard %d for iteration %d, and at shard %d some worker's push of iteration %d "+
				"has not landed", m.Worker, m.Shard, m.Iter, i, v)
		}
	}
}

// replied checks a server's decision to answer a pull: the worker must have an open pull, and the gate must be open to it.
func (c *checker) replied(e *core.Effect) {
	s := &c.shards[e.Shard]
	w := e.To
	if s.of[w].openPull < 0 || e.Msg.Iter < s.of[w].openPull {
		c.fail("exactly once: shard %d answers worker %d with iteration %d, but its open pull is for %d (-1: none)",
			e.Shard, w, e.Msg.Iter, s.of[w].openPull)
	}
	s.of[w].openPull = -1
	v := s.v()
	if lead := e.Msg.Iter - v; s.now.bound >= 0 && lead > s.now.bound && !c.stops(e) && !c.skipsAhead() {
		c.fail("the gate: shard %d lets worker %d into iteration %d at v=%d: a lead of %d, but its scheme allows %d",
			e.Shard, w, e.Msg.Iter, v, lead, s.now.bound)
	}
	if e.Msg.Iter >= s.now.until {
		c.fail("the change: shard %d lets worker %d into iteration %d at v=%d, but its scheme is until %d", e.Shard, w,
			e.Msg.Iter, v, s.now.until)
	}
	if e.Shard == 0 {
		c.announces(e.Msg)
	}
	s.flying[e.Src]++
	s.of[w].sent = v
}

// stops says whether a reply of the lead shard stops a worker because all versions of the budget were made. Another shard may have let
// the worker into an iteration behind them. The lead shard drops its push of that iteration, and lets the worker into none.
func (c *checker) stops(e *core.Effect) bool {
	return e.Shard == 0 && e.Msg.Flags&wire.Stop != 0 && c.updates > 0 && c.shards[0].versions == c.updates
}

// ReplyLeft records that a reply no longer reads its version.
func (c *checker) ReplyLeft(shard, buf int32) { c.shards[shard].flying[buf]-- }

// offered checks the header of a push that reached its server.
func (c *checker) offered(m wire.Header) {
	if c.tasks != nil {
		c.partOffered(m)
		return
	}
	s := &c.shards[m.Shard]
	if k := &s.of[m.Worker]; s.now.copies != scheme.Pulled && k.landing >= 0 && m.Iter > k.landing {
		s.ahead[m.Worker] = append(s.ahead[m.Worker], m.Iter)
		return
	}
	if s.of[m.Worker].landing >= 0 || m.Iter < s.of[m.Worker].reached {
		c.fail("exactly once: worker %d pushes iteration %d of shard %d, which has %d iterations of it", m.Worker, m.Iter,
			m.Shard, s.of[m.Worker].reached)
	}
	s.of[m.Worker].landing, s.of[m.Worker].missing = m.Iter, s.pieces
	if c.local != nil {
		if wrong := c.local.offers(m.Shard, m.Worker, m.Samples, c.localMost); wrong != "" {
			c.fail("%s", wrong)
		}
	}
}

// PushLanded records a piece of a push that has landed in its slot. The last piece advances the worker's clock.
func (c *checker) PushLanded(shard, w int32) {
	if c.tasks != nil {
		c.partLanded(shard, w)
		return
	}
	s := &c.shards[shard]
	if s.of[w].landing < 0 {
		c.fail("exactly once: a piece of worker %d for shard %d belongs to no push", w, shard)
		return
	}
	if s.of[w].missing--; s.of[w].missing > 0 {
		return
	}
	iter := s.of[w].landing
	s.of[w].landing = -1
	if next := s.ahead[w]; len(next) > 0 {
		s.of[w].landing, s.of[w].missing = next[0], s.pieces
		s.ahead[w] = next[1:]
	}
	if c.local != nil {
		c.local.lands(shard, w)
	}
	c.pushLanded(s, w, iter+1)
}

// pushLanded records that a push of a worker has landed, which advances its clock.
func (c *checker) pushLanded(s *shardCheck, w int32, clock int64) {
	old := s.of[w].clock
	s.of[w].reached = clock
	s.of[w].clock = max(old, s.of[w].reached)
	s.landed++
	if !s.of[w].gone && old == s.low && s.of[w].clock > old {
		s.leaves()
	}
	s.changes()
	c.leavesAtLast(s.server, w)
}

// leaves records that a worker no longer has the smallest clock.
func (s *shardCheck) leaves() {
	if s.atLow--; s.atLow == 0 {
		s.lowest()
	}
}

// lowest finds the smallest clock, and the number of workers that have it. Without workers low is the largest integer.
func (s *shardCheck) lowest() {
	s.low = math.MaxInt64
	for w := range s.of {
		switch k := &s.of[w]; {
		case k.gone || k.clock > s.low:
		case k.clock < s.low:
			s.low, s.atLow = k.clock, 1
		default:
			s.atLow++
		}
	}
}

// ServerLoses records that a server learns that a worker died.
func (c *checker) ServerLoses(server, worker int32) { c.left(c.s.Server(server).Shards(), worker) }

// left records that a server learns that a worker is gone. Its open pulls end, and its pushes in flight never land.
func (c *checker) left(shards []int32, w int32) {
	for _, id := range shards {
		s := &c.shards[id]
		if c.tasks != nil {
			c.leftTasks(id, w)
			continue
		}
		if s.of[w].gone {
			continue
		}
		s.of[w].gone = true
		s.of[w].landing, s.of[w].openPull = -1, -1
		delete(s.ahead, w)
		if s.of[w].clock == s.low {
			s.leaves()
		}
		s.changes()
	}
}

// folded checks a push that enters the pending sums: it has landed, and was not folded before. Schemes fold the pushes of a worker
// in order.
func (c *checker) folded(e *core.Effect) {
	s := &c.shards[e.Shard]
	w, iter := e.Msg.Worker, e.Msg.Iter
	if iter <= s.of[w].folded && !c.isSecond(e) || iter >= s.of[w].clock && !c.isFirst(e) {
		c.fail("exactly once: shard %d folds iteration %[3]d of worker %[2]d after %[4]d, but its clock is %[5]d", e.Shard,
			w, iter, s.of[w].folded, s.of[w].clock)
	}
	s.of[w].folded = iter
	if c.tasks != nil {
		c.partsFolded(e)
	}
	s.folds++
	s.samples += e.Msg.Samples
	s.last = iter
	if s.now.agrees && iter >= s.closed { // an earlier iteration belongs to the scheme before the change
		s.set = append(s.set, w)
	}
}

// End checks the end of a run: every push was folded or dropped, no pull is open, no byte is missing.
func (c *checker) End() {
	for i := range c.shards {
		k := &c.shards[i]
		st := c.s.Shard(int32(i))
		if landed := k.landed + c.partsDropped(i); landed != k.folds+st.Stats.Dropped {
			c.fail("exactly once: shard %d: %d pushes landed, %d were folded and %d dropped", i, landed, k.folds, st.Stats.Dropped)
		}
		var reasons int64
		for _, n := range st.Stats.DroppedFor[scheme.NotDropped+1:] {
			reasons += n
		}
		if reasons != st.Stats.Dropped {
			c.fail("shard %d: %d pushes dropped, %d of them with a reason", i, st.Stats.Dropped, reasons)
		}
		if k.landed != st.Stats.Pushes {
			c.fail("shard %d: %d pushes landed, its server counts %d", i, k.landed, st.Stats.Pushes)
		}
		c.changesCounted(int32(i))
		for w := range k.of {
			if iter := k.of[w].openPull; iter >= 0 && !c.s.IsDead(int32(w)) {
				c.fail("exactly once: worker %d's pull of shard %d for iteration %d was never answered", w, i, iter)
			}
		}
	}
	c.budget()
	c.localSamples()
	c.tasksEnd()
	c.codesCounted()
	if sent, received, lost := c.s.Traffic(); sent != received+lost {
		c.fail("conservation: %d bytes sent, %d received and %d lost with their workers", sent, received, lost)
	}
	for w := range c.s.Workers() {
		c.Inspect(c.s.Worker(int32(w)))
	}
	for m := range c.s.Servers() {
		c.Inspect(c.s.Server(int32(m)))
	}
}

// Inspect checks the invariants of a node.
func (c *checker) Inspect(n core.Node) {
	if err := n.Check(); err != nil {
		c.fail("%v", err)
	}
}
