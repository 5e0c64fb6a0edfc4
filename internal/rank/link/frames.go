package link

import (
	"fmt"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/plan/layout"
)

// frames sends the messages of nodes. At the end of a batch, all records for one rank leave in one control message, in
// order, with the small pieces among them; the other pieces follow on the data channel. No message waits for further
// records. In steady state frames allocates nothing: it keeps buffers and their handlers.
type frames struct {
	l     *Link
	open  []*frame // by rank; nil: no records yet
	dirty []int32  // ranks with an open frame, and perhaps some whose frame has left
	bulk  []bulk
	spare [2][]*frame // by size: layout.FrameSmall, comm.CtlMax
	apart bool        // every header begins a message of its own, as with PS-Lite
}

// frame is one control message, from its first record until its send has completed.
type frame struct {
	buf   *comm.Buf
	bytes []byte
	n     int
	kind  int // index of its size in spare
	sent  comm.Handler
}

// bulk is a message on the data channel that leaves at the end of this batch.
type bulk struct {
	to     int
	tag    uint32
	buf    *comm.Buf
	off, n int
	h      comm.Handler
}

// flush sends all messages of the batch.
func (f *frames) flush() {
	l := f.l
	for _, to := range f.dirty {
		f.send(int(to))
	}
	f.dirty = f.dirty[:0]
	for i := range f.bulk { // after the headers, so that a receiver knows the pieces before they arrive
		b := &f.bulk[i]
		l.Sent(b.to, b.n)
		if l.matching != nil {
			l.matching.IsendMatched(comm.Peer(b.to), comm.Data, b.tag, b.buf, b.off, b.n, b.h)
			continue
		}
		l.t.Isend(comm.Peer(b.to), comm.Data, b.tag, b.buf, b.off, b.n, b.h)
	}
	f.bulk = f.bulk[:0]
}

// Send sends a header to a rank: now, or within a batch at its end.
func (l *Link) Send(to int, h *wire.Header) {
	l.Begin()
	if l.frames.apart {
		l.frames.send(to)
	}
	if room := l.frames.reserve(to, wire.Size); room != nil {
		wire.Encode(room, h)
		if h.Kind.Training() {
			l.Sent(to, wire.Size)
		}
	}
	l.End()
}

// SendInline puts a piece behind its header in the same message. It reads the values before it returns.
func (l *Link) SendInline(to int, kind wire.Kind, piece int32, values []byte) {
	if room := l.frames.reserve(to, wire.PieceSize+len(values)); room != nil {
		wire.EncodePiece(room, kind, piece, len(values))
		copy(room[wire.PieceSize:], values)
		l.Sent(to, wire.PieceSize+len(values))
	}
}

// SendThere tells a rank that a piece lies in memory that both share.
func (l *Link) SendThere(to int, piece int32) {
	if room := l.frames.reserve(to, wire.PieceSize); room != nil {
		wire.EncodePiece(room, wire.PieceThere, piece, 0)
		l.Sent(to, wire.PieceSize)
	}
}

// SendBulk sends n bytes at off of a buffer on the data channel, at the end of the batch.
func (l *Link) SendBulk(to int, tag uint32, b *comm.Buf, off, n int, h comm.Handler) {
	l.frames.bulk = append(l.frames.bulk, bulk{to, tag, b, off, n, h})
}

// reserve returns n bytes after the records for a rank, or nil after a failure.
func (f *frames) reserve(to, n int) []byte {
	m := f.open[to]
	if m != nil && m.n+n > comm.CtlMax {
		f.send(to)
		m = nil
	}
	if m == nil {
		if m = f.acquire(1); m == nil {
			return nil
		}
		f.open[to] = m
		f.dirty = append(f.dirty, int32(to))
	}
	at := m.n
	m.n += n
	return m.bytes[at:m.n]
}

// send sends the open frame of a rank.
func (f *frames) send(to int) {
	m := f.open[to]
	if m == nil {
		return
	}
	f.open[to] = nil
	if m.n <= layout.FrameSmall {
		if small := f.acquire(0); small != nil {
			small.n = copy(small.bytes, m.bytes[:m.n])
			f.release(m)
			m = small
		}
	}
	f.l.open++
	f.l.t.Isend(comm.Peer(to), comm.Ctl, 0, m.buf, 0, m.n, m.sent)
}

func (f *frames) acquire(kind int) *frame {
	if n := len(f.spare[kind]); n > 0 {
		m := f.spare[kind][n-1]
		f.spare[kind] = f.spare[kind][:n-1]
		return m
	}
	b, err := f.l.t.Alloc([...]int{layout.FrameSmall, comm.CtlMax}[kind])
	if err != nil {
		f.l.Fail(fmt.Errorf("link: control message: %w", err))
		return nil
	}
	m := &frame{buf: b, bytes: b.Bytes(), kind: kind}
	m.sent = func(d comm.Done) {
		f.l.open--
		f.l.Fail(d.Err)
		f.release(m)
	}
	return m
}

func (f *frames) release(m *frame) {
	m.n = 0
	f.spare[m.kind] = append(f.spare[m.kind], m)
}

// close frees the buffers. No send may be in flight.
func (f *frames) close() {
	for _, list := range f.spare {
		for _, m := range list {
			m.buf.Free()
		}
	}
	f.spare = [2][]*frame{}
}
