package runtime

import (
	"slices"

	"fluentps/comm/wire"
	"fluentps/ps/core"
)

// What is kept for a checkpoint while it is written, and training goes on. Versions are immutable, so that of a shard is
// written from where it is, and its node makes none in its place meanwhile; all else is copied.

// version is what a server has kept so far of the version that is to be saved.
type version struct {
	states  map[int32]shardState
	vectors map[int32][][]float32 // by shard: those of the state
	copies  map[int32][][]float32 // by shard: memory that is used again
}

// keepVersion keeps a shard as it is; with the last one of this server the file is written.
func (s *serverSide) keepVersion(e *core.Effect) {
	s.keepShard(e.Shard, e.Src)
	if e.Shard == 0 {
		clock := s.version.states[0].Node.Closed // not the version, which counted pushes where the run was asynchronous before
		s.r.lead.snapshots.named(slices.Repeat([]int64{clock}, len(s.r.roles.Workers)))
	}
	if len(s.version.states) == len(s.node.Shards()) {
		s.writeVersion(e.Iter)
	}
}

// keepShard keeps a shard as it is. The node leaves this buffer as it is until it is told Written.
func (s *serverSide) keepShard(id, buf int32) {
	v := &s.version
	if v.states == nil {
		v.states, v.vectors, v.copies = map[int32]shardState{}, map[int32][][]float32{}, map[int32][][]float32{}
	}
	st := s.stores[id]
	state, steps := st.math.State()
	v.states[id] = s.stateOf(st, steps)
	v.copies[id] = copyInto(v.copies[id], state)
	v.vectors[id] = append([][]float32{st.bufs[buf].F32()}, v.copies[id]...)
}

// writeVersion writes what was kept of all shards.
func (s *serverSide) writeVersion(iter int64) {
	v := &s.version
	var all serverState
	var vectors [][]float32
	ids := s.node.Shards()
	for _, id := range ids {
		all.Shards = append(all.Shards, v.states[id])
		vectors = append(vectors, v.vectors[id]...)
	}
	clear(v.states)
	s.r.writeBeside(wire.FileSaved{Kind: wire.ServerFile, Index: s.node.Me(), Version: iter}, all, vectors, func() {
		for _, id := range ids {
			s.step(core.Input{Kind: core.Written, Shard: id})
		}
	})
}

// keepState copies what a worker keeps, when that is due.
func (w *workerSide) keepState() {
	if w.node == nil || w.r.net.Err() != nil {
		return
	}
	if iter, due := w.node.TakeSave(); due {
		w.writeState(iter)
	}
}

// writeState copies and writes what a worker keeps before it has begun an iteration.
func (w *workerSide) writeState(iter int64) {
	state, vectors := w.save()
	state.Next = iter
	w.keeps = copyInto(w.keeps, vectors)
	w.r.writeBeside(wire.FileSaved{Kind: wire.WorkerFile, Index: int32(w.me), Version: iter}, state, w.keeps, func() {})
}

// copyInto copies vectors into memory that may be there from the last time.
func copyInto(memory [][]float32, vectors [][]float32) [][]float32 {
	if memory == nil {
		for _, v := range vectors {
			memory = append(memory, slices.Clone(v))
		}
		return memory
	}
	for i, v := range vectors {
		copy(memory[i], v)
	}
	return memory
}
