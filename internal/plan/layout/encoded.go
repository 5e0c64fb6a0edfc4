package layout

import (
	"fluentps/internal/comm"
	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/payload"
)

// pushBytes and replyBytes are the most bytes of a piece on the wire.
func pushBytes(p *shard.Piece) int64  { return p.PushBytes }
func replyBytes(p *shard.Piece) int64 { return p.ReplyBytes }

// workerEncodedBytes is a worker's memory for encoded pieces, with the residual.
func workerEncodedBytes(c *configs.Config, p *shard.Plan) (bytes int64) {
	encodesPush, encodesPull := encodes(c)
	for i := range p.Shards {
		push, reply := p.Shards[i].WireBytes()
		if encodesPush {
			bytes += push
		}
		if encodesPull {
			bytes += reply
		}
		bytes += p.Shards[i].PullBytes()
	}
	if c.Payload.Residual() {
		bytes += int64(p.Arena) * shard.ElemBytes
	}
	return bytes
}

// serverEncodedBytes is a server's memory for encoded pieces of one shard: a push of each worker, and every version.
func serverEncodedBytes(c *configs.Config, sh *shard.Shard, workers int) (bytes int64) {
	push, reply := sh.WireBytes()
	encodesPush, encodesPull := encodes(c)
	if encodesPush {
		bytes += push * int64(workers)
	}
	if encodesPull {
		bytes += reply * int64(Versions(c, workers))
	}
	return bytes
}

// withKeys says whether messages carry lists of keys.
func withKeys(c *configs.Config) bool {
	return c.InRounds() && c.BaselineKeys != shard.KeysTensor
}

// encodes says whether pushes and replies are encoded.
func encodes(c *configs.Config) (push, pull bool) {
	if withKeys(c) {
		return true, true
	}
	return c.Payload.Encoded()
}

// messageBytes is the longest piece in memory whose message, with its keys, is within comm.MessageMax.
func messageBytes(c *configs.Config, parameters int) int64 {
	switch c.BaselineKeys {
	case shard.KeysScalar:
		return comm.MessageMax / (shard.KeyBytes + shard.ElemBytes) * shard.ElemBytes
	case shard.KeysList:
		return max(shard.ElemBytes, (comm.MessageMax-int64(parameters)*(shard.KeyBytes+shard.LengthBytes))&^(shard.ElemBytes-1))
	}
	return comm.MessageMax
}

// keyedCodecs returns the codec of each piece; nil if messages carry no lists of keys.
func keyedCodecs(c *configs.Config, p *shard.Plan) []*payload.Keyed {
	if !withKeys(c) {
		return nil
	}
	codecs := make([]*payload.Keyed, len(p.Pieces))
	for i := range p.Pieces {
		q := &p.Pieces[i]
		if c.BaselineKeys == shard.KeysScalar {
			codecs[i] = payload.KeyedScalars(p.ScalarKey(q), q.Hi-q.Lo)
		} else {
			codecs[i] = payload.KeyedRuns(p.TensorKeys(q))
		}
	}
	return codecs
}
