package serve

import (
	"fluentps/comm/wire"
	"fluentps/ps/core"
)

// Handle registers the server's. Its folds are timed before a batch's messages leave, and its replies behind them.
func (s *Side) Handle() {
	net := s.station.Net
	net.BeforeSending, net.AfterSending = s.folded, func() {
		s.answered()
		s.postDue()
	}
	arrived := func(h *wire.Header) { s.Step(core.Input{Kind: core.Arrived, Msg: *h}) }
	for _, k := range []wire.Kind{wire.Push, wire.PushReady, wire.Taken, wire.Left, wire.Joined, wire.Closed} {
		net.HandleHeader(k, arrived)
	}
	if s.station.Routes.Keyed() != nil {
		net.HandleHeader(wire.Pull, s.keysAsked)
	} else {
		net.HandleHeader(wire.Pull, arrived)
	}
	net.Handle(wire.PushPiece, func(from int, m *wire.Record) {
		if s.station.Accepts(from, m, s.station.Routes.AcceptsPush(m.Piece, len(m.Data)) && s.owns(m.Piece) && s.station.WorkerOf[from] >= 0) {
			s.inlineCame(from, m.Piece, m.Data)
		}
	})
	net.Handle(wire.PieceThere, func(from int, m *wire.Record) {
		if s.station.Accepts(from, m, s.owns(m.Piece) && s.station.WorkerOf[from] >= 0) {
			s.pieceThere(from, m.Piece)
		}
	})
}
