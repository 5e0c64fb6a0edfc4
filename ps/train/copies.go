package train

import (
	"fmt"

	"fluentps/comm"
	"fluentps/ps/core"
	"fluentps/ps/optim"
	"fluentps/ps/shard"
)

// copies is a worker's memory for the copies that it keeps: versions that land beside the parameters while kernels
// read those, and pushes of its own that such a version may lack. Both are taken when first used.
type copies struct {
	beside map[int32]*comm.Buf // by shard
	kept   map[int32][]vector  // by shard and slot
}

type vector []float32

// obeyCopies does what the node wants done with a copy. It tells only of shards that no kernel reads at the time.
func (w *Side) obeyCopies(e *core.Effect) {
	sh := &w.station.Plan.Shards[e.Shard]
	params, push := w.arenas.params.F32()[sh.Lo:sh.Hi], vector(w.arenas.grads.F32()[sh.Lo:sh.Hi])
	switch e.Kind {
	case core.ExpectBeside:
		b, err := w.besideOf(sh)
		if err != nil {
			w.station.Net.Fail(err)
			return
		}
		w.expect(e, b, sh.Lo*shard.ElemBytes)
	case core.Adopt:
		copy(params, w.arenas.copies.beside[e.Shard].F32())
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

// besideOf is where a published version of the shard lands.
func (w *Side) besideOf(sh *shard.Shard) (*comm.Buf, error) {
	if b := w.arenas.copies.beside[sh.ID]; b != nil {
		return b, nil
	}
	b, err := w.station.Transport.Alloc(int(sh.Bytes()))
	if err != nil {
		return nil, fmt.Errorf("published versions of shard %s: %w", sh.Name, err)
	}
	if w.arenas.copies.beside == nil {
		w.arenas.copies.beside = map[int32]*comm.Buf{}
	}
	w.arenas.copies.beside[sh.ID] = b
	return b, nil
}

// slot is where a push of n elements is kept.
func (w *Side) slot(id, slot int32, n int) vector {
	if w.arenas.copies.kept == nil {
		w.arenas.copies.kept = map[int32][]vector{}
	}
	for int(slot) >= len(w.arenas.copies.kept[id]) {
		w.arenas.copies.kept[id] = append(w.arenas.copies.kept[id], make(vector, n))
	}
	return w.arenas.copies.kept[id][slot]
}
