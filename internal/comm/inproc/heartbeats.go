package inproc

import "fluentps/internal/comm"

// Beat leaves a word in the inbox of a rank.
func (e *endpoint) Beat(to comm.Peer, word byte) bool {
	other := e.world.ranks[to]
	other.mu.Lock()
	defer other.mu.Unlock()
	if other.beats == nil {
		other.beats = make([]beat, e.Size())
	}
	b := &other.beats[e.rank]
	if b.pending {
		return false
	}
	*b = beat{true, word}
	return true
}

// Heard takes the words that other ranks have left here.
func (e *endpoint) Heard(f func(from comm.Peer, word byte)) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for from := range e.beats {
		if b := &e.beats[from]; b.pending {
			b.pending = false
			f(comm.Peer(from), b.word)
		}
	}
	return true
}

// beat is the word of one sender; pending until this rank has heard it.
type beat struct {
	pending bool
	word    byte
}
