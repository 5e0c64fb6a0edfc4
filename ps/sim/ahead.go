package sim

import "fluentps/ps/core"

// A worker that keeps a copy of a shard does not wait until its push has landed, and with send.overlap not even until it
// has left: pieces of the next push may come while others of the last are on their way. A server receives them when it
// has staged that push, as one does that posts its receives then.

// isAhead keeps a piece of a push that is not staged yet.
func (s *simulation) isAhead(i int32) bool {
	t := &s.transfers.all[i]
	iters := s.tallies[t.shard].iters
	if iters == nil || t.iter == iters[t.worker] {
		return false
	}
	key := [2]int32{t.shard, t.worker}
	s.ahead[key] = append(s.ahead[key], i)
	return true
}

// caughtUp gives a server the pieces of a push that it has staged.
func (s *simulation) caughtUp(id int32, e *core.Effect) {
	key := [2]int32{e.Shard, e.To}
	for _, i := range s.ahead[key] {
		s.q.after(s.now, 0, evAhead, id, i)
	}
	delete(s.ahead, key) // those of a push that follows are kept again
}

// forgetAhead: a worker died, and what it pushed will never be staged.
func (s *simulation) forgetAhead(m *server, w int32) {
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
