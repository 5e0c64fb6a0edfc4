package train

import (
	"fmt"

	"fluentps/comm"
	"fluentps/ps/link"
	"fluentps/ps/shard"
	"fluentps/ps/station"
)

// Messages with keys (baseline: {name: pslite, keys: list | scalar}). A push, a pull and a reply name what they are about by
// lists of 64-bit keys, as those of PS-Lite do, and who receives one looks each key up. Pushes and replies take the way of
// pieces that do not travel as they are (encoder.go), with a codec for each piece; the keys of a pull come on the data channel
// behind its header:
//
//	worker                                                      server
//	PUSH, keys and values of all that the server holds ═══════► looks keys up, puts values into the slot
//	PULL, keys ═══════════════════════════════════════════════► looks keys up; only then the node is told of the pull
//	looks keys up, puts values into the parameters ◄═══════════ REPLY, keys and values

// makeKeys writes the keys that every pull of a worker sends.
func (e *encoder) makeKeys(r *station.Station) (err error) {
	e.asks = shard.PullPlaces(r.Plan.Pieces)
	if e.keys, err = r.Transport.Alloc(e.asks.Total); err != nil {
		return fmt.Errorf("keys of pulls: %w", err)
	}
	for i, codec := range r.Routes.Keyed() {
		codec.EncodeKeys(e.keys.Bytes()[e.asks.Of(int32(i)):])
	}
	e.asked = func(d comm.Done) {
		r.Net.Let()
		r.Net.Fail(d.Err)
	}
	return nil
}

// sendKeys follows the pull of a shard, which is said already.
func (w *Side) sendKeys(id int32, to int) {
	for i := range w.station.Plan.Shards[id].Pieces {
		p := &w.station.Plan.Shards[id].Pieces[i]
		w.station.Net.Hold()
		w.station.Net.SendBulk(to, link.TagKeys|uint32(p.ID), w.enc.keys, w.enc.asks.Of(p.ID), int(p.PullBytes()), w.enc.asked)
	}
}
