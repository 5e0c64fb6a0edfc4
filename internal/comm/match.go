package comm

// Matching is a Transport that can tell a sender when its message has met a receive. Isend may complete as soon as
// the bytes lie in a queue of this host, whose length nobody knows.
type Matching interface {
	// IsendMatched is Isend, except that the operation completes only when a receive of the other rank has met the
	// message. Bytes of operations that have not completed are thus all that this rank has under way.
	IsendMatched(to Peer, ch Chan, tag uint32, b *Buf, off, n int, h Handler) Op
}
