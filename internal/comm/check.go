package comm

import "fmt"

// CheckSend panics unless the arguments of an Isend are in range. Every transport calls it first.
func CheckSend(size int, to Peer, ch Chan, tag uint32, b *Buf, off, n int) {
	if to < 0 || int(to) >= size {
		panic(fmt.Sprintf("comm: Isend to rank %d of a world of %d", to, size))
	}
	checkSpan("Isend", ch, tag, b, off, n)
}

// CheckRecv panics unless the arguments of an Irecv are in range.
func CheckRecv(size int, from Peer, ch Chan, tag uint32, b *Buf, off, n int) {
	if from < AnyPeer || int(from) >= size {
		panic(fmt.Sprintf("comm: Irecv from rank %d of a world of %d", from, size))
	}
	checkSpan("Irecv", ch, tag, b, off, n)
}

func checkSpan(use string, ch Chan, tag uint32, b *Buf, off, n int) {
	limit := MessageMax
	if ch == Ctl {
		limit = CtlMax
	}
	switch {
	case ch >= Chans:
		panic(fmt.Sprintf("comm: %s on channel %d of %d", use, ch, Chans))
	case tag > TagMax:
		panic(fmt.Sprintf("comm: %s with tag %d, the largest is %d", use, tag, TagMax))
	case n < 0 || n > limit:
		panic(fmt.Sprintf("comm: %s of %d bytes on channel %d, at most %d", use, n, ch, limit))
	case n == 0 && b == nil: // an empty message needs no memory
	case off < 0 || n > b.Len()-off:
		panic(fmt.Sprintf("comm: %s of bytes %d to %d of a buffer of %d", use, off, off+n, b.Len()))
	}
}

// Span returns the n bytes at off that an operation moves, and holds b until Release; nil for an empty message.
func Span(b *Buf, off, n int) []byte {
	if b == nil {
		return nil
	}
	b.Hold()
	return b.mem[off : off+n : off+n]
}
