package serve

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// Handle registers the server's messages. The time of folds ends before a batch's messages are sent; the time of replies
// ends after that.
func (s *Side) Handle() {
	net := s.station.Net
	net.BeforeSending, net.AfterSending = s.endFoldTime, func() {
		s.endReplyTime()
		s.postDue()
	}
	arrived := func(h *wire.Header) { s.Step(core.Input{Kind: core.Arrived, Msg: *h}) }
	for _, k := range []wire.Kind{wire.Push, wire.PushReady, wire.Taken, wire.Left, wire.Joined, wire.Closed, wire.Normed, wire.Vote,
		wire.Waits} {
		net.HandleHeader(k, arrived)
	}
	if s.station.Routes.Keyed() != nil {
		net.HandleHeader(wire.Pull, s.pullAsked)
	} else {
		net.HandleHeader(wire.Pull, arrived)
	}
	net.Handle(wire.PushPiece, func(from int, m *wire.Record) {
		if s.station.Accepts(from, m, s.station.Routes.AcceptsPush(m.Piece, len(m.Data)) && s.owns(m.Piece) && s.station.WorkerOf[from] >= 0) {
			s.inlineReceived(from, m.Piece, m.Data)
		}
	})
	net.Handle(wire.PieceThere, func(from int, m *wire.Record) {
		if s.station.Accepts(from, m, s.owns(m.Piece) && s.station.WorkerOf[from] >= 0) {
			s.pieceInPlace(from, m.Piece)
		}
	})
}
