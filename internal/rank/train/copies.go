package train

import (
	"fmt"

	"fluentps/internal/comm"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/optim"
)

// copies is the memory of a worker that keeps copies of shards: for published versions, which arrive while kernels read the
// parameters, and for the worker's own pushes that such a version may lack. Each buffer is allocated on first use.
type copies struct {
	published map[int32]*comm.Buf // by shard
	pushes    map[int32][]vector  // by shard and slot
}

type vector []float32

// obeyCopies does what the node asks for a copy. The node asks only while no kernel reads the shard.
func (w *Side) obeyCopies(e *core.Effect) {
	sh := &w.station.Plan.Shards[e.Shard]
	params, push := w.arenas.params.F32()[sh.Lo:sh.Hi], vector(w.arenas.grads.F32()[sh.Lo:sh.Hi])
	switch e.Kind {
	case core.ExpectBeside:
		b, err := w.publishedBuf(sh)
		if err != nil {
			w.station.Net.Fail(err)
			return
		}
		w.expect(e, b, sh.Lo*shard.ElemBytes)
	case core.Adopt:
		copy(params, w.arenas.copies.published[e.Shard].F32())
	case core.Keep:
		copy(w.slot(e.Shard, e.Slot, len(push)), push)
	case core.AddLocal:
		if e.Slot >= 0 {
			push = w.slot(e.Shard, e.Slot, len(push))
		}
		if sh.Stat {
			optim.AddValue(params, push, e.Scale, e.Weight)
		} else {
			optim.AddDelta(params, push, e.Scale*e.Weight)
		}
	}
}

// publishedBuf returns the buffer that a published version of the shard is received into.
func (w *Side) publishedBuf(sh *shard.Shard) (*comm.Buf, error) {
	if b := w.arenas.copies.published[sh.ID]; b != nil {
		return b, nil
	}
	b, err := w.station.Transport.Alloc(int(sh.Bytes()))
	if err != nil {
		return nil, fmt.Errorf("published versions of shard %s: %w", sh.Name, err)
	}
	if w.arenas.copies.published == nil {
		w.arenas.copies.published = map[int32]*comm.Buf{}
	}
	w.arenas.copies.published[sh.ID] = b
	return b, nil
}

// slot returns the memory that keeps a push of n elements.
func (w *Side) slot(id, slot int32, n int) vector {
	if w.arenas.copies.pushes == nil {
		w.arenas.copies.pushes = map[int32][]vector{}
	}
	for int(slot) >= len(w.arenas.copies.pushes[id]) {
		w.arenas.copies.pushes[id] = append(w.arenas.copies.pushes[id], make(vector, n))
	}
	return w.arenas.copies.pushes[id][slot]
}

// takeGradients allocates the gradient arena of n bytes, in shared memory if a server reads it.
func (w *Side) takeGradients(n int) (err error) {
	for s := range w.station.Plan.Shards {
		if w.station.Routes.Shares(int32(s), int32(w.me)) {
			w.arenas.grads = w.station.Gradients(w.station.Me)
			return w.station.LendWindow(w.model)
		}
	}
	w.arenas.grads, err = w.room(n)
	return err
}

// readVersion copies a version from the server's memory to the parameters.
func (w *Side) readVersion(e *core.Effect) {
	sh := &w.station.Plan.Shards[e.Shard]
	lo := sh.Lo * shard.ElemBytes
	n := copy(w.arenas.params.Bytes()[lo:], w.station.Version(sh, e.Src))
	w.station.Net.Traffic.Shared += int64(n)
}
