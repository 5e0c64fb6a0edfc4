package sim

import "fluentps/ps/core"

// A worker that keeps a copy of a shard does not wait until its push has landed, and with send.overlap not even until the push has
// left. Pieces of the next push may arrive while others of the last push are in flight. The server gets such a piece when it has
// staged the next push, as a real server does that posts its receives then.

// holdAhead says whether a piece belongs to a push that its server has not staged yet. It keeps such a piece for releaseAhead.
func (s *simulation) holdAhead(i int32) bool {
	t := &s.transfers.all[i]
	iters := s.tallies[t.shard].iters
	if iters == nil || t.iter == iters[t.worker] {
		return false
	}
	key := [2]int32{t.shard, t.worker}
	s.ahead[key] = append(s.ahead[key], i)
	return true
}

// releaseAhead delivers the pieces that arrived before their server staged their push.
func (s *simulation) releaseAhead(id int32, e *core.Effect) {
	key := [2]int32{e.Shard, e.To}
	for _, i := range s.ahead[key] {
		s.q.after(s.now, 0, evAhead, id, i)
	}
	delete(s.ahead, key) // holdAhead keeps the pieces of a still later push again
}

// dropAhead drops the pieces of a worker that died: their push will never be staged.
func (s *simulation) dropAhead(m *server, w int32) {
	for _, id := range m.node.Shards() {
		key := [2]int32{id, w}
		for _, i := range s.ahead[key] {
			s.transfers.take(i)
			if s.real != nil {
				s.real.lost(i)
			}
		}
		delete(s.ahead, key)
	}
}
