package sim

import (
	"fmt"
	"math"

	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
)

// checker holds a run to the laws. It counts what passes between the nodes for itself. The first law that is
// broken ends the run.
type checker struct {
	broken string // what went wrong first
	shards []shardCheck
	sets   map[setOf]*contributors

	leaving map[[2]int32]leaver // by server and worker: workers of which something has not landed

	rounds bool // nobody pulls before everybody has pushed

	sent, received, lost int64 // bytes: sent = received + lost when nothing moves any more
}

// shardCheck is what the laws need to know of one shard.
type shardCheck struct {
	server    int32
	pieces    int32
	limit             // of the current scheme
	then      []limit // of those that follow
	closed    int64   // iterations committed whole, in order: backup workers do not hold v back
	last      int64   // iteration of the push folded last
	of        []pairCheck
	low       int64 // smallest clock of those that are not gone: v
	atLow     int   // how many have it
	landed    int64 // pushes
	folds     int64
	samples   int64 // in the pushes folded
	versions  int64
	set       []int32           // agrees: workers folded since the last Close
	lead      int32             // the shard whose contributors it has
	followers int               // of its rule, where it leads
	flying    []int32           // replies in flight, per parameter buffer
	apart     []apart           // per worker; nil where replies leave whole
	ahead     map[int32][]int64 // by worker: pushes that began before the last one had landed, where workers do not pull
	cur       int32
}

// pairCheck is what they need to know of one worker at one shard: a cache line, as there may be a million.
type pairCheck struct {
	clock   int64 // closed for it, by its pushes or by a change of scheme
	reached int64 // 1 + the last iteration that it pushed
	landing int64 // iteration of the push on its way, -1: none
	folded  int64 // last iteration folded
	wants   int64 // iteration of the open pull, -1: none
	sent    int64 // v of the version on its way to it, or that landed last
	copy    int64 // v of its copy
	missing int32 // pieces of the push that have not landed
	gone    bool  // the server knows that the worker left
	fed     bool  // a version was published to it and not taken
	beside  bool  // that version has landed
}

func newChecker(p *shard.Plan, workers int, limits [][]limit) *checker {
	c := &checker{shards: make([]shardCheck, len(p.Shards)), leaving: map[[2]int32]leaver{}, sets: map[setOf]*contributors{}}
	for i := range c.shards {
		s := &c.shards[i]
		*s = shardCheck{server: p.Shards[i].Server, pieces: int32(len(p.Shards[i].Pieces)), limit: limits[i][0], then: limits[i][1:], atLow: workers, flying: make([]int32, core.Buffers(workers, false)), ahead: map[int32][]int64{}, lead: core.LeadShard(p, int32(i)), of: make([]pairCheck, workers)}
		for w := range workers {
			s.of[w] = pairCheck{landing: -1, folded: -1, wants: -1}
		}
	}
	for i := range c.shards {
		if lead := c.shards[i].lead; lead != int32(i) {
			c.shards[lead].followers++
		}
	}
	return c
}

func (c *checker) fail(format string, args ...any) {
	if c.broken == "" {
		c.broken = fmt.Sprintf(format, args...)
	}
}

// asked: a worker sends a pull. It has at most one per shard.
func (c *checker) asked(m wire.Header) {
	s := &c.shards[m.Shard]
	if s.of[m.Worker].wants >= 0 {
		c.fail("exactly once: worker %d pulls shard %d for iteration %d while its pull for %d is open", m.Worker, m.Shard, m.Iter, s.of[m.Worker].wants)
	}
	s.of[m.Worker].wants = m.Iter
	if !c.rounds || m.Shard > 0 { // it pulls all of them at once
		return
	}
	for i := range c.shards {
		if v := c.shards[i].v(); v < m.Iter {
			c.fail("rounds: worker %d pulls shard %d for iteration %d, and at shard %d some worker's push of iteration %d has not landed", m.Worker, m.Shard, m.Iter, i, v)
		}
	}
}

// replied: a server decides to answer a pull. The worker must have one open, and the gate must be open to it.
func (c *checker) replied(e *core.Effect) {
	s := &c.shards[e.Shard]
	w := e.To
	if s.of[w].wants < 0 || e.Msg.Iter < s.of[w].wants {
		c.fail("exactly once: shard %d answers worker %d with iteration %d, and its open pull is for %d (-1: none)", e.Shard, w, e.Msg.Iter, s.of[w].wants)
	}
	s.of[w].wants = -1
	v := s.v()
	if lead := e.Msg.Iter - v; s.bound >= 0 && lead > s.bound {
		c.fail("the gate: shard %d lets worker %d into iteration %d at v=%d: a lead of %d, and its scheme allows %d", e.Shard, w, e.Msg.Iter, v, lead, s.bound)
	}
	if e.Msg.Iter >= s.until {
		c.fail("the change: shard %d lets worker %d into iteration %d at v=%d, and its scheme is until %d", e.Shard, w, e.Msg.Iter, v, s.until)
	}
	s.flying[e.Src]++
	s.of[w].sent = v
}

