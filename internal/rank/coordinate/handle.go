package coordinate

import "fluentps/internal/comm/wire"

// Handle registers the messages that rank 0 receives as lead.
func (l *Lead) Handle() {
	net := l.station.Net
	net.HandleHeader(wire.Ready, func(h *wire.Header) { l.snapshotKept(h.SnapshotIndex()) })
	net.HandleHeader(wire.Saved, func(h *wire.Header) { l.checkpoints.snapshots.fileSaved(wire.FileSavedOf(h)) })
	net.HandleHeader(wire.Stale, func(h *wire.Header) { l.staleReported(wire.StalenessOf(h)) })
	net.HandleHeader(wire.Halt, func(h *wire.Header) { l.stopAsked(wire.StopAskedOf(h)) })
	if l.deals.coordinator != nil {
		net.Handle(wire.Measured, l.measured)
	}
	if l.r.Scheduler != nil {
		net.HandleHeader(wire.Barrier, func(h *wire.Header) { l.r.atBarrier(*h) })
	}
}

// HandleSnapshots registers the messages of a rank that keeps versions for evaluation.
func (r *Run) HandleSnapshots(k Keeper) {
	r.station.Net.Handle(wire.Snapshot, func(from int, m *wire.Record) { k.SendSnapshot(from, m.SnapshotIndex()) })
	r.station.Net.HandleHeader(wire.Looked, func(h *wire.Header) { k.Forget(h.SnapshotIndex()) })
}
