package layout

import (
	"slices"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/payload"
)

// Push is the way of a piece of a worker's push.
func (t *Routes) Push(piece, worker int32) Way {
	if t.ReadsGradients(t.plan.Pieces[piece].Shard, worker) {
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

// ReadsGradients says whether the server of a shard reads a worker's gradients in the worker's memory. It does not if the
// worker keeps a copy of the shard, because such a worker does not wait until its gradients were read.
func (t *Routes) ReadsGradients(id, worker int32) bool { return t.Shares(id, worker) && !t.copies[id] }

// SharedShards says, by shard, whether it goes through memory that a server and a worker share.
func (t *Routes) SharedShards() []bool { return t.shared }

// MessagesOf is how many pieces of a push of a shard, and of a reply, have a message of their own when they are sent.
func (t *Routes) MessagesOf(sh *shard.Shard) (pushed, replied int) {
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

// ReceivesAhead says whether pushes of a shard that are sent are received before they are announced.
func (t *Routes) ReceivesAhead(sh *shard.Shard) bool {
	return slices.ContainsFunc(sh.Pieces, func(q shard.Piece) bool { return t.push[q.ID] == Ahead })
}

// EncodesPushes and EncodesReplies say whether pieces of pushes, and of replies, are encoded.
func (t *Routes) EncodesPushes() bool  { return t.pushCodec != nil }
func (t *Routes) EncodesReplies() bool { return t.replyCodec != nil }

// PushCodec and ReplyCodec return the codec of a piece; nil: it is not encoded.
func (t *Routes) PushCodec(piece int32) payload.Codec  { return codecOf(t.pushCodec, piece) }
func (t *Routes) ReplyCodec(piece int32) payload.Codec { return codecOf(t.replyCodec, piece) }

func codecOf(codecs []payload.Codec, piece int32) payload.Codec {
	if codecs == nil {
		return nil
	}
	return codecs[piece]
}

// Keyed returns the codecs of the pieces if messages carry lists of keys, and pulls do too; else nil.
func (t *Routes) Keyed() []*payload.Keyed { return t.keyed }

// AcceptsPush and AcceptsReply say whether a piece in a frame may have n bytes. The sender may be damaged, or another
// program.
func (t *Routes) AcceptsPush(piece int32, n int) bool {
	return int(piece) < len(t.push) && t.push[piece] == InFrame && isLength(n, t.plan.Pieces[piece].PushBytes, t.EncodesPushes())
}

func (t *Routes) AcceptsReply(piece int32, n int) bool {
	return int(piece) < len(t.reply) && t.reply[piece] == InFrame && isLength(n, t.plan.Pieces[piece].ReplyBytes, t.EncodesReplies())
}

func isLength(n int, longest int64, encoded bool) bool {
	return int64(n) == longest || encoded && int64(n) < longest
}

// Direct says which pieces of a worker MPI sends from and receives into GPU memory, if MPI reaches that: those with a
// message of their own, not encoded, to and from another rank, that the host need not touch. The host touches what ranks of
// a team share, copies of shards, deltas, what workers with steps of their own push and take over, the gradients
// of the steps of a batch, which it adds up (their parameters are a copy that it takes), and gradients that it clips.
func (t *Routes) Direct(worker int32) (pushed, replied []bool) {
	pushed, replied = make([]bool, len(t.push)), make([]bool, len(t.reply))
	if len(t.roles.Team(int(worker))) > 1 || t.cfg.Local.IsSet() || t.cfg.ComputesInSteps() {
		return pushed, replied
	}
	rank := t.roles.Workers[worker]
	for i := range t.plan.Pieces {
		p := &t.plan.Pieces[i]
		if t.roles.Servers[t.plan.Shards[p.Shard].Server] == rank || t.Shares(p.Shard, worker) || t.copies[p.Shard] || t.deltas[p.ID] {
			continue
		}
		pushed[i] = t.push[i] != InFrame && !t.EncodesPushes() && !t.cfg.Train.Clip.OfWorkers()
		replied[i] = t.reply[i] != InFrame && !t.EncodesReplies()
	}
	return pushed, replied
}

// placeNodes notes which workers and servers share memory.
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

// codecsOf returns the codec of each piece, where pieces of trained parameters have the given one. Statistics have a codec
// that changes nothing: a statistic is the mean of a value, so the next push would not bring back what a codec drops or
// rounds away.
func (t *Routes) codecsOf(codec payload.Codec) []payload.Codec {
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

// addRowCodecs gives the pieces of parameters that have rows their codec, if pushes are not encoded otherwise.
func (t *Routes) addRowCodecs(codecs []payload.Codec) []payload.Codec {
	if codecs != nil || t.cfg.InRounds() || Reduces(t.cfg) { // their plans leave no room for row codecs
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
