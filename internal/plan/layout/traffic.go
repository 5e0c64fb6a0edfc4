package layout

import (
	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
)

// roundBytes is the memory for the messages of a rank in rounds that FrameBytes does not count: a pull of its own for every
// shard, an acknowledgement of every push, and the releases.
func roundBytes(c *configs.Config, p *shard.Plan, roles shard.Roles) int64 {
	if !c.InRounds() {
		return 0
	}
	workers := int64(len(roles.Workers))
	return FrameSmall * (int64(len(p.Shards))*(workers+1) + workers)
}

// FrameSmall is room for a few headers, in bytes: a frame without pieces keeps no more while it is in flight.
const FrameSmall = 512

// RingDepth is the number of control messages that may be in flight to one rank without waiting in MPI's own queue.
func RingDepth(ranks int) int { return min(256, 8+4*ranks) }

// traffic counts what the push, pull and reply of one shard send, in as many frames as there can be.
type traffic struct {
	framesUp, framesDown    int64
	bulkPush, bulkReply     int64 // pieces on the data channel
	inlinePush, inlineReply int64 // pieces in frames
	announced               int64 // most pieces that a frame of a push announces, if memory is shared
}

// traffic counts the messages of a shard. A frame goes up with the first layer that is ready, with the last layer, which
// also carries the pull, and with each layer that has small pieces. The small pieces determine the frames down. For a shard
// that may go through shared memory, each layer is announced.
func (t *Routes) traffic(sh *shard.Shard, shared bool) traffic {
	layers := map[int32]bool{sh.Pieces[0].Layer: true, sh.Pieces[len(sh.Pieces)-1].Layer: true}
	n := traffic{framesDown: 1}
	fill := wire.Size
	for i := range sh.Pieces {
		q := &sh.Pieces[i]
		if shared {
			layers[q.Layer] = true
			n.announced++
		}
		if t.push[q.ID] == InFrame {
			n.inlinePush++
			layers[q.Layer] = true
		} else {
			n.bulkPush++
		}
		if t.reply[q.ID] != InFrame {
			n.bulkReply++
			continue
		}
		n.inlineReply++
		bytes := wire.PieceSize + int(q.ReplyBytes)
		if fill += bytes; fill > comm.CtlMax {
			n.framesDown++
			fill = bytes
		}
	}
	n.framesUp = int64(len(layers))
	return n
}

// FrameBytes is the most memory for a rank's control messages that are being filled or in flight: those by which its worker
// pushes and pulls each shard, and its server answers each worker. A worker that does not wait for replies has pushes of
// several iterations in flight.
func (t *Routes) FrameBytes(rank int) int64 {
	p, roles := t.plan, t.roles
	var total int64
	server, works := roles.Server(rank), roles.Worker(rank) >= 0
	for i := range p.Shards {
		sh := &p.Shards[i]
		n := t.traffic(sh, t.shared[i])
		if works {
			total += frameBytes(n.inlinePush, n.announced) * n.framesUp * (CopyOf(t.cfg, sh.Rule, len(roles.Workers)).Bound + 1)
		}
		if server == int(sh.Server) {
			total += frameBytes(n.inlineReply, 0) * n.framesDown * int64(len(roles.Workers))
		}
	}
	return total + fillBytes(roles, rank) + teamBytes(p, roles, rank)
}

// fillBytes is the most memory for messages that one batch fills at the same time. A message has the room of a long one
// until it leaves, however short it is; with bsp a server answers all workers in one batch.
func fillBytes(roles shard.Roles, rank int) int64 {
	peers := 0
	if roles.Server(rank) >= 0 {
		peers += len(roles.Workers) + len(roles.Servers) - 1
	}
	if w := roles.Worker(rank); w >= 0 {
		peers += len(roles.Servers) + len(roles.Team(w)) - 1
	} else if roles.Leader(rank) >= 0 {
		peers++
	}
	return int64(peers) * comm.CtlMax
}

// teamBytes is the most memory for the messages between the ranks of a team in one iteration: a leader sends the iteration
// and each layer that becomes readable, a member the end of forward and each layer that is final.
func teamBytes(p *shard.Plan, roles shard.Roles, rank int) int64 {
	lead := roles.Leader(rank)
	if lead < 0 {
		return 0
	}
	perMember := FrameSmall * int64(layersOf(p)+1)
	switch members := len(roles.Team(lead)) - 1; {
	case members == 0:
		return 0
	case roles.Worker(rank) >= 0:
		return perMember * int64(members)
	}
	return perMember
}

func layersOf(p *shard.Plan) int {
	layers := 0
	for i := range p.Pieces {
		layers = max(layers, int(p.Pieces[i].Layer)+1)
	}
	return layers
}

// frameBytes is the memory of a frame with so many pieces and so many announced ones.
func frameBytes(pieces, announced int64) int64 {
	if pieces > 0 || 2*wire.Size+announced*wire.PieceSize > FrameSmall {
		return comm.CtlMax
	}
	return FrameSmall
}
