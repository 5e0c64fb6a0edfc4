package train

import (
	"fmt"

	"fluentps/comm"
	"fluentps/ps/link"
	"fluentps/ps/shard"
	"fluentps/ps/station"
)

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
