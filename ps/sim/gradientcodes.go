package sim

import (
	"fmt"

	"fluentps/comm/payload"
	"fluentps/configs"
	"fluentps/ps/shard"
)

// The values of pieces that travel encoded. They are encoded and decoded when they leave, so that everything later sees the values
// that will arrive.

// coded has the codecs of a run. All workers and servers share it, because they run one after the other.
type coded struct {
	push, pull payload.Codec // nil: values travel unchanged
	wire       []byte        // scratch for the largest encoded piece
}

func newCoded(c *configs.Config, p *shard.Plan) coded {
	k := coded{push: c.PushCodec(), pull: c.PullCodec()}
	if push, reply := p.Largest(); k.push != nil || k.pull != nil {
		k.wire = make([]byte, max(push, reply))
	}
	return k
}

// pass encodes src and decodes it into dst; memory is nil, or what the codec remembers of the piece. It returns the number of encoded bytes.
func (k *coded) pass(codec payload.Codec, memory *payload.Memory, dst, src, residual []float32) int64 {
	n := 0
	if c, remembers := codec.(payload.Remembering); remembers && memory != nil {
		n = c.EncodeAfter(memory, k.wire, src, residual)
	} else {
		n = codec.Encode(k.wire, src, residual)
	}
	if err := codec.Decode(dst, k.wire[:n]); err != nil {
		panic(fmt.Sprintf("sim: decode a piece that was just encoded: %v", err))
	}
	return int64(n)
}

// encode replaces the values of a piece that its worker sends by those that will arrive. It returns the encoded bytes.
func (f *floats) encode(me int32, p *shard.Piece) (bytes int64) {
	if f.coded.push == nil || f.s.plan.Shards[p.Shard].Stat {
		return p.PushBytes
	}
	w := &f.replicas[me]
	var residual []float32
	if w.residual != nil {
		residual = w.residual[p.Lo:p.Hi]
	}
	return f.coded.pass(f.coded.push, &w.memory[p.ID], w.grads[p.Lo:p.Hi], w.grads[p.Lo:p.Hi], residual)
}

// replied writes to dst the values that a worker receives of a piece of a version. Statistics travel unchanged.
func (f *floats) replied(dst, version []float32, sh *shard.Shard) {
	if f.coded.pull == nil || sh.Stat {
		copy(dst, version)
		return
	}
	f.coded.pass(f.coded.pull, nil, dst, version, nil)
}
