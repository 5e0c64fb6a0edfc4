package train

import (
	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// Handle registers the messages of a worker that has a node, or of a member of a team.
func (w *Side) Handle() {
	net := w.station.Net
	if w.dealing != nil {
		net.Handle(wire.Dealt, w.dealing.receive)
		net.Handle(wire.Computed, w.dealing.memberComputed)
	}
	if m := w.member; m != nil {
		for _, k := range []wire.Kind{wire.Task, wire.Readable} {
			net.Handle(k, func(from int, r *wire.Record) { m.receive(from, &r.Header) })
		}
		return
	}
	for _, k := range []wire.Kind{wire.Reply, wire.Ack, wire.Grant, wire.Revoke, wire.Publish, wire.Ended, wire.Release,
		wire.Verdict, wire.AskWaits} {
		net.HandleHeader(k, func(h *wire.Header) { w.step(core.Input{Kind: core.Arrived, Msg: *h}) })
	}
	if w.ranges != nil {
		net.Handle(wire.Peer, func(from int, m *wire.Record) {
			if w.station.Accepts(from, m, m.Header.Worker == w.station.WorkerOf[from]) {
				w.step(core.Input{Kind: core.Arrived, Msg: m.Header})
			}
		})
	}
	net.Handle(wire.ReplyPiece, func(from int, m *wire.Record) {
		if w.station.Accepts(from, m, w.station.Routes.AcceptsReply(m.Piece, len(m.Data))) {
			w.inlineReceived(m.Piece, m.Data)
		}
	})
	if l := w.leader; l != nil {
		for _, k := range []wire.Kind{wire.Forwarded, wire.Summand} {
			net.Handle(k, func(from int, r *wire.Record) { l.receive(from, &r.Header) })
		}
	}
}

// inlineReceived handles a piece of a version from a frame; its header arrived before.
func (w *Side) inlineReceived(piece int32, values []byte) {
	if w.decode(&w.station.Plan.Pieces[piece], values) {
		w.step(core.Input{Kind: core.PieceLanded, Piece: piece})
	}
}

// handlers are the functions for pieces on the data channel, made once.
type handlers struct {
	landed comm.Handler // of received pieces
	left   comm.Handler // of sent pieces
}
