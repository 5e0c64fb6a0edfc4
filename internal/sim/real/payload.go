package real

import (
	"fmt"
	"math"

	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/origin"
	"fluentps/internal/policy/optim"
	"fluentps/internal/policy/payload"
	"fluentps/internal/sim"
)

// The values of pieces that travel encoded. They are encoded and decoded when they leave, so that everything later sees the values
// that will arrive.

// coded has the codecs of a run. All workers and servers share it, because they run one after the other.
type coded struct {
	push, pull payload.Codec   // nil: values travel unchanged
	wire       []byte          // scratch for the largest encoded piece
	found      *origin.Finding // the first value that a codec has made infinite; nil: none
}

func newCoded(c *configs.Config, p *shard.Plan) coded {
	k := coded{push: c.PushCodec(), pull: c.PullCodec()}
	if push, reply := p.Largest(); k.push != nil || k.pull != nil {
		k.wire = make([]byte, max(push, reply))
	}
	return k
}

// pass encodes src and decodes it into dst; memory is nil, or what the codec remembers of the piece. It returns the
// number of encoded bytes.
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

// Encode replaces the values of a piece that its worker sends in an iteration by those that will arrive. It returns the encoded bytes.
func (f *floats) Encode(me int32, p *shard.Piece, iter int64) (bytes int64) {
	if f.coded.push == nil || f.s.Plan().Shards[p.Shard].Stat {
		return p.PushBytes
	}
	w := &f.replicas[me]
	var residual []float32
	if w.residual != nil {
		residual = w.residual[p.Lo:p.Hi]
	}
	grads := w.grads[p.Lo:p.Hi]
	top := optim.Top(grads)
	bytes = f.coded.pass(f.coded.push, &w.memory[p.ID], grads, grads, residual)
	if f.coded.overflows(grads, top) {
		f.foundCoded(grads, origin.Finding{Worker: me, Iter: iter, Gradient: float64(math.Float32frombits(top))}, p.Lo)
	}
	return bytes
}

// replied writes to dst the values that a worker receives of a piece of a version. Statistics travel unchanged.
func (f *floats) replied(t sim.Transfer, dst, version []float32, p *shard.Piece) {
	if f.coded.pull == nil || f.s.Plan().Shards[p.Shard].Stat {
		copy(dst, version)
		return
	}
	f.coded.pass(f.coded.pull, nil, dst, version, nil)
	if top := optim.Top(version); f.coded.overflows(dst, top) {
		of := origin.Finding{Worker: t.Worker, Iter: f.s.Worker(t.Worker).Iter(), Params: float64(math.Float32frombits(top)), Pull: true}
		f.foundCoded(dst, of, p.Lo)
	}
}

// overflows says whether a codec has made values that are not finite of finite ones, for the first time. top is the largest magnitude
// that it was given, as bits.
func (k *coded) overflows(values []float32, top uint32) bool {
	return k.found == nil && top < optim.Infinite && optim.Top(values) >= optim.Infinite
}

// foundCoded keeps the first value that a codec has made infinite. lo is where the values begin in an arena.
func (f *floats) foundCoded(values []float32, of origin.Finding, lo int) {
	at := optim.NotFinite(values)
	of.Place, of.Server, of.Value, of.At = origin.Payload, origin.Nobody, origin.Text(float64(values[at])), f.s.Now()
	of.Param, of.Elem, of.Layer = f.s.Plan().ElementAt(lo + at)
	f.coded.found = &of
}
