package serve

import (
	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
	"fluentps/internal/show/metrics"
)

// The server's side of pieces: the pieces of pushes land in slots, and the pieces of versions leave from the version's own
// buffer.

// arrival is a push that is arriving.
type arrival struct {
	slot    int32
	missing int32 // pieces that have not landed
	samples int64
}

// departure is a version that is being sent to a worker.
type departure struct {
	buf    int32
	unsent int32 // pieces that have not been sent
}

// stage receives the pieces of a push into a slot.
func (s *Side) stage(e *core.Effect) {
	st := s.stores[e.Shard]
	if int(e.Slot) == len(st.slots) {
		st.slots = append(st.slots, slot{})
	}
	if st.grads[e.To] != nil {
		s.stageInPlace(e)
		return
	}
	if s.stageAhead(st, e) {
		return
	}
	if !s.useOwnMemory(st, &st.slots[e.Slot]) {
		return
	}
	st.arrivals[e.To] = arrival{slot: e.Slot, missing: int32(len(st.sh.Pieces)), samples: e.Samples}
	if st.messages[0] == 0 {
		return
	}
	for i := range st.sh.Pieces {
		p := &st.sh.Pieces[i]
		if s.station.Routes.Push(p.ID, e.To) != layout.InFrame && !s.receive(st, e.To, p, link.TagPush, s.landed) {
			return
		}
	}
}

// receive posts the receive of a piece of a push, or of the keys of a pull, which land in the same place. It returns false
// if memory is short; the run has then failed.
func (s *Side) receive(st *store, w int32, p *shard.Piece, tag uint32, h comm.Handler) bool {
	b, off, n := s.inboxOf(st, w, p)
	if b == nil {
		return false
	}
	if tag == link.TagKeys {
		n = int(p.PullBytes())
	}
	s.station.Transport.Irecv(comm.Peer(s.station.Roles.Workers[w]), comm.Data, tag|uint32(p.ID), b, off, n, h)
	return true
}

// at is the place of a piece in a buffer of its shard, in bytes.
func (st *store) at(p *shard.Piece) (off, n int) {
	return (p.Lo - st.sh.Lo) * shard.ElemBytes, (p.Hi - p.Lo) * shard.ElemBytes
}

// pieceReceived handles a piece of a push from the data channel.
func (s *Side) pieceReceived(d comm.Done) {
	p := &s.station.Plan.Pieces[d.Tag%layout.PiecesMax]
	w := s.station.WorkerOf[d.Peer]
	st := s.stores[p.Shard]
	if st.ahead != nil && s.receivedAhead(st, p, w) {
		if _, n := st.at(p); !s.station.Net.Closing() && s.station.Net.Whole(d, n, "push of shard %s from worker %d", st.sh.Name, w) {
			s.station.Net.Traffic.Received += int64(n)
		}
		return
	}
	_, n := st.at(p)
	encoded := s.station.Routes.EncodesPushes()
	if encoded {
		n = d.N // the receive was posted for the size of its place, at most
	}
	if d.Err != nil || d.N != n {
		s.station.Net.Whole(d, n, "push of shard %s from worker %d", st.sh.Name, w)
		return
	}
	s.station.Net.Traffic.Received += int64(d.N)
	if !encoded || s.decode(st, w, p, st.coded.received(w, p.ID, d.N)) {
		s.pieceLanded(st, p.ID, w)
	}
}

// inlineReceived handles a piece of a push from a frame; its header arrived before.
func (s *Side) inlineReceived(from int, piece int32, values []byte) {
	p := &s.station.Plan.Pieces[piece]
	w := s.station.WorkerOf[from]
	st := s.stores[p.Shard]
	if s.decode(st, w, p, values) {
		s.pieceLanded(st, piece, w)
	}
}

// pieceLanded delivers a landed piece to the node.
func (s *Side) pieceLanded(st *store, piece, w int32) {
	s.station.Net.Begin()
	s.Step(s.landedInput(st, piece, w))
	s.station.Net.End()
}

