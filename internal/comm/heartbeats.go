package comm

// Heartbeats is what a Transport offers if a rank can tell another that it lives while its driving goroutine computes,
// reads or waits inside a library. One goroutine at a time calls these methods, while another may drive; none calls
// them once Close has begun.
type Heartbeats interface {
	// Beat sends one word to another rank and does not wait. It sends nothing and returns false while the transport is
	// busy or while that rank has not yet heard the word before, so that nothing piles up at a rank that does not
	// listen.
	Beat(to Peer, word byte) bool
	// Heard calls f with each word that has arrived. It returns false if the transport was too busy to look.
	Heard(f func(from Peer, word byte)) bool
}
