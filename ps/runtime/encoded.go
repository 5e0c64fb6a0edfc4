package runtime

import (
	"fmt"

	"fluentps/comm"
	"fluentps/ps/shard"
)

// Pieces that do not travel as they are (payload in the YAML). Each piece has a place of its own for the bytes that
// travel, because it is on its way once at a time in each direction:
//
//	worker  gradients ─encode─► outbox ═════► inbox of that worker ─decode─► slot     server
//	worker  parameters ◄─decode─ inbox ◄═════ outbox of the version ◄─encode─ version  server
//
// Small ones take the way through frames, and need no inbox. Where no piece is encoded, nothing comes here. Statistics
// travel as they are beside encoded gradients: they are means of values, in which what a codec drops or rounds away would
// not come back with the next push. They take the same way, with a codec that changes nothing.

// pushBytes, replyBytes and pullBytes are what a piece takes on the wire, at most: its values, and the keys of a pull.
func pushBytes(p *shard.Piece) int64  { return p.PushBytes }
func replyBytes(p *shard.Piece) int64 { return p.ReplyBytes }
func pullBytes(p *shard.Piece) int64  { return p.PullBytes() }

// places are where pieces begin in a buffer that has them one behind the other.
type places struct {
	at    []int // by piece, from the first on
	first int32
	total int
}

func placesOf(pieces []shard.Piece, bytes func(*shard.Piece) int64) places {
	p := places{at: make([]int, len(pieces)), first: pieces[0].ID}
	for i := range pieces {
		p.at[i] = p.total
		p.total += int(bytes(&pieces[i]))
	}
	return p
}

func (p *places) of(piece int32) int { return p.at[piece-p.first] }

// encoder is a worker's memory for pieces that do not travel as they are.
type encoder struct {
	out, in places
	outbox  *comm.Buf // nil: pushes travel as they are
	inbox   *comm.Buf // nil: replies do
	asks    places
	keys    *comm.Buf // those that pulls send; nil: their messages have none
	asked   comm.Handler
	// residual is what pushes have left out so far, in the layout of the arena: state of the worker, like its optimizer.
	// nil where the codec keeps none.
	residual *comm.Buf
}

func newEncoder(r *rank) (e encoder, err error) {
	if r.routes.EncodesPushes() {
		e.out = placesOf(r.plan.Pieces, pushBytes)
		if e.outbox, err = r.t.Alloc(e.out.total); err != nil {
			return e, fmt.Errorf("encoded pushes: %w", err)
		}
	}
	if r.cfg.Payload.Residual() {
		if e.residual, err = r.t.Alloc(r.plan.Arena * shard.ElemBytes); err != nil {
			return e, fmt.Errorf("residual of pushes: %w", err)
		}
		clear(e.residual.Bytes())
	}
	if r.routes.EncodesReplies() {
		e.in = placesOf(r.plan.Pieces, replyBytes)
		if e.inbox, err = r.t.Alloc(e.in.total); err != nil {
			return e, fmt.Errorf("encoded replies: %w", err)
		}
	}
	if r.routes.Keyed() != nil {
		err = e.makeKeys(r)
	}
	return e, err
}

func (e *encoder) close() {
	for _, b := range []*comm.Buf{e.outbox, e.inbox, e.residual, e.keys} {
		if b != nil {
			b.Free()
		}
	}
}

// encoded is a piece of the gradients as it travels.
func (w *workerSide) encoded(p *shard.Piece) (b *comm.Buf, off, n int) {
	e := &w.enc
	if e.outbox == nil {
		off, n = at(*p)
		return w.direct.pushFrom(p.ID, w.grads), off, n
	}
	var residual []float32
	if e.residual != nil && !w.r.plan.Shards[p.Shard].Stat {
		residual = e.residual.F32()[p.Lo:p.Hi]
	}
	off = e.out.of(p.ID)
	return e.outbox, off, w.r.routes.PushCodec(p.ID).Encode(e.outbox.Bytes()[off:off+int(p.PushBytes)], w.grads.F32()[p.Lo:p.Hi], residual)
}

// inboxOf is where a piece of a version is received: n bytes of it, at most.
func (w *workerSide) inboxOf(p *shard.Piece) (b *comm.Buf, off, n int) {
	if w.enc.inbox == nil {
		off, n = at(*p)
		if w.direct.lands(p.ID) {
			return w.direct.params, off, n
		}
		to := w.into[p.Shard]
		return to.buf, off - to.from, n
	}
	return w.enc.inbox, w.enc.in.of(p.ID), int(p.ReplyBytes)
}

