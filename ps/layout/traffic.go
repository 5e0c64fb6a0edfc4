package layout

import (
	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/ps/shard"
)

// roundBytes is the memory for the messages that a rank has in rounds beside those that FrameBytes counts: a pull of its own
// for every shard, an acknowledgement of every push, and the releases.
func roundBytes(c *configs.Config, p *shard.Plan, roles shard.Roles) int64 {
	if !c.InRounds() {
		return 0
	}
	workers := int64(len(roles.Workers))
	return FrameSmall * (int64(len(p.Shards))*(workers+1) + workers)
}

// FrameSmall is enough for a few headers: a frame without pieces keeps no more while it is on its way.
const FrameSmall = 512

// RingDepth bounds the control messages that may be on their way to one rank without waiting in MPI's own queue.
func RingDepth(ranks int) int { return min(256, 8+4*ranks) }

// traffic is what the push, pull and reply of one shard take, if nothing leaves together that need not.
type traffic struct {
	up, down            int64 // frames
	bulkPush, bulkReply int64 // pieces on the data channel
	push, reply         int64 // pieces in frames
	announced           int64 // pieces that a frame of a push may announce at most, where memory is shared
}

// traffic counts: a frame goes up with the first layer that is ready, with the last, whose pull it has too, and with
// each that has small pieces. Frames go down as many as the small pieces fill. Of a shard that may go through shared memory
// each layer is announced.
func (t *Routes) traffic(sh *shard.Shard, shared bool) traffic {
	layers := map[int32]bool{sh.Pieces[0].Layer: true, sh.Pieces[len(sh.Pieces)-1].Layer: true}
	n := traffic{down: 1}
	fill := wire.Size
	for i := range sh.Pieces {
		q := &sh.Pieces[i]
		if shared {
			layers[q.Layer] = true
			n.announced++
		}
		if t.push[q.ID] == InFrame {
			n.push++
			layers[q.Layer] = true
		} else {
			n.bulkPush++
		}
		if t.reply[q.ID] != InFrame {
			n.bulkReply++
			continue
		}
		n.reply++
		bytes := wire.PieceSize + int(q.ReplyBytes)
		if fill += bytes; fill > comm.CtlMax {
			n.down++
			fill = bytes
		}
	}
	n.up = int64(len(layers))
	return n
}

// FrameBytes is the most memory for control messages of a rank that are filled or on their way: those by which its worker
// pushes and pulls each shard, and its server answers each worker. A worker that need not wait for replies has pushes of
// several iterations on their way.
func (t *Routes) FrameBytes(rank int) int64 {
	p, roles := t.plan, t.roles
	var total int64
	server, works := roles.Server(rank), roles.Worker(rank) >= 0
	for i := range p.Shards {
		sh := &p.Shards[i]
		n := t.traffic(sh, t.shared[i])
		if works {
			total += frameOf(n.push, n.announced) * n.up * (CopyOf(t.cfg, sh.Rule, len(roles.Workers)).Bound + 1)
		}
		if server == int(sh.Server) {
			total += frameOf(n.reply, 0) * n.down * int64(len(roles.Workers))
		}
	}
	return total + fillBytes(roles, rank) + orderBytes(p, roles, rank)
}

// fillBytes is the most memory for messages that one batch fills at the same time. However little is said to a rank, its
// message has the room of a long one until it leaves; with bsp a server answers all workers in one batch.
func fillBytes(roles shard.Roles, rank int) int64 {
	told := 0
	if roles.Server(rank) >= 0 {
		told += len(roles.Workers) + len(roles.Servers) - 1
	}
	if w := roles.Worker(rank); w >= 0 {
		told += len(roles.Servers) + len(roles.Team(w)) - 1
	} else if roles.Leader(rank) >= 0 {
		told++
	}
	return int64(told) * comm.CtlMax
}

// orderBytes is the most memory for what the ranks of a team say to each other in one iteration: a leader the iteration
// and each layer that becomes readable, a member that forward is over and each layer that is final.
func orderBytes(p *shard.Plan, roles shard.Roles, rank int) int64 {
	lead := roles.Leader(rank)
	if lead < 0 {
		return 0
	}
	said := FrameSmall * int64(layersOf(p)+1)
	switch members := len(roles.Team(lead)) - 1; {
	case members == 0:
		return 0
	case roles.Worker(rank) >= 0:
		return said * int64(members)
	}
	return said
}

func layersOf(p *shard.Plan) int {
	layers := 0
	for i := range p.Pieces {
		layers = max(layers, int(p.Pieces[i].Layer)+1)
	}
	return layers
}

// frameOf is the memory of a frame, with pieces or without, or with so many announced.
func frameOf(pieces, announced int64) int64 {
	if pieces > 0 || 2*wire.Size+announced*wire.PieceSize > FrameSmall {
		return comm.CtlMax
	}
	return FrameSmall
}
