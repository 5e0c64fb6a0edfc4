package runtime

import (
	"fmt"

	"fluentps/comm/wire"
	"fluentps/ps/core"
)

// Who hears which control messages.

// handle registers the server's. Its folds are timed before a batch's messages leave, and its replies behind them.
func (s *serverSide) handle() {
	net := s.r.net
	net.BeforeSending, net.AfterSending = s.folded, func() {
		s.answered()
		s.postDue()
	}
	arrived := func(h *wire.Header) { s.step(core.Input{Kind: core.Arrived, Msg: *h}) }
	for _, k := range []wire.Kind{wire.Push, wire.PushReady, wire.Taken, wire.Left, wire.Joined, wire.Closed} {
		net.HandleHeader(k, arrived)
	}
	if s.r.routes.Keyed() != nil {
		net.HandleHeader(wire.Pull, s.keysAsked)
	} else {
		net.HandleHeader(wire.Pull, arrived)
	}
	net.Handle(wire.PushPiece, func(from int, m *wire.Record) {
		if s.r.accepts(from, m, s.r.routes.AcceptsPush(m.Piece, len(m.Data)) && s.owns(m.Piece) && s.r.workerOf[from] >= 0) {
			s.inlineCame(from, m.Piece, m.Data)
		}
	})
	net.Handle(wire.PieceThere, func(from int, m *wire.Record) {
		if s.r.accepts(from, m, s.owns(m.Piece) && s.r.workerOf[from] >= 0) {
			s.pieceThere(from, m.Piece)
		}
	})
}

// handle registers what a worker with a node hears, or a member of a team.
func (w *workerSide) handle() {
	net := w.r.net
	if m := w.member; m != nil {
		for _, k := range []wire.Kind{wire.Task, wire.Readable} {
			net.Handle(k, func(from int, r *wire.Record) { m.came(from, &r.Header) })
		}
		return
	}
	for _, k := range []wire.Kind{wire.Reply, wire.Ack, wire.Grant, wire.Revoke, wire.Publish, wire.Ended, wire.Moved, wire.Release} {
		net.HandleHeader(k, func(h *wire.Header) { w.step(core.Input{Kind: core.Arrived, Msg: *h}) })
	}
	net.Handle(wire.ReplyPiece, func(from int, m *wire.Record) {
		if w.r.accepts(from, m, w.r.routes.AcceptsReply(m.Piece, len(m.Data))) {
			w.inlineCame(m.Piece, m.Data)
		}
	})
	if l := w.lead; l != nil {
		for _, k := range []wire.Kind{wire.Forwarded, wire.Summand} {
			net.Handle(k, func(from int, r *wire.Record) { l.came(from, &r.Header) })
		}
	}
}

// handle registers what rank 0 hears of others.
func (l *lead) handle() {
	net := l.r.net
	net.HandleHeader(wire.Ready, func(h *wire.Header) { l.ready(h.SnapshotIndex()) })
	net.HandleHeader(wire.Saved, func(h *wire.Header) { l.snapshots.fileSaved(wire.FileSavedOf(h)) })
	net.HandleHeader(wire.Stale, func(h *wire.Header) { l.staleHeard(wire.StalenessOf(h)) })
	net.HandleHeader(wire.Halt, func(h *wire.Header) { l.stopAsked(wire.StopAskedOf(h)) })
	if l.r.scheduler != nil {
		net.HandleHeader(wire.Barrier, func(h *wire.Header) { l.r.atBarrier(*h) })
	}
}

// handleSnapshots registers what a rank hears that keeps versions for evaluation.
func (r *rank) handleSnapshots(k keeper) {
	r.net.Handle(wire.Snapshot, func(from int, m *wire.Record) { k.sendSnapshot(from, m.SnapshotIndex()) })
	r.net.HandleHeader(wire.Looked, func(h *wire.Header) { k.forget(h.SnapshotIndex()) })
}

// accepts fails the run where a piece in a frame is not one that this rank receives.
func (r *rank) accepts(from int, m *wire.Record, yes bool) bool {
	if !yes {
		r.net.Fail(fmt.Errorf("runtime: control message of rank %d: %v %d of %d bytes is not one of the plan", from, m.Kind, m.Piece, len(m.Data)))
	}
	return yes
}
