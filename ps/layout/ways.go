package layout

import (
	"slices"

	"fluentps/comm/payload"
	"fluentps/configs"
	"fluentps/ps/shard"
)

// Push is the way of a piece of a worker's push.
func (t *Routes) Push(piece, worker int32) Way {
	if t.Lends(t.plan.Pieces[piece].Shard, worker) {
		return InPlace
	}
	return t.push[piece]
}

// Reply is the way of a piece of a version to a worker.
func (t *Routes) Reply(piece, worker int32) Way {
	if t.Shares(t.plan.Pieces[piece].Shard, worker) {
		return InPlace
	}
	return t.reply[piece]
}

// Shares says whether a worker reads the versions of a shard in its server's memory.
func (t *Routes) Shares(id, worker int32) bool {
	return t.nodeOfWorker != nil && t.shared[id] && t.nodeOfWorker[worker] == t.nodeOfServer[t.plan.Shards[id].Server]
}

// Lends says whether the server of a shard reads the gradients of a worker where they are, too: one that keeps copies does not
// wait for that.
func (t *Routes) Lends(id, worker int32) bool { return t.Shares(id, worker) && !t.copies[id] }

// SharedShards are the shards that go through memory where a server and a worker share it.
func (t *Routes) SharedShards() []bool { return t.shared }

// Apart is how many pieces of a push of a shard, and of a reply, are messages of their own where they are sent.
func (t *Routes) Apart(sh *shard.Shard) (pushed, replied int) {
	for i := range sh.Pieces {
		if t.push[sh.Pieces[i].ID] != InFrame {
			pushed++
		}
		if t.reply[sh.Pieces[i].ID] != InFrame {
			replied++
		}
	}
	return pushed, replied
}

// ReceivesAhead says whether pushes of a shard are received before they are announced, where they are sent.
func (t *Routes) ReceivesAhead(sh *shard.Shard) bool {
	return slices.ContainsFunc(sh.Pieces, func(q shard.Piece) bool { return t.push[q.ID] == Ahead })
}

// EncodesPushes and EncodesReplies say whether pieces of pushes, and of replies, do not travel as they are.
func (t *Routes) EncodesPushes() bool  { return t.pushCodec != nil }
func (t *Routes) EncodesReplies() bool { return t.replyCodec != nil }

// PushCodec and ReplyCodec are what a piece is encoded with; nil: it travels as it is.
func (t *Routes) PushCodec(piece int32) payload.Codec  { return codecOf(t.pushCodec, piece) }
func (t *Routes) ReplyCodec(piece int32) payload.Codec { return codecOf(t.replyCodec, piece) }

func codecOf(codecs []payload.Codec, piece int32) payload.Codec {
	if codecs == nil {
		return nil
	}
	return codecs[piece]
}

// Keyed are the codecs of the pieces where messages have lists of keys, which pulls have, too; nil where they have none.
func (t *Routes) Keyed() []*payload.Keyed { return t.keyed }

// AcceptsPush and AcceptsReply say whether n bytes in a frame may be those of a piece: whoever sends them may be damaged, or
// another program.
func (t *Routes) AcceptsPush(piece int32, n int) bool {
	return int(piece) < len(t.push) && t.push[piece] == InFrame && fits(n, t.plan.Pieces[piece].PushBytes, t.EncodesPushes())
}

func (t *Routes) AcceptsReply(piece int32, n int) bool {
	return int(piece) < len(t.reply) && t.reply[piece] == InFrame && fits(n, t.plan.Pieces[piece].ReplyBytes, t.EncodesReplies())
}

func fits(n int, most int64, encoded bool) bool {
	return int64(n) == most || encoded && int64(n) < most
}

// Direct says which pieces of a worker go from and to its GPU's memory, where MPI reaches that: those with a message of their
// own that travel as they are, to and from another rank, and that nothing on the host has to touch. What ranks of a team share
// is the host's, and so are copies.
func (t *Routes) Direct(worker int32) (pushed, replied []bool) {
	pushed, replied = make([]bool, len(t.push)), make([]bool, len(t.reply))
	if len(t.roles.Team(int(worker))) > 1 {
		return pushed, replied
	}
	rank := t.roles.Workers[worker]
	for i := range t.plan.Pieces {
		p := &t.plan.Pieces[i]
		if t.roles.Servers[t.plan.Shards[p.Shard].Server] == rank || t.Shares(p.Shard, worker) || t.copies[p.Shard] || t.deltas[p.ID] {
			continue
		}
		pushed[i] = t.push[i] != InFrame && !t.EncodesPushes()
		replied[i] = t.reply[i] != InFrame && !t.EncodesReplies()
	}
	return pushed, replied
}

// placeNodes notes who shares memory.
func (t *Routes) placeNodes(nodes []int) {
	t.nodeOfWorker, t.nodeOfServer = nil, nil
	if nodes == nil || !slices.Contains(t.shared, true) {
		return
	}
	for _, rank := range t.roles.Workers {
		t.nodeOfWorker = append(t.nodeOfWorker, nodes[rank])
	}
	for _, rank := range t.roles.Servers {
		t.nodeOfServer = append(t.nodeOfServer, nodes[rank])
	}
}

// codecs gives each piece its codec, where those of trained parameters have this one. Statistics travel as they are beside
// encoded gradients, with a codec that changes nothing: they are means of values, in which what a codec drops or rounds away
// would not come back with the next push.
func (t *Routes) codecs(codec payload.Codec) []payload.Codec {
	if codec == nil && t.keyed == nil {
		return nil
	}
	plain := configs.PlainCodec()
	all := make([]payload.Codec, len(t.plan.Pieces))
	for i := range all {
		switch {
		case t.keyed != nil:
			all[i] = t.keyed[i]
		case t.plan.Shards[t.plan.Pieces[i].Shard].Stat:
			all[i] = plain
		default:
			all[i] = codec
		}
	}
	return all
}

// rows gives the pieces of parameters that have rows their codec, where pushes travel as they are but for that.
func (t *Routes) rows(codecs []payload.Codec) []payload.Codec {
	if codecs != nil || t.cfg.InRounds() || Reduces(t.cfg) { // where the plan has no room for them
		return codecs
	}
	for i := range t.plan.Pieces {
		p := &t.plan.Pieces[i]
		width, cut := t.plan.Rows(p)
		if width == 0 || t.plan.Shards[p.Shard].Stat {
			continue
		}
		if codecs == nil {
			codecs = slices.Repeat([]payload.Codec{configs.PlainCodec()}, len(t.plan.Pieces))
		}
		codecs[i] = payload.NewRows(width, cut)
	}
	return codecs
}
