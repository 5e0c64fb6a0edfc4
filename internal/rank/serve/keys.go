package serve

import (
	"fmt"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/plan/layout"
	"fluentps/internal/rank/link"
)

// keyedPull is a pull whose keys have not all arrived.
type keyedPull struct {
	head    wire.Header
	missing int // pieces whose keys have not arrived
}

// pullAsked handles the header of a pull. Its keys land in the same memory as the pieces of the worker's pushes: with keys,
// a worker pulls only after all its pushes were acknowledged, and so were decoded.
func (s *Side) pullAsked(h *wire.Header) {
	st := s.stores[h.Shard]
	st.keyedPulls[h.Worker] = keyedPull{head: *h, missing: len(st.sh.Pieces)}
	for i := range st.sh.Pieces {
		p := &st.sh.Pieces[i]
		if !s.receive(st, h.Worker, p, link.TagKeys, s.keysLanded) {
			return
		}
	}
}

// keysReceived looks up the keys of a pull. The last of them delivers the pull to the node.
func (s *Side) keysReceived(d comm.Done) {
	p := &s.station.Plan.Pieces[d.Tag%layout.PiecesMax]
	w := s.station.WorkerOf[d.Peer]
	st := s.stores[p.Shard]
	if n := int(p.PullBytes()); d.Err != nil || d.N != n {
		s.station.Net.Whole(d, n, "keys that worker %d pulls of shard %s", w, st.sh.Name)
		return
	}
	s.station.Net.Traffic.Received += int64(d.N)
	if err := s.station.Routes.Keyed()[p.ID].DecodeKeys(st.coded.received(w, p.ID, d.N)); err != nil {
		s.station.Net.Fail(fmt.Errorf("serve: pull of shard %s from worker %d (%s): %w", st.sh.Name, w, s.station.Net.Place(int(d.Peer)), err))
		return
	}
	a := &st.keyedPulls[w]
	if a.missing--; a.missing == 0 {
		s.Step(core.Input{Kind: core.Arrived, Msg: a.head})
	}
}
