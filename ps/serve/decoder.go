package serve

import (
	"fmt"

	"fluentps/comm"
	"fluentps/ps/shard"
)

// decoder is a server's memory for one shard whose pieces do not travel as they are.
type decoder struct {
	in, out shard.Places
	inbox   []*comm.Buf // by worker: one push of each is on its way at a time; nil until used
	outbox  []outbox    // by buffer of a version
}

// outbox is a version as it travels. It is encoded once for all workers, piece by piece.
type outbox struct {
	buf *comm.Buf
	n   []int // by piece of the shard, how many bytes it has; -1: not encoded
}

func newDecoder(sh *shard.Shard, workers, bufs int) decoder {
	return decoder{in: shard.PushPlaces(sh.Pieces), out: shard.ReplyPlaces(sh.Pieces), inbox: make([]*comm.Buf, workers), outbox: make([]outbox, bufs)}
}

// forget is told that a buffer gets another version.
func (d *decoder) forget(buf int32) {
	for i := range d.outbox[buf].n {
		d.outbox[buf].n[i] = -1
	}
}

// came is what came into the inbox of a worker of a piece.
func (d *decoder) came(w, piece int32, n int) []byte {
	off := d.in.Of(piece)
	return d.inbox[w].Bytes()[off : off+n]
}

// inboxOf is where a piece of a worker's push is received: n bytes of it, at most.
func (s *Side) inboxOf(st *store, w int32, p *shard.Piece) (b *comm.Buf, off, n int) {
	if !s.station.Routes.EncodesPushes() {
		off, n = st.at(p)
		return st.slots[st.in[w].slot].own, off, n
	}
	return s.memory(st.coded.inbox, w, int64(st.coded.in.Total)), st.coded.in.Of(p.ID), int(p.PushBytes)
}

// decode puts a piece of a push into its slot, and says whether it could.
func (s *Side) decode(st *store, w int32, p *shard.Piece, values []byte) bool {
	slot := st.slots[st.in[w].slot].own
	codec := s.station.Routes.PushCodec(p.ID)
	if codec == nil {
		off, n := st.at(p)
		copy(slot.Bytes()[off:off+n], values)
		return true
	}
	if err := codec.Decode(slot.F32()[p.Lo-st.sh.Lo:p.Hi-st.sh.Lo], values); err != nil {
		s.station.Net.Fail(fmt.Errorf("serve: push of shard %s from worker %d (%s): %w", st.sh.Name, w, s.station.Net.Place(s.station.Roles.Workers[w]), err))
		return false
	}
	return true
}

// encoded is a piece of a version as it travels; b is nil when there was no memory for it, and the run has failed.
func (s *Side) encoded(st *store, p *shard.Piece, buf int32) (b *comm.Buf, off, n int) {
	if !s.station.Routes.EncodesReplies() {
		off, n = st.at(p)
		return st.bufs[buf], off, n
	}
	o := &st.coded.outbox[buf]
	if o.buf == nil {
		b, err := s.station.Transport.Alloc(st.coded.out.Total)
		if err != nil {
			s.station.Net.Fail(fmt.Errorf("encoded version of shard %s: %w", st.sh.Name, err))
			return nil, 0, 0
		}
		o.buf, o.n = b, make([]int, len(st.sh.Pieces))
		st.coded.forget(buf)
	}
	off = st.coded.out.Of(p.ID)
	n = o.n[p.ID-st.sh.Pieces[0].ID]
	if n < 0 {
		n = s.station.Routes.ReplyCodec(p.ID).Encode(o.buf.Bytes()[off:off+int(p.ReplyBytes)], st.bufs[buf].F32()[p.Lo-st.sh.Lo:p.Hi-st.sh.Lo], nil)
		o.n[p.ID-st.sh.Pieces[0].ID] = n
	}
	return o.buf, off, n
}

func (d *decoder) close() {
	for _, b := range d.inbox {
		if b != nil {
			b.Free()
		}
	}
	for _, o := range d.outbox {
		if o.buf != nil {
			o.buf.Free()
		}
	}
}
