package serve

import (
	"fluentps/internal/core/servernode"
	"fluentps/internal/plan/build"
	"fluentps/internal/plan/layout"
)

// State is the header of a server's checkpoint file. The vectors follow: of each shard the parameters, then the optimizer's
// vectors.
type State struct {
	Shards []ShardState `json:"shards"`
}

// ShardState is the part of one shard.
type ShardState struct {
	ID    int32  `json:"id"`
	Name  string `json:"name"`
	Lo    int    `json:"lo"` // place in the arena, in elements
	Hi    int    `json:"hi"`
	Steps int64  `json:"steps"` // commits of its optimizer
	// Vectors is the number of the shard's vectors: the parameters, and those of the optimizer.
	Vectors int              `json:"vectors"`
	Node    servernode.Saved `json:"node"`
}

// Save returns the server's state and its vectors, which are not copied.
func (s *Side) Save() (state State, vectors [][]float32) {
	for _, id := range s.node.Shards() {
		st := s.stores[id]
		optimizer, steps := st.math.State()
		state.Shards = append(state.Shards, s.stateOf(st, steps))
		vectors = append(append(vectors, st.bufs[s.node.Shard(id).Cur].F32()), optimizer...)
	}
	return state, vectors
}

func (s *Side) stateOf(st *store, steps int64) ShardState {
	return ShardState{ID: st.sh.ID, Name: st.sh.Name, Lo: st.sh.Lo, Hi: st.sh.Hi, Steps: steps,
		Vectors: layout.Vectors(s.station.Config, st.sh), Node: s.node.Saved(st.sh.ID)}
}

// Resume puts the server at a checkpoint, of which it has this file: the parameters, the optimizers and the node.
func (s *Side) Resume(start *build.Start, state State, vectors [][]float32) {
	for _, saved := range state.Shards {
		st := s.stores[saved.ID]
		into, _ := st.math.State()
		copy(st.bufs[0].F32(), vectors[0])
		for i, v := range into {
			copy(v, vectors[1+i])
		}
		st.math.Resume(saved.Steps)
		vectors = vectors[1+len(into):]
	}
	s.node.Resume(start.Clocks, start.Shards)
}

// Renew replaces the node after a pause, at the clocks of the old one.
func (s *Side) Renew(start *build.Start) error {
	old := s.node
	if err := s.makeNode(start); err != nil {
		return err
	}
	s.node.Resume(start.Clocks, start.Shards)
	s.node.Succeed(old)
	s.done = false
	return nil
}

// Join takes over the counters of another shard that has a part of this one's elements: the larger of both. The merged
// state has no memory of a scheme.
func (s *ShardState) Join(from *ShardState) {
	a, b := &s.Node, &from.Node
	a.Version, a.Rated, a.Accepted = max(a.Version, b.Version), max(a.Rated, b.Rated), max(a.Accepted, b.Accepted)
	a.Samples, a.Closed, a.Until = max(a.Samples, b.Samples), max(a.Closed, b.Closed), max(a.Until, b.Until)
	a.Changes, a.Began = max(a.Changes, b.Changes), max(a.Began, b.Began)
	s.Steps = max(s.Steps, from.Steps)
}
