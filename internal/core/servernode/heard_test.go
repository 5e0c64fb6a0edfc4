package servernode

import (
	"slices"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/workernode"
	"fluentps/ps/scheme"
)

// heard is what headers have told a worker of a shard.
type heard struct {
	clock     int64 // of the version in the arena
	letInto   int64 // of its last reply
	published int64 // the clock of the version beside the arena
	unread    bool  // of a worker that shares memory: it has not read the version of its last reply
}

type heardBy struct {
	w     *workernode.Worker
	shard int32
}

func (c *cluster) heardOf(w *workernode.Worker, shard int32) *heard {
	key := heardBy{w, shard}
	if c.heard[key] == nil {
		c.heard[key] = &heard{}
	}
	return c.heard[key]
}

// hears notes a header that arrives at a worker.
func (c *cluster) hears(n core.Node, in *core.Input) {
	w, ok := n.(*workernode.Worker)
	if !ok || in.Kind != core.Arrived {
		return
	}
	switch h := c.heardOf(w, in.Msg.Shard); in.Msg.Kind {
	case wire.Reply:
		h.clock, h.letInto, h.unread = in.Msg.Clock, in.Msg.Iter, true
	case wire.Publish:
		h.published = in.Msg.Clock
	}
}

// takes: the version beside the arena becomes that in the arena.
func (h *heard) takes() { h.clock = h.published }

// reads: a worker that shares memory reads the version of its reply, or else one that was published.
func (h *heard) reads() {
	if !h.unread {
		h.takes()
	}
	h.unread = false
}

// isReadInPlace says whether a server reads a worker's pushes of a shard in the worker's memory.
func (c *cluster) isReadInPlace(w *workernode.Worker, shard int32) bool {
	return c.near != nil && c.near.near(shard, w.Me()) && c.copyOf(c.plan.Shards[shard].Rule).Kind == scheme.Pulled
}

// sends says whether some gradient of a worker is being sent.
func (c *cluster) sends(w *workernode.Worker) bool {
	return slices.ContainsFunc(c.pending, func(p pending) bool { return p.node == core.Node(w) && p.in.Kind == core.PieceSent })
}
