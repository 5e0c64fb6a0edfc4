package layout

import (
	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core/inturn"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/payload"
	"fluentps/ps/scheme"
)

// Way is how the values of a piece get from a worker to its server, or back.
type Way uint8

const (
	InFrame Way = iota // in a control message, behind their header
	OnData             // in a message of their own, whose receive is posted after the header has arrived
	Ahead              // in a message of their own, whose receive is posted before the header arrives; pushes only
	InPlace            // not sent: they are read in memory that worker and server share
	ways
)

func (w Way) String() string {
	return [ways]string{"with the headers", "by themselves", "by themselves, received ahead", "in shared memory"}[w]
}

// InlineMax is the longest piece that travels in a frame, in bytes: it leaves room for the header of its push and the pull
// behind it.
const InlineMax = (comm.CtlMax - 2*wire.Size - wire.PieceSize) &^ (shard.ElemBytes - 1)

// SharedMin is the smallest shard that goes through shared memory, in bytes. A smaller one fits into the frame that must be
// sent anyway, which was measured to be as fast.
const SharedMin = 1024

// PiecesMax bounds the pieces of a plan: the low bits of a data message's tag name one.
const PiecesMax = 1 << 24

const (
	aheadShardMax = 64 << 10 // the largest shard whose pushes are received ahead, in bytes
	// AheadReceivesMax bounds the receives that a server posts ahead. Every poll asks MPI about all of them, which was
	// measured to take 0.3 us for 256 receives and 11 us for 8000 (MPICH: 3 and 88).
	AheadReceivesMax = 256
)

// Thresholds are the sizes by which ways are chosen, in bytes. 0 stands for InlineMax and SharedMin.
type Thresholds struct {
	Inline int
	Shared int64
}

// Routes are the ways of all pieces, decided once for a run. They follow from the configuration, the shards, the roles and
// the ranks that share memory. So all ranks know all ways, and can post a receive before the message is sent.
type Routes struct {
	cfg   *configs.Config
	plan  *shard.Plan
	roles shard.Roles
	// By piece: its way if its worker and its server share no memory.
	push, reply []Way
	// By piece: its codec; nil: no piece of that direction is encoded.
	pushCodec, replyCodec []payload.Codec
	keyed                 []*payload.Keyed // by piece: its codec, both ways, if messages carry lists of keys; else nil
	shared                []bool           // by shard: versions and pushes go through memory that worker and server share
	copies                []bool           // by shard: workers keep copies of it, and do not wait until a push was read
	deltas                []bool           // by piece: a part of it is pushed as deltas, which the host computes
	// By worker, and by server: the first rank that shares memory with it.
	nodeOfWorker, nodeOfServer []int
}

// NewRoutes decides the ways. nodes is, by rank, the first rank that shares a window with it; nil: no ranks share one.
func NewRoutes(c *configs.Config, p *shard.Plan, roles shard.Roles, nodes []int, limits Thresholds) *Routes {
	if limits.Inline == 0 {
		limits.Inline = InlineMax
	}
	if limits.Shared == 0 {
		limits.Shared = SharedMin
	}
	copyOf := func(rule int) inturn.Copy { return CopyOf(c, rule, len(roles.Workers)) }
	t := &Routes{cfg: c, plan: p, roles: roles, keyed: keyedCodecs(c, p), shared: sharedShards(c, p, limits.Shared),
		copies: make([]bool, len(p.Shards)), deltas: make([]bool, len(p.Pieces))}
	t.push, t.reply = inlineWays(p, copyOf, pushBytes, limits.Inline), inlineWays(p, copyOf, replyBytes, limits.Inline)
	t.pushCodec, t.replyCodec = t.addRowCodecs(t.codecsOf(c.PushCodec())), t.codecsOf(c.PullCodec())
	for i := range p.Shards {
		t.copies[i] = copyOf(p.Shards[i].Rule).Kind != scheme.Pulled
	}
	for i := range p.Pieces {
		t.deltas[i] = c.PushesDelta(p, &p.Pieces[i])
	}
	t.placeNodes(nodes)
	t.receiveAhead()
	return t
}

// ByMessages returns the same routes without shared memory.
func (t *Routes) ByMessages() *Routes {
	by := *t
	by.placeNodes(nil)
	return &by
}

// inlineWays finds the pieces that travel in frames: those of at most longest bytes on the wire. Of a shard that workers
// keep a copy of, either all pieces do or none: the header of a push of such a shard may arrive before the last piece of
// the previous push, and the pieces in the frame must not.
func inlineWays(p *shard.Plan, copyOf func(rule int) inturn.Copy, bytes func(*shard.Piece) int64, longest int) []Way {
	in := make([]Way, len(p.Pieces))
	for i := range p.Shards {
		sh := &p.Shards[i]
		all := true
		for k := range sh.Pieces {
			if q := &sh.Pieces[k]; bytes(q) > int64(longest) {
				in[q.ID], all = OnData, false
			}
		}
		if all || copyOf(sh.Rule).Kind == scheme.Pulled {
			continue
		}
		for _, q := range sh.Pieces {
			in[q.ID] = OnData
		}
	}
	return in
}

// sharedShards finds the shards of at least bytesMin bytes that may go through shared memory. A scheme that schedules the
// server's link needs its pushes sent on it. Encoded pieces are always sent, so that a piece has the same values on all
// ways.
func sharedShards(c *configs.Config, p *shard.Plan, bytesMin int64) []bool {
	shared := make([]bool, len(p.Shards))
	push, pull := c.Payload.Encoded()
	if c.Cluster.SharedMemory == configs.SharedOff || c.Baseline != configs.BaselineNone || push || pull || c.ComputesInSteps() {
		return shared
	}
	for i := range p.Shards {
		shared[i] = p.Shards[i].Bytes() >= bytesMin && !inturn.Scheduled(c.Sync[p.Shards[i].Rule].Scheme)
	}
	return shared
}

// receiveAhead finds the shards whose pushes are received before they are announced: short ones, in the order of shards, as
// long as a server's receives (one for each piece of each worker) stay within AheadReceivesMax. Not a shard that workers
// keep a copy of, because the next push may arrive while the last one lands; and no encoded pushes, which land in a place
// of their own.
func (t *Routes) receiveAhead() {
	if t.EncodesPushes() {
		return
	}
	receivesLeft := make([]int, t.plan.Servers)
	for i := range receivesLeft {
		receivesLeft[i] = AheadReceivesMax
	}
	for i := range t.plan.Shards {
		sh := &t.plan.Shards[i]
		pieces, _ := t.MessagesOf(sh)
		n := pieces * len(t.roles.Workers)
		if sh.Bytes() > aheadShardMax || t.copies[i] || n == 0 || n > receivesLeft[sh.Server] {
			continue
		}
		receivesLeft[sh.Server] -= n
		for _, q := range sh.Pieces {
			if t.push[q.ID] == OnData {
				t.push[q.ID] = Ahead
			}
		}
	}
}
