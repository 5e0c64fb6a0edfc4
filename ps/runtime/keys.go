package runtime

import (
	"fmt"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/link"
)

// Messages with keys (baseline: {name: pslite, keys: list | scalar}). A push, a pull and a reply name what they are about by
// lists of 64-bit keys, as those of PS-Lite do, and who receives one looks each key up. Pushes and replies take the way of
// pieces that do not travel as they are (encoded.go), with a codec for each piece; the keys of a pull come on the data channel
// behind its header:
//
//	worker                                                      server
//	PUSH, keys and values of all that the server holds ═══════► looks keys up, puts values into the slot
//	PULL, keys ═══════════════════════════════════════════════► looks keys up; only then the node is told of the pull
//	looks keys up, puts values into the parameters ◄═══════════ REPLY, keys and values

// makeKeys writes the keys that every pull of a worker sends.
func (e *encoder) makeKeys(r *rank) (err error) {
	e.asks = placesOf(r.plan.Pieces, pullBytes)
	if e.keys, err = r.t.Alloc(e.asks.total); err != nil {
		return fmt.Errorf("keys of pulls: %w", err)
	}
	for i, codec := range r.routes.Keyed() {
		codec.EncodeKeys(e.keys.Bytes()[e.asks.of(int32(i)):])
	}
	e.asked = func(d comm.Done) {
		r.net.Let()
		r.net.Fail(d.Err)
	}
	return nil
}

// sendKeys follows the pull of a shard, which is said already.
func (w *workerSide) sendKeys(id int32, to int) {
	for i := range w.r.plan.Shards[id].Pieces {
		p := &w.r.plan.Shards[id].Pieces[i]
		w.r.net.Hold()
		w.r.net.SendBulk(to, link.TagKeys|uint32(p.ID), w.enc.keys, w.enc.asks.of(p.ID), int(p.PullBytes()), w.enc.asked)
	}
}

// asking is a pull whose keys are on their way.
type asking struct {
	head wire.Header
	open int // pieces whose keys have not come
}

// keysAsked takes the header of a pull. Its keys land where the pieces of the same worker's pushes do: in rounds all of them
// were acknowledged, and so were decoded, before it pulls.
func (s *serverSide) keysAsked(h *wire.Header) {
	st := s.stores[h.Shard]
	from := comm.Peer(s.r.roles.Workers[h.Worker])
	st.asking[h.Worker] = asking{head: *h, open: len(st.sh.Pieces)}
	for i := range st.sh.Pieces {
		p := &st.sh.Pieces[i]
		b, off, _ := s.inboxOf(st, h.Worker, p)
		if b == nil {
			return
		}
		s.r.t.Irecv(from, comm.Data, link.TagKeys|uint32(p.ID), b, off, int(p.PullBytes()), s.asked)
	}
}

// keysCame looks the keys of a pull up. With the last of them the node is told of the pull.
func (s *serverSide) keysCame(d comm.Done) {
	p := &s.r.plan.Pieces[d.Tag%layout.PiecesMax]
	w := s.r.workerOf[d.Peer]
	st := s.stores[p.Shard]
	if n := int(p.PullBytes()); d.Err != nil || d.N != n {
		s.r.net.Whole(d, n, "keys that worker %d pulls of shard %s", w, st.sh.Name)
		return
	}
	s.r.net.Traffic.Received += int64(d.N)
	b, off, _ := s.inboxOf(st, w, p)
	if err := s.r.routes.Keyed()[p.ID].DecodeKeys(b.Bytes()[off : off+d.N]); err != nil {
		s.r.net.Fail(fmt.Errorf("runtime: pull of shard %s from worker %d (%s): %w", st.sh.Name, w, s.r.net.Place(int(d.Peer)), err))
		return
	}
	a := &st.asking[w]
	if a.open--; a.open == 0 {
		s.step(core.Input{Kind: core.Arrived, Msg: a.head})
	}
}
