package sim

import (
	"fmt"

	"fluentps/comm/payload"
	"fluentps/configs"
	"fluentps/ps/shard"
)

// The numbers of pieces that do not travel as they are: what a codec makes of them is done when they leave, so that all
// that comes later sees what will arrive.

// coded are the codecs of a run, for all workers and servers: they do one thing at a time.
type coded struct {
	push, pull payload.Codec // nil: as it is
	wire       []byte        // room for the largest piece
}

func newCoded(c *configs.Config, p *shard.Plan) coded {
	k := coded{push: c.PushCodec(), pull: c.PullCodec()}
	if push, reply := p.Largest(); k.push != nil || k.pull != nil {
		k.wire = make([]byte, max(push, reply))
	}
	return k
}

// pass puts into dst what arrives of src, and says how many bytes travel.
func (k *coded) pass(codec payload.Codec, dst, src, residual []float32) int64 {
	n := codec.Encode(k.wire, src, residual)
	if err := codec.Decode(dst, k.wire[:n]); err != nil {
		panic(fmt.Sprintf("sim: what was just encoded: %v", err))
	}
	return int64(n)
}

// encode makes of a piece that its worker sends what will arrive, and says how many bytes it has.
func (f *floats) encode(me int32, p *shard.Piece) (bytes int64) {
	if f.coded.push == nil || f.s.plan.Shards[p.Shard].Stat {
		return p.PushBytes
	}
	w := &f.replicas[me]
	var residual []float32
	if w.residual != nil {
		residual = w.residual[p.Lo:p.Hi]
	}
	return f.coded.pass(f.coded.push, w.grads[p.Lo:p.Hi], w.grads[p.Lo:p.Hi], residual)
}

// replied puts into dst what a worker gets of a piece of a version of that shard. Statistics travel as they are.
func (f *floats) replied(dst, version []float32, sh *shard.Shard) {
	if f.coded.pull == nil || sh.Stat {
		copy(dst, version)
		return
	}
	f.coded.pass(f.coded.pull, dst, version, nil)
}
