package train

import (
	"fmt"

	"fluentps/internal/comm"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/payload"
	"fluentps/internal/rank/link"
	"fluentps/internal/rank/station"
)

// Encoded pieces (payload in the YAML). Each piece has a place of its own for its encoded bytes, because at most one
// message of it is in flight in each direction:
//
//	worker  gradients ─encode─► outbox ═════► inbox of that worker ─decode─► slot     server
//	worker  parameters ◄─decode─ inbox ◄═════ outbox of the version ◄─encode─ version  server
//
// Small pieces travel in frames and need no inbox. Without a codec none of this is used. Statistics take the same way with
// a codec that changes nothing: a statistic is the mean of a value, so the next push would not bring back what a codec
// drops or rounds away.

// encoder is a worker's memory for encoded pieces.
type encoder struct {
	out, in   shard.Places
	outbox    *comm.Buf // nil: pushes are not encoded
	inbox     *comm.Buf // nil: replies are not encoded
	keyPlaces shard.Places
	keys      *comm.Buf // those that pulls send; nil: their messages have none
	keysSent  comm.Handler
	// residual is what pushes have left out so far, in the layout of the arena: state of the worker, like that of its
	// optimizer. nil: the codec keeps none.
	residual *comm.Buf
	// memory is by piece what the codec remembers of it: state of the worker, too. nil: the codec remembers nothing.
	memory []payload.Memory
}

func newEncoder(r *station.Station) (e encoder, err error) {
	if r.Routes.EncodesPushes() {
		e.out = shard.PushPlaces(r.Plan.Pieces)
		if e.outbox, err = r.Transport.Alloc(e.out.Total); err != nil {
			return e, fmt.Errorf("encoded pushes: %w", err)
		}
	}
	if r.Config.Payload.Residual() {
		if e.residual, err = r.Transport.Alloc(r.Plan.Arena * shard.ElemBytes); err != nil {
			return e, fmt.Errorf("residual of pushes: %w", err)
		}
		clear(e.residual.Bytes())
	}
	if _, remembers := r.Config.PushCodec().(payload.Remembering); remembers && r.Routes.EncodesPushes() {
		e.memory = make([]payload.Memory, len(r.Plan.Pieces))
	}
	if r.Routes.EncodesReplies() {
		e.in = shard.ReplyPlaces(r.Plan.Pieces)
		if e.inbox, err = r.Transport.Alloc(e.in.Total); err != nil {
			return e, fmt.Errorf("encoded replies: %w", err)
		}
	}
	if r.Routes.Keyed() != nil {
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

// encoded returns the bytes of a gradient piece as they are sent.
func (w *Side) encoded(p *shard.Piece) (b *comm.Buf, off, n int) {
	e := &w.enc
	if e.outbox == nil {
		off, n = p.InArena()
		return w.arenas.direct.pushFrom(p.ID, w.arenas.grads), off, n
	}
	var residual []float32
	if e.residual != nil && !w.station.Plan.Shards[p.Shard].Stat {
		residual = e.residual.F32()[p.Lo:p.Hi]
	}
	off = e.out.Of(p.ID)
	dst, src := e.outbox.Bytes()[off:off+int(p.PushBytes)], w.arenas.grads.F32()[p.Lo:p.Hi]
	codec := w.station.Routes.PushCodec(p.ID)
	if c, remembers := codec.(payload.Remembering); remembers {
		n = c.EncodeAfter(&e.memory[p.ID], dst, src, residual)
	} else {
		n = codec.Encode(dst, src, residual)
	}
	w.lookAtPush(p, src, codec, dst[:n])
	return e.outbox, off, n
}

// received returns the n bytes that have arrived in the inbox of a piece.
func (e *encoder) received(piece int32, n int) []byte {
	off := e.in.Of(piece)
	return e.inbox.Bytes()[off : off+n]
}

// inboxOf returns where a piece of a version is received, and its longest message in bytes.
func (w *Side) inboxOf(p *shard.Piece) (b *comm.Buf, off, n int) {
	if w.enc.inbox == nil {
		off, n = p.InArena()
		if w.arenas.direct.receivesDirectly(p.ID) {
			return w.arenas.direct.params, off, n
		}
		to := w.arenas.into[p.Shard]
		return to.buf, off - to.from, n
	}
	return w.enc.inbox, w.enc.in.Of(p.ID), int(p.ReplyBytes)
}

// decode writes a piece of a version to the memory that the kernels read. It returns false if the message is damaged; the
// run has then failed.
func (w *Side) decode(p *shard.Piece, values []byte) bool {
	to := w.arenas.into[p.Shard]
	off, n := p.InArena()
	off -= to.from
	codec := w.station.Routes.ReplyCodec(p.ID)
	if codec == nil {
		copy(to.buf.Bytes()[off:off+n], values)
		return true
	}
	if err := codec.Decode(to.buf.F32()[off/shard.ElemBytes:(off+n)/shard.ElemBytes], values); err != nil {
		w.station.Net.Fail(fmt.Errorf("train: reply of shard %s from %s: %w", w.station.Plan.Shards[p.Shard].Name,
			w.station.Net.Place(w.station.ServerRank(p.Shard)), err))
		return false
	}
	return true
}

// Messages with keys (baseline: {name: pslite, keys: list | scalar}). A push, a pull and a reply name their elements by
// lists of 64-bit keys, like the messages of PS-Lite, and the receiver looks each key up. Pushes and replies travel like
// other encoded pieces (encoder.go), with a codec for each piece; the keys of a pull follow its header on the data channel:
//
//	worker                                                      server
//	PUSH, keys and values of the server's pieces ═════════════► looks keys up, writes values to the slot
//	PULL, keys ═══════════════════════════════════════════════► looks keys up, then tells the node of the pull
//	looks keys up, writes values to the parameters ◄═══════════ REPLY, keys and values

// makeKeys writes the keys that every pull of this worker sends.
func (e *encoder) makeKeys(r *station.Station) (err error) {
	e.keyPlaces = shard.PullPlaces(r.Plan.Pieces)
	if e.keys, err = r.Transport.Alloc(e.keyPlaces.Total); err != nil {
		return fmt.Errorf("keys of pulls: %w", err)
	}
	for i, codec := range r.Routes.Keyed() {
		codec.EncodeKeys(e.keys.Bytes()[e.keyPlaces.Of(int32(i)):])
	}
	e.keysSent = func(d comm.Done) {
		r.Net.Let()
		r.Net.Fail(d.Err)
	}
	return nil
}

// sendKeys sends the keys of a pull of a shard, whose header has been sent.
func (w *Side) sendKeys(id int32, to int) {
	for i := range w.station.Plan.Shards[id].Pieces {
		p := &w.station.Plan.Shards[id].Pieces[i]
		w.station.Net.Hold()
		w.station.Net.SendBulk(to, link.TagKeys|uint32(p.ID), w.enc.keys, w.enc.keyPlaces.Of(p.ID), int(p.PullBytes()), w.enc.keysSent)
	}
}