// landedInput counts a landed piece and returns the input for the node. The input of the last piece has the norms of the
// push, if the scheme asks for them.
func (s *Side) landedInput(st *store, piece, w int32) core.Input {
	a := &st.arrivals[w]
	in := core.Input{Kind: core.PieceLanded, Piece: piece, Shard: st.sh.ID, Slot: a.slot, Worker: w}
	if a.missing--; a.missing > 0 {
		return in
	}
	if st.norms {
		s.beginFoldTime()
		st.measure(&in, s.node.Shard(in.Shard).Cur, a.samples)
	}
	if st.ahead != nil {
		s.queueAhead(st, w)
	}
	return in
}

// beginFoldTime begins the time of folds and commits; the time of the batch so far belongs to replies.
func (s *Side) beginFoldTime() {
	if !s.foldTiming {
		s.endReplyTime()
		s.station.Net.Clock()
		s.foldTiming = true
	}
}

// endFoldTime ends the time of folds and commits.
func (s *Side) endFoldTime() {
	if s.foldTiming {
		s.foldTiming = false
		s.spans.Add(metrics.Fold, s.station.Net.Lap())
	}
}

// endReplyTime ends the time of replies.
func (s *Side) endReplyTime() {
	if s.replyTiming {
		s.replyTiming = false
		s.spans.Add(metrics.Pull, s.station.Net.Lap())
	}
}

// reply sends a version that was pulled or is published. A version that is not encoded leaves from its own buffer, without
// a copy.
func (s *Side) reply(e *core.Effect) {
	s.endFoldTime()
	s.replyTiming = true
	st := s.stores[e.Shard]
	to := s.station.Roles.Workers[e.To]
	if e.Msg.Kind == wire.Reply {
		st.lead.Add(e.Msg.Iter - e.Msg.Clock)
	}
	if e.Near {
		s.replyShared(e)
		return
	}
	s.station.Net.Send(to, &e.Msg)
	if s.byPiece = e.Apart; s.byPiece {
		return
	}
	for i := range st.sh.Pieces {
		s.sendReply(st, &st.sh.Pieces[i], e)
	}
	if st.departures[e.To] = (departure{buf: e.Src, unsent: int32(st.messages[1])}); st.messages[1] == 0 {
		s.told = append(s.told, core.Input{Kind: core.ReplySent, Shard: e.Shard, Buf: e.Src, Worker: e.To})
	}
}

// replyPiece sends one piece of a reply whose header was sent before.
func (s *Side) replyPiece(e *core.Effect) {
	st := s.stores[e.Shard]
	s.sendReply(st, &s.station.Plan.Pieces[e.Piece], e)
	if s.station.Routes.Reply(e.Piece, e.To) == layout.InFrame {
		s.told = append(s.told, core.Input{Kind: core.ReplyPieceSent, Piece: e.Piece, Worker: e.To})
	}
}

// sendReply sends a piece of version e.Src to worker e.To.
func (s *Side) sendReply(st *store, p *shard.Piece, e *core.Effect) {
	b, off, n := s.encoded(st, p, e.Src)
	if b == nil {
		return
	}
	to := s.station.Roles.Workers[e.To]
	if s.station.Routes.Reply(p.ID, e.To) == layout.InFrame {
		s.station.Net.SendInline(to, wire.ReplyPiece, p.ID, b.Bytes()[off:off+n])
	} else {
		s.station.Net.SendBulk(to, link.TagReply|uint32(p.ID), b, off, n, s.left)
	}
}

// pieceLeft tells the node that a piece of a reply was sent on the data channel.
func (s *Side) pieceLeft(d comm.Done) {
	s.station.Net.Fail(d.Err)
	p := &s.station.Plan.Pieces[d.Tag%layout.PiecesMax]
	w := s.station.WorkerOf[d.Peer]
	g := &s.stores[p.Shard].departures[w]
	if s.byPiece {
		s.Step(core.Input{Kind: core.ReplyPieceSent, Piece: p.ID, Worker: w})
		return
	}
	if g.unsent--; g.unsent == 0 {
		s.Step(core.Input{Kind: core.ReplySent, Shard: p.Shard, Buf: g.buf, Worker: w})
	}
}