// replySent: the version that a reply carried is no longer read.
func (c *checker) replySent(shard, buf int32) { c.shards[shard].flying[buf]-- }

// offered: the header of a push reached its server.
func (c *checker) offered(m wire.Header) {
	s := &c.shards[m.Shard]
	if k := &s.of[m.Worker]; s.copies != scheme.Pulled && k.landing >= 0 && m.Iter > k.landing {
		s.ahead[m.Worker] = append(s.ahead[m.Worker], m.Iter)
		return
	}
	if s.of[m.Worker].landing >= 0 || m.Iter < s.of[m.Worker].reached {
		c.fail("exactly once: worker %d pushes iteration %d of shard %d, which has %d of it", m.Worker, m.Iter, m.Shard, s.of[m.Worker].reached)
	}
	s.of[m.Worker].landing, s.of[m.Worker].missing = m.Iter, s.pieces
}

// landed: a piece of the push on its way is in its slot; the last one moves the worker's clock.
func (c *checker) landed(shard, w int32) {
	s := &c.shards[shard]
	if s.of[w].landing < 0 {
		c.fail("exactly once: a piece of worker %d for shard %d belongs to no push", w, shard)
		return
	}
	if s.of[w].missing--; s.of[w].missing > 0 {
		return
	}
	old := s.of[w].clock
	s.of[w].reached = s.of[w].landing + 1
	s.of[w].clock = max(old, s.of[w].reached)
	s.of[w].landing = -1
	if next := s.ahead[w]; len(next) > 0 {
		s.of[w].landing, s.of[w].missing = next[0], s.pieces
		s.ahead[w] = next[1:]
	}
	s.landed++
	if !s.of[w].gone && old == s.low && s.of[w].clock > old {
		s.leaves()
	}
	s.changes()
	c.leavesAtLast(s.server, w)
}

// leaves: one worker less has the smallest clock.
func (s *shardCheck) leaves() {
	if s.atLow--; s.atLow == 0 {
		s.lowest()
	}
}

// lowest finds the smallest clock and how many have it; none where nobody is in the run.
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

// left: a server learns that a worker is gone. Its open pulls vanish, and what has not landed never will.
func (c *checker) left(shards []int32, w int32) {
	for _, id := range shards {
		s := &c.shards[id]
		if s.of[w].gone {
			continue
		}
		s.of[w].gone = true
		s.of[w].landing, s.of[w].wants = -1, -1
		delete(s.ahead, w)
		if s.of[w].clock == s.low {
			s.leaves()
		}
		s.changes()
	}
}

// folded: a push enters the pending sums. It has landed, and was not folded before: schemes fold a worker's
// pushes in order.
func (c *checker) folded(e *core.Effect) {
	s := &c.shards[e.Shard]
	w, iter := e.Msg.Worker, e.Msg.Iter
	if iter <= s.of[w].folded || iter >= s.of[w].clock {
		c.fail("exactly once: shard %d folds worker %d's iteration %d after %d, and its clock is %d", e.Shard, w, iter, s.of[w].folded, s.of[w].clock)
	}
	s.of[w].folded = iter
	s.folds++
	s.samples += e.Msg.Samples
	s.last = iter
	if s.agrees && iter >= s.closed { // else it is the scheme's before the change
		s.set = append(s.set, w)
	}
}

// committed: a version is written. Nobody may still read the buffer that it goes into.
func (c *checker) committed(e *core.Effect) {
	s := &c.shards[e.Shard]
	if e.Dst == s.cur || e.Src != s.cur || s.flying[e.Dst] > 0 {
		c.fail("immutable versions: shard %d writes version %d from buffer %d into %d, which %d replies read; %d is current", e.Shard, e.Iter, e.Src, e.Dst, s.flying[e.Dst], s.cur)
	}
	s.cur = e.Dst
	s.versions++
	if s.whole && !s.agrees {
		s.closed = s.last + 1
		s.changes()
	}
}

// end: every push was folded or dropped, no pull is open, no byte is missing.
func (c *checker) end(s *simulation) {
	for i := range c.shards {
		k := &c.shards[i]
		st := s.servers[s.plan.Shards[i].Server].node.Shard(int32(i))
		if k.landed != k.folds+st.Stats.Dropped {
			c.fail("exactly once: shard %d: %d pushes landed, %d were folded and %d dropped", i, k.landed, k.folds, st.Stats.Dropped)
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
		for w := range k.of {
			if iter := k.of[w].wants; iter >= 0 && !s.workers[w].dead {
				c.fail("exactly once: worker %d's pull of shard %d for iteration %d was never answered", w, i, iter)
			}
		}
	}
	c.budget(s)
	if c.sent != c.received+c.lost {
		c.fail("conservation: %d bytes sent, %d received and %d lost with their workers", c.sent, c.received, c.lost)
	}
	for i := range s.workers {
		c.node(s.workers[i].node)
	}
	for i := range s.servers {
		c.node(s.servers[i].node)
	}
}

// node looks at a node's own invariants.
func (c *checker) node(n core.Node) {
	if err := n.Check(); err != nil {
		c.fail("%v", err)
	}
}
