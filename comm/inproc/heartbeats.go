package inproc

import "fluentps/comm"

// Beat leaves a word with a rank.
func (e *endpoint) Beat(to comm.Peer, word byte) bool {
	other := e.world.ranks[to]
	other.mu.Lock()
	defer other.mu.Unlock()
	if other.beats == nil {
		other.beats = make([]beat, e.Size())
	}
	b := &other.beats[e.rank]
	if b.there {
		return false
	}
	*b = beat{true, word}
	return true
}

// Heard looks at what the others left here.
func (e *endpoint) Heard(f func(from comm.Peer, word byte)) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for from := range e.beats {
		if b := &e.beats[from]; b.there {
			b.there = false
			f(comm.Peer(from), b.word)
		}
	}
	return true
}

// beat is a word that was not heard yet, if there is one.
type beat struct {
	there bool
	word  byte
}
