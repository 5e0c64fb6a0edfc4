package serve

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/rank/station"
)

// State is kept for a checkpoint while the checkpoint is written and training goes on. Versions are immutable, so a shard's
// parameters are written from the version's own buffer, which the node leaves alone meanwhile; all other state is copied.

// version is the part of a version that the server has kept so far for a checkpoint.
type version struct {
	states  map[int32]ShardState
	vectors map[int32][][]float32 // by shard: the vectors of the state
	copies  map[int32][][]float32 // by shard: memory that the next checkpoint reuses
}

// keepVersion keeps the state of a shard. The last shard of this server starts the writing of the file.
func (s *Side) keepVersion(e *core.Effect) {
	s.keepShard(e.Shard, e.Src)
	if e.Shard == 0 {
		clock := s.version.states[0].Node.Closed // not the version: that counts pushes if the run was asynchronous before
		s.o.Observer.Kept(clock)
	}
	if len(s.version.states) == len(s.node.Shards()) {
		s.writeVersion(e.Iter)
	}
}

// keepShard keeps the state of a shard. The node leaves the buffer alone until it is told Written.
func (s *Side) keepShard(id, buf int32) {
	v := &s.version
	if v.states == nil {
		v.states, v.vectors, v.copies = map[int32]ShardState{}, map[int32][][]float32{}, map[int32][][]float32{}
	}
	st := s.stores[id]
	state, steps := st.math.State()
	v.states[id] = s.stateOf(st, steps)
	v.copies[id] = station.CopyInto(v.copies[id], state)
	v.vectors[id] = append([][]float32{st.bufs[buf].F32()}, v.copies[id]...)
}

// KeepAll keeps the state of all shards in a pause, and begins to write the file.
func (s *Side) KeepAll() (state State) {
	ids := s.node.Shards()
	if len(ids) == 0 {
		return state
	}
	for _, id := range ids {
		s.keepShard(id, s.node.Hold(id))
		state.Shards = append(state.Shards, s.version.states[id])
	}
	s.writeVersion(s.node.Shard(ids[0]).Version)
	return state
}

// writeVersion begins to write the state that was kept of all shards.
func (s *Side) writeVersion(iter int64) {
	v := &s.version
	var all State
	var vectors [][]float32
	ids := s.node.Shards()
	for _, id := range ids {
		all.Shards = append(all.Shards, v.states[id])
		vectors = append(vectors, v.vectors[id]...)
	}
	clear(v.states)
	s.o.Write(wire.FileSaved{Kind: wire.ServerFile, Index: s.node.Me(), Version: iter}, all, vectors, func() {
		for _, id := range ids {
			s.Step(core.Input{Kind: core.Written, Shard: id})
		}
	})
}
