package serve

import (
	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/station"
)

// What is kept for a checkpoint while it is written, and training goes on. Versions are immutable, so that of a shard is
// written from where it is, and its node makes none in its place meanwhile; all else is copied.

// version is what a server has kept so far of the version that is to be saved.
type version struct {
	states  map[int32]ShardState
	vectors map[int32][][]float32 // by shard: those of the state
	copies  map[int32][][]float32 // by shard: memory that is used again
}

// keepVersion keeps a shard as it is; with the last one of this server the file is written.
func (s *Side) keepVersion(e *core.Effect) {
	s.keepShard(e.Shard, e.Src)
	if e.Shard == 0 {
		clock := s.version.states[0].Node.Closed // not the version, which counted pushes where the run was asynchronous before
		s.o.Observer.Kept(clock)
	}
	if len(s.version.states) == len(s.node.Shards()) {
		s.writeVersion(e.Iter)
	}
}

// keepShard keeps a shard as it is. The node leaves this buffer as it is until it is told Written.
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

// KeepAll keeps all shards as they are in a pause, and begins to write the file.
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

// writeVersion writes what was kept of all shards.
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
