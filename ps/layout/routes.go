package layout

import (
	"fluentps/comm"
	"fluentps/comm/payload"
	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/ps/core"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
)

// Way is how the values of a piece get from a worker to its server, or back.
type Way uint8

const (
	InFrame Way = iota // in a control message, behind their header
	OnData             // in a message of their own, whose receive is posted when the header has come
	Ahead              // the same; of pushes: the receive is posted before the header comes
	InPlace            // not at all: they are read where they lie, in memory that worker and server share
	ways
)

func (w Way) String() string {
	return [ways]string{"with the headers", "by themselves", "by themselves, received ahead", "in shared memory"}[w]
}

// InlineMax is the longest piece that travels in a frame, in bytes: the header of its push and the pull behind it find
// room there too.
const InlineMax = (comm.CtlMax - 2*wire.Size - wire.PieceSize) &^ (shard.ElemBytes - 1)

// SharedMin is the size from which a shard goes through shared memory, in bytes. A smaller one is in the frame that must be
// sent anyway, which was measured to be as fast up to here.
const SharedMin = 1024

// PiecesMax bounds the pieces of a plan: the low bits of a data message's tag name one.
const PiecesMax = 1 << 24

const (
	aheadMax = 64 << 10 // the longest shard whose pushes are received ahead, in bytes
	// AheadMost bounds the receives that a server posts ahead. Every poll asks MPI about all of them, and was measured to take
	// 0.3 us with 256 and 11 us with 8000 (MPICH: 3 and 88).
	AheadMost = 256
)

// Thresholds are the sizes by which ways are chosen, in bytes; zeros are InlineMax and SharedMin.
type Thresholds struct {
	Inline int
	Shared int64
}

// Routes are the ways of all pieces, decided once for a run. They follow from the configuration, the shards, the roles and
// who shares memory, so all ranks know all of them, and a receive is posted before what it is for is sent.
type Routes struct {
	cfg   *configs.Config
	plan  *shard.Plan
	roles shard.Roles
	// By piece: its way where its worker and its server share no memory.
	push, reply []Way
	// By piece, what it is encoded with; nil: all pieces of that direction travel as they are.
	pushCodec, replyCodec []payload.Codec
	keyed                 []*payload.Keyed // by piece, where messages have lists of keys: its codec, both ways
	shared                []bool           // by shard: versions and pushes go through memory where worker and server share it
	copies                []bool           // by shard: workers keep copies of it, and do not wait until a push was read
	deltas                []bool           // by piece: a part of it is pushed as deltas, which the host makes
	// By worker, and by shard of its server: the first rank that shares memory with it.
	nodeOfWorker, nodeOfServer []int
}

// NewRoutes decides the ways. nodes has for each rank the first rank that it shares a window with; nil: nobody shares one.
func NewRoutes(c *configs.Config, p *shard.Plan, roles shard.Roles, nodes []int, at Thresholds) *Routes {
	if at.Inline == 0 {
		at.Inline = InlineMax
	}
	if at.Shared == 0 {
		at.Shared = SharedMin
	}
	copyOf := func(rule int) core.Copy { return CopyOf(c, rule, len(roles.Workers)) }
	t := &Routes{cfg: c, plan: p, roles: roles, keyed: keyedCodecs(c, p), shared: sharedShards(c, p, at.Shared), copies: make([]bool, len(p.Shards)), deltas: make([]bool, len(p.Pieces))}
	t.push, t.reply = inlined(p, copyOf, pushBytes, at.Inline), inlined(p, copyOf, replyBytes, at.Inline)
	t.pushCodec, t.replyCodec = t.rows(t.codecs(c.PushCodec())), t.codecs(c.PullCodec())
	for i := range p.Shards {
		t.copies[i] = copyOf(p.Shards[i].Rule).Kind != scheme.Pulled
	}
	for i := range p.Pieces {
		t.deltas[i] = len(c.DeltaRuns(p, &p.Pieces[i])) > 0
	}
	t.placeNodes(nodes)
	t.receiveAhead()
	return t
}

// ByMessages are the same routes where nobody shares memory after all.
func (t *Routes) ByMessages() *Routes {
	by := *t
	by.placeNodes(nil)
	return &by
}

// inlined finds the pieces that travel in frames: those of at most longest bytes on the wire. Of a shard that workers keep a
// copy of, all do or none: there the header of a push may come before the last piece of the push ahead of it, and its own
// pieces must not.
func inlined(p *shard.Plan, copyOf func(rule int) core.Copy, bytes func(*shard.Piece) int64, longest int) []Way {
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

// sharedShards finds the shards that go through shared memory where a server and a worker have it: those of at least so many
// bytes. A scheme that schedules the server's link has its pushes sent on it, and what is encoded is sent, so that it has the
// same values on all ways.
func sharedShards(c *configs.Config, p *shard.Plan, least int64) []bool {
	shared := make([]bool, len(p.Shards))
	push, pull := c.Payload.Encoded()
	if c.Cluster.SharedMemory == configs.SharedOff || c.Baseline != configs.BaselineNone || push || pull {
		return shared
	}
	for i := range p.Shards {
		shared[i] = p.Shards[i].Bytes() >= least && !core.Scheduled(c.Sync[p.Shards[i].Rule].Scheme)
	}
	return shared
}

// receiveAhead finds the shards whose pushes are received before they are announced: short ones, in their order, as long as a
// server's receives, as many as the pieces of all workers, stay within AheadMost. Of a worker that keeps a copy the next push
// may come while the last one lands; what is encoded has a place of its own.
func (t *Routes) receiveAhead() {
	if t.EncodesPushes() {
		return
	}
	left := make([]int, t.plan.Servers)
	for i := range left {
		left[i] = AheadMost
	}
	for i := range t.plan.Shards {
		sh := &t.plan.Shards[i]
		pieces, _ := t.Apart(sh)
		n := pieces * len(t.roles.Workers)
		if sh.Bytes() > aheadMax || t.copies[i] || n == 0 || n > left[sh.Server] {
			continue
		}
		left[sh.Server] -= n
		for _, q := range sh.Pieces {
			if t.push[q.ID] == OnData {
				t.push[q.ID] = Ahead
			}
		}
	}
}
