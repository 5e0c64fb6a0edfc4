package comm

// Heartbeats is what a Transport offers beside messages where a rank can tell another that it lives whatever its goroutine
// that drives is doing: computing, reading, waiting inside a library. One goroutine at a time calls these, while
// another may drive, and none once Close has begun.
type Heartbeats interface {
	// Beat sends one word to another rank and does not wait. It sends nothing, and is false, while the word before has not
	// been heard there, so that nothing piles up at a rank that does not listen, or while the transport is busy.
	Beat(to Peer, word byte) bool
	// Heard calls f with the words that have come. It is false where the transport was too busy to look.
	Heard(f func(from Peer, word byte)) bool
}
