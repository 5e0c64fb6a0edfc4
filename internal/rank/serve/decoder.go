package serve

import (
	"fmt"

	"fluentps/internal/comm"
	"fluentps/internal/core/shard"
)

// decoder is a server's memory for the encoded pieces of one shard.
type decoder struct {
	in, out shard.Places
	inbox   []*comm.Buf // by worker, which has one push in flight at a time; nil until used
	outbox  []outbox    // by buffer of a version
}

// outbox is an encoded version. It is encoded once for all workers, piece by piece.
type outbox struct {
	buf *comm.Buf
	n   []int // by piece of the shard: encoded length in bytes; -1: not encoded
}

func newDecoder(sh *shard.Shard, workers, bufs int) decoder {
	return decoder{in: shard.PushPlaces(sh.Pieces), out: shard.ReplyPlaces(sh.Pieces), inbox: make([]*comm.Buf, workers),
		outbox: make([]outbox, bufs)}
}

// invalidate marks the encoded pieces of a buffer as old, because the buffer gets another version.
func (d *decoder) invalidate(buf int32) {
	for i := range d.outbox[buf].n {
		d.outbox[buf].n[i] = -1
	}
}

// received returns the n bytes of a piece that have arrived in a worker's inbox.
func (d *decoder) received(w, piece int32, n int) []byte {
	off := d.in.Of(piece)
	return d.inbox[w].Bytes()[off : off+n]
}

// inboxOf returns where a piece of a worker's push is received, and its longest message in bytes.
func (s *Side) inboxOf(st *store, w int32, p *shard.Piece) (b *comm.Buf, off, n int) {
	if !s.station.Routes.EncodesPushes() {
		off, n = st.at(p)
		return st.slots[st.arrivals[w].slot].own, off, n
	}
	return s.bufferAt(st.coded.inbox, w, int64(st.coded.in.Total)), st.coded.in.Of(p.ID), int(p.PushBytes)
}

// decode writes a piece of a push to its slot. It returns false if the message is damaged; the run has then failed.
func (s *Side) decode(st *store, w int32, p *shard.Piece, values []byte) bool {
	slot := st.slots[st.arrivals[w].slot].own
	codec := s.station.Routes.PushCodec(p.ID)
	if codec == nil {
		off, n := st.at(p)
		copy(slot.Bytes()[off:off+n], values)
		return true
	}
	if err := codec.Decode(slot.F32()[p.Lo-st.sh.Lo:p.Hi-st.sh.Lo], values); err != nil {
		s.station.Net.Fail(fmt.Errorf("serve: push of shard %s from worker %d (%s): %w", st.sh.Name, w,
			s.station.Net.Place(s.station.Roles.Workers[w]), err))
		return false
	}
	return true
}

// encoded returns the bytes of a version's piece as they are sent. b is nil if memory is short; the run has then failed.
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
		st.coded.invalidate(buf)
	}
	off = st.coded.out.Of(p.ID)
	n = o.n[p.ID-st.sh.Pieces[0].ID]
	if n < 0 {
		n = s.station.Routes.ReplyCodec(p.ID).Encode(o.buf.Bytes()[off:off+int(p.ReplyBytes)],
			st.bufs[buf].F32()[p.Lo-st.sh.Lo:p.Hi-st.sh.Lo], nil)
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
