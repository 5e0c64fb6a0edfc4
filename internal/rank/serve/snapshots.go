package serve

import (
	"fmt"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/rank/link"
)

// snapshot copies a version, for an evaluation. Without room, training goes on without that snapshot.
func (s *Side) snapshot(e *core.Effect) {
	st := s.stores[e.Shard]
	if int64(len(st.snapshots)) >= s.station.SnapshotsMax {
		if !s.snapshotsFull {
			s.station.Log.Warn("no room for more snapshots: some evaluations are left out; raise evaluate.every_epochs (or "+
				"every_samples) or cluster.memory_max", "kept", s.station.SnapshotsMax)
		}
		s.snapshotsFull = true
		return
	}
	b, err := s.station.Transport.Alloc(int(st.sh.Bytes()))
	if err != nil {
		s.station.Net.Fail(fmt.Errorf("snapshot %d: %w", e.Iter, err))
		return
	}
	copy(b.Bytes(), st.bufs[e.Src].Bytes())
	st.snapshots[e.Iter] = b
	if e.Shard == 0 {
		s.o.Observer.Snapshot(e.Iter, e.Samples)
	}
	s.snapshotShards[e.Iter]++
	if s.snapshotShards[e.Iter] == len(s.node.Shards()) {
		s.sentToRank0++
		h := wire.SnapshotKept(e.Iter)
		s.station.Net.Send(0, &h)
	}
}

// Forget frees the snapshots up to k.
func (s *Side) Forget(k int64) {
	for _, id := range s.node.Shards() {
		st := s.stores[id]
		for i, b := range st.snapshots {
			if i <= k {
				b.Free()
				delete(st.snapshots, i)
			}
		}
	}
}

// SendSnapshot sends this server's part of snapshot k to a rank; k = -1 is the current version.
func (s *Side) SendSnapshot(to int, k int64) {
	for _, id := range s.node.Shards() {
		st := s.stores[id]
		b := st.snapshots[k]
		if k < 0 {
			b = st.bufs[s.node.Shard(id).Cur]
		}
		if b == nil {
			s.station.Net.Fail(fmt.Errorf("serve: rank %d asks for snapshot %d of shard %s, which was not kept", to, k, st.sh.Name))
			return
		}
		for _, p := range st.sh.Pieces {
			off, n := p.InArena()
			s.station.Net.Hold()
			s.station.Transport.Isend(comm.Peer(to), comm.Data, link.TagSnapshot|uint32(p.ID), b, off-st.sh.Lo*shard.ElemBytes,
				n, func(d comm.Done) {
					s.station.Net.Let()
					s.station.Net.Fail(d.Err)
				})
		}
	}
}
