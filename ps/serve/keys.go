package serve

import (
	"fmt"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/link"
)

// asking is a pull whose keys are on their way.
type asking struct {
	head wire.Header
	open int // pieces whose keys have not come
}

// keysAsked takes the header of a pull. Its keys land where the pieces of the same worker's pushes do: in rounds all of them
// were acknowledged, and so were decoded, before it pulls.
func (s *Side) keysAsked(h *wire.Header) {
	st := s.stores[h.Shard]
	st.asking[h.Worker] = asking{head: *h, open: len(st.sh.Pieces)}
	for i := range st.sh.Pieces {
		p := &st.sh.Pieces[i]
		if !s.receive(st, h.Worker, p, link.TagKeys, s.asked) {
			return
		}
	}
}

// keysCame looks the keys of a pull up. With the last of them the node is told of the pull.
func (s *Side) keysCame(d comm.Done) {
	p := &s.station.Plan.Pieces[d.Tag%layout.PiecesMax]
	w := s.station.WorkerOf[d.Peer]
	st := s.stores[p.Shard]
	if n := int(p.PullBytes()); d.Err != nil || d.N != n {
		s.station.Net.Whole(d, n, "keys that worker %d pulls of shard %s", w, st.sh.Name)
		return
	}
	s.station.Net.Traffic.Received += int64(d.N)
	if err := s.station.Routes.Keyed()[p.ID].DecodeKeys(st.coded.came(w, p.ID, d.N)); err != nil {
		s.station.Net.Fail(fmt.Errorf("serve: pull of shard %s from worker %d (%s): %w", st.sh.Name, w, s.station.Net.Place(int(d.Peer)), err))
		return
	}
	a := &st.asking[w]
	if a.open--; a.open == 0 {
		s.Step(core.Input{Kind: core.Arrived, Msg: a.head})
	}
}
