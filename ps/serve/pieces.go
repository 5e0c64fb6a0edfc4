package serve

import (
	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/link"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
)

// The server's side of pieces: those of pushes land in slots, those of versions leave from the version's own buffer.

// arrival is a push whose pieces are landing.
type arrival struct {
	slot    int32
	open    int32 // pieces that have not landed
	samples int64
}

// departure is a version whose pieces are leaving.
type departure struct {
	buf  int32
	open int32 // pieces that have not left
}

// stage receives the pieces of a push into a slot.
func (s *Side) stage(e *core.Effect) {
	st := s.stores[e.Shard]
	if int(e.Slot) == len(st.slots) {
		st.slots = append(st.slots, slot{})
	}
	if st.grads[e.To] != nil {
		s.stageThere(e)
		return
	}
	if s.stagedAhead(st, e) {
		return
	}
	if !s.ownMemory(st, &st.slots[e.Slot]) {
		return
	}
	st.in[e.To] = arrival{slot: e.Slot, open: int32(len(st.sh.Pieces)), samples: e.Samples}
	if st.apart[0] == 0 {
		return
	}
	for i := range st.sh.Pieces {
		p := &st.sh.Pieces[i]
		if s.station.Routes.Push(p.ID, e.To) != layout.InFrame && !s.receive(st, e.To, p, link.TagPush, s.landed) {
			return
		}
	}
}

// receive posts the receive of a piece of a push, or of the keys of a pull, which land in the same place; false when there was no
// memory for it, and the run has failed.
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

// at is a piece's place in a buffer of its shard, in bytes.
func (st *store) at(p *shard.Piece) (off, n int) {
	return (p.Lo - st.sh.Lo) * shard.ElemBytes, (p.Hi - p.Lo) * shard.ElemBytes
}

// pieceCame takes a piece of a push that came on the data channel.
func (s *Side) pieceCame(d comm.Done) {
	p := &s.station.Plan.Pieces[d.Tag%layout.PiecesMax]
	w := s.station.WorkerOf[d.Peer]
	st := s.stores[p.Shard]
	if st.ahead != nil && s.cameAhead(st, p, w) {
		if _, n := st.at(p); !s.station.Net.Closing() && s.station.Net.Whole(d, n, "push of shard %s from worker %d", st.sh.Name, w) {
			s.station.Net.Traffic.Received += int64(n)
		}
		return
	}
	_, n := st.at(p)
	encoded := s.station.Routes.EncodesPushes()
	if encoded {
		n = d.N // at most that of its place
	}
	if d.Err != nil || d.N != n {
		s.station.Net.Whole(d, n, "push of shard %s from worker %d", st.sh.Name, w)
		return
	}
	s.station.Net.Traffic.Received += int64(d.N)
	if !encoded || s.decode(st, w, p, st.coded.came(w, p.ID, d.N)) {
		s.pieceLanded(st, p.ID, w)
	}
}

// inlineCame takes a piece of a push that came in a frame; its header went before.
func (s *Side) inlineCame(from int, piece int32, values []byte) {
	p := &s.station.Plan.Pieces[piece]
	w := s.station.WorkerOf[from]
	st := s.stores[p.Shard]
	if s.decode(st, w, p, values) {
		s.pieceLanded(st, piece, w)
	}
}

// pieceLanded tells the node.
func (s *Side) pieceLanded(st *store, piece, w int32) {
	s.station.Net.Begin()
	s.Step(s.landedOf(st, piece, w))
	s.station.Net.End()
}

// landedOf counts a piece that has landed, and is what the node is told: with the norms of the push if this was the last
// piece and the scheme asks for them.
func (s *Side) landedOf(st *store, piece, w int32) core.Input {
	a := &st.in[w]
	in := core.Input{Kind: core.PieceLanded, Piece: piece, Shard: st.sh.ID, Slot: a.slot, Worker: w}
	if a.open--; a.open > 0 {
		return in
	}
	if st.norms {
		s.folding()
		st.measure(&in, s.node.Shard(in.Shard).Cur, a.samples)
	}
	if st.ahead != nil {
		s.soon(st, w)
	}
	return in
}

// folding begins folds or commits: what was done before in this batch are replies.
func (s *Side) folding() {
	if !s.folds {
		s.answered()
		s.station.Net.Clock()
		s.folds = true
	}
}

// folded takes the time of the folds and commits that were just done.
func (s *Side) folded() {
	if s.folds {
		s.folds = false
		s.spans.Add(metrics.Fold, s.station.Net.Lap())
	}
}

// answered takes the time of the replies that have left with this batch.
func (s *Side) answered() {
	if s.answers {
		s.answers = false
		s.spans.Add(metrics.Pull, s.station.Net.Lap())
	}
}

// reply sends a version, asked for or published: from its own buffer, without a copy, where it travels as it is.
func (s *Side) reply(e *core.Effect) {
	s.folded()
	s.answers = true
	st := s.stores[e.Shard]
	to := s.station.Roles.Workers[e.To]
	if e.Msg.Kind == wire.Reply {
		st.lead.Add(e.Msg.Iter - e.Msg.Clock)
	}
	if e.Near {
		s.replyNear(e)
		return
	}
	s.station.Net.Send(to, &e.Msg)
	if s.apart = e.Apart; s.apart {
		return
	}
	for i := range st.sh.Pieces {
		s.sendReply(st, &st.sh.Pieces[i], e)
	}
	if st.gone[e.To] = (departure{buf: e.Src, open: int32(st.apart[1])}); st.apart[1] == 0 {
		s.sent = append(s.sent, core.Input{Kind: core.ReplySent, Shard: e.Shard, Buf: e.Src, Worker: e.To})
	}
}

// replyPiece sends one piece of a reply whose header has gone ahead.
func (s *Side) replyPiece(e *core.Effect) {
	st := s.stores[e.Shard]
	s.sendReply(st, &s.station.Plan.Pieces[e.Piece], e)
	if s.station.Routes.Reply(e.Piece, e.To) == layout.InFrame {
		s.sent = append(s.sent, core.Input{Kind: core.ReplyPieceSent, Piece: e.Piece, Worker: e.To})
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

// pieceLeft takes it that a piece of a reply has left on the data channel.
func (s *Side) pieceLeft(d comm.Done) {
	s.station.Net.Fail(d.Err)
	p := &s.station.Plan.Pieces[d.Tag%layout.PiecesMax]
	w := s.station.WorkerOf[d.Peer]
	g := &s.stores[p.Shard].gone[w]
	if s.apart {
		s.Step(core.Input{Kind: core.ReplyPieceSent, Piece: p.ID, Worker: w})
		return
	}
	if g.open--; g.open == 0 {
		s.Step(core.Input{Kind: core.ReplySent, Shard: p.Shard, Buf: g.buf, Worker: w})
	}
}
