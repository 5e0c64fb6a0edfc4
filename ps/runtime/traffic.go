package runtime

import (
	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/ps/core"
	"fluentps/ps/scheme"
	"fluentps/ps/shard"
)

// inlineMax is the longest piece that travels in a frame, in bytes: the header of its push and the pull behind it find
// room there too.
const inlineMax = (comm.CtlMax - 2*wire.Size - wire.PieceSize) &^ (shard.ElemBytes - 1)

// inlined says which pieces travel in frames: those of at most longest bytes on the wire, of pushes or of replies. Both
// sides know it beforehand, because the receives of the others are posted before they come. Of a shard that workers keep
// a copy of, all do or none: there the header of a push may come before the last piece of the push ahead of it, and its
// own pieces must not.
func inlined(p *shard.Plan, copyOf func(rule int) core.Copy, bytes func(*shard.Piece) int64, longest int) []bool {
	in := make([]bool, len(p.Pieces))
	for i := range p.Shards {
		sh := &p.Shards[i]
		all := true
		for k := range sh.Pieces {
			q := &sh.Pieces[k]
			in[q.ID] = bytes(q) <= int64(longest)
			all = all && in[q.ID]
		}
		if all || copyOf(sh.Rule).Kind == scheme.Pulled {
			continue
		}
		for _, q := range sh.Pieces {
			in[q.ID] = false
		}
	}
	return in
}

// traffic is what the push, pull and reply of one shard take, if nothing leaves together that need not.
type traffic struct {
	up, down            int64 // frames
	bulkPush, bulkReply int64 // pieces on the data channel
	push, reply         int64 // pieces in frames
	announced           int64 // pieces that a frame of a push may announce at most, where memory is shared
}

// trafficOf counts: a frame goes up with the first layer that is ready, with the last, whose pull it has too, and with
// each that has small pieces. Frames go down as many as the small pieces fill. Of a shard that may go through shared memory
// each layer is announced.
func trafficOf(sh *shard.Shard, inline, inlineReply []bool, near bool) traffic {
	layers := map[int32]bool{sh.Pieces[0].Layer: true, sh.Pieces[len(sh.Pieces)-1].Layer: true}
	t := traffic{down: 1}
	fill := wire.Size
	for i := range sh.Pieces {
		q := &sh.Pieces[i]
		if near {
			layers[q.Layer] = true
			t.announced++
		}
		if inline[q.ID] {
			t.push++
			layers[q.Layer] = true
		} else {
			t.bulkPush++
		}
		if !inlineReply[q.ID] {
			t.bulkReply++
			continue
		}
		t.reply++
		n := wire.PieceSize + int(q.ReplyBytes)
		if fill += n; fill > comm.CtlMax {
			t.down++
			fill = n
		}
	}
	t.up = int64(len(layers))
	return t
}

// frameBytes is the most memory for control messages of a rank that are filled or on their way: those by which its worker
// pushes and pulls each shard, and its server answers each worker. A worker that need not wait for replies has pushes of
// several iterations on their way.
func frameBytes(c *configs.Config, p *shard.Plan, roles shard.Roles, rank int) int64 {
	copyOf := func(rule int) core.Copy { return CopyOf(c, rule, len(roles.Workers)) }
	near := nearShards(c, p, nearMin)
	var total int64
	server, works := roles.Server(rank), roles.Worker(rank) >= 0
	inline, inlineReply := inlined(p, copyOf, pushBytes, inlineMax), inlined(p, copyOf, replyBytes, inlineMax)
	for i := range p.Shards {
		sh := &p.Shards[i]
		t := trafficOf(sh, inline, inlineReply, near[i])
		if works {
			total += frameOf(t.push, t.announced) * t.up * (copyOf(sh.Rule).Bound + 1)
		}
		if server == int(sh.Server) {
			total += frameOf(t.reply, 0) * t.down * int64(len(roles.Workers))
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
	said := frameSmall * int64(layersOf(p)+1)
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
	if pieces > 0 || 2*wire.Size+announced*wire.PieceSize > frameSmall {
		return comm.CtlMax
	}
	return frameSmall
}