// decode puts a piece of a version where it belongs, and says whether it could. Values that were received as they are
// and there already are not moved.
func (w *workerSide) decode(p *shard.Piece, values []byte, there bool) bool {
	to := w.into[p.Shard]
	off, n := at(*p)
	off -= to.from
	codec := w.r.routes.ReplyCodec(p.ID)
	switch {
	case codec != nil:
		if err := codec.Decode(to.buf.F32()[off/shard.ElemBytes:(off+n)/shard.ElemBytes], values); err != nil {
			w.r.net.Fail(fmt.Errorf("runtime: reply of shard %s from %s: %w", w.r.plan.Shards[p.Shard].Name, w.r.net.Place(w.r.serverRank(p.Shard)), err))
			return false
		}
	case !there:
		copy(to.buf.Bytes()[off:off+n], values)
	}
	return true
}

// decoder is a server's memory for one shard whose pieces do not travel as they are.
type decoder struct {
	in, out places
	inbox   []*comm.Buf // by worker: one push of each is on its way at a time; nil until used
	outbox  []outbox    // by buffer of a version
}

// outbox is a version as it travels. It is encoded once for all workers, piece by piece.
type outbox struct {
	buf *comm.Buf
	n   []int // by piece of the shard, how many bytes it has; -1: not encoded
}

func newDecoder(sh *shard.Shard, workers, bufs int) decoder {
	return decoder{in: placesOf(sh.Pieces, pushBytes), out: placesOf(sh.Pieces, replyBytes), inbox: make([]*comm.Buf, workers), outbox: make([]outbox, bufs)}
}

// forget is told that a buffer gets another version.
func (d *decoder) forget(buf int32) {
	for i := range d.outbox[buf].n {
		d.outbox[buf].n[i] = -1
	}
}

// inboxOf is where a piece of a worker's push is received: n bytes of it, at most.
func (s *serverSide) inboxOf(st *store, w int32, p *shard.Piece) (b *comm.Buf, off, n int) {
	if !s.r.routes.EncodesPushes() {
		off, n = st.at(p)
		return st.slots[st.in[w].slot].own, off, n
	}
	return s.memory(st.coded.inbox, w, int64(st.coded.in.total)), st.coded.in.of(p.ID), int(p.PushBytes)
}

// decode puts a piece of a push into its slot, and says whether it could.
func (s *serverSide) decode(st *store, w int32, p *shard.Piece, values []byte, there bool) bool {
	slot := st.slots[st.in[w].slot].own
	codec := s.r.routes.PushCodec(p.ID)
	switch {
	case codec != nil:
		if err := codec.Decode(slot.F32()[p.Lo-st.sh.Lo:p.Hi-st.sh.Lo], values); err != nil {
			s.r.net.Fail(fmt.Errorf("runtime: push of shard %s from worker %d (%s): %w", st.sh.Name, w, s.r.net.Place(s.r.roles.Workers[w]), err))
			return false
		}
	case !there:
		off, n := st.at(p)
		copy(slot.Bytes()[off:off+n], values)
	}
	return true
}

// encoded is a piece of a version as it travels; b is nil when there was no memory for it, and the run has failed.
func (s *serverSide) encoded(st *store, p *shard.Piece, buf int32) (b *comm.Buf, off, n int) {
	if !s.r.routes.EncodesReplies() {
		off, n = st.at(p)
		return st.bufs[buf], off, n
	}
	o := &st.coded.outbox[buf]
	if o.buf == nil {
		b, err := s.r.t.Alloc(st.coded.out.total)
		if err != nil {
			s.r.net.Fail(fmt.Errorf("encoded version of shard %s: %w", st.sh.Name, err))
			return nil, 0, 0
		}
		o.buf, o.n = b, make([]int, len(st.sh.Pieces))
		st.coded.forget(buf)
	}
	off = st.coded.out.of(p.ID)
	n = o.n[p.ID-st.coded.out.first]
	if n < 0 {
		n = s.r.routes.ReplyCodec(p.ID).Encode(o.buf.Bytes()[off:off+int(p.ReplyBytes)], st.bufs[buf].F32()[p.Lo-st.sh.Lo:p.Hi-st.sh.Lo], nil)
		o.n[p.ID-st.coded.out.first] = n
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
