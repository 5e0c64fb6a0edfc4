package link

import (
	"fmt"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/layout"
)

// frames sends what nodes say. All that one batch of effects says to a rank leaves at the end of the batch in one
// control message, in order, with the small pieces among it; the other pieces follow on the data channel. Nothing
// waits for more to come. In steady state it takes no memory: buffers are kept, and so are their handlers.
type frames struct {
	l     *Link
	open  []*frame
	dirty []int32 // ranks that an open frame is for, maybe some that have none any more
	bulk  []bulk
	spare [2][]*frame // by size: frameSmall, comm.CtlMax
	apart bool        // every header begins a message of its own, as with PS-Lite
}

// frame is one control message, while it is filled and until it has left.
type frame struct {
	buf   *comm.Buf
	bytes []byte
	n     int
	kind  int // of its size
	sent  comm.Handler
}

// bulk is a message on the data channel that leaves with this batch.
type bulk struct {
	to     int
	tag    uint32
	buf    *comm.Buf
	off, n int
	h      comm.Handler
}

// flush lets all go that is said.
func (f *frames) flush() {
	l := f.l
	for _, to := range f.dirty {
		f.leave(int(to))
	}
	f.dirty = f.dirty[:0]
	for i := range f.bulk { // behind the headers, so that a receiver knows what comes
		b := &f.bulk[i]
		l.Sent(b.to, b.n)
		l.t.Isend(comm.Peer(b.to), comm.Data, b.tag, b.buf, b.off, b.n, b.h)
	}
	f.bulk = f.bulk[:0]
}

// Send says a header to a rank, now or with the rest of the batch.
func (l *Link) Send(to int, h *wire.Header) {
	l.Begin()
	if l.frames.apart {
		l.frames.leave(to)
	}
	if room := l.frames.room(to, wire.Size); room != nil {
		wire.Encode(room, h)
		if h.Kind.Training() {
			l.Sent(to, wire.Size)
		}
	}
	l.End()
}

// SendInline puts a piece behind its header. The values are read before it returns.
func (l *Link) SendInline(to int, kind wire.Kind, piece int32, values []byte) {
	if room := l.frames.room(to, wire.PieceSize+len(values)); room != nil {
		wire.EncodePiece(room, kind, piece, len(values))
		copy(room[wire.PieceSize:], values)
		l.Sent(to, wire.PieceSize+len(values))
	}
}

// SendThere says that a piece is in memory that both share.
func (l *Link) SendThere(to int, piece int32) {
	if room := l.frames.room(to, wire.PieceSize); room != nil {
		wire.EncodePiece(room, wire.PieceThere, piece, 0)
		l.Sent(to, wire.PieceSize)
	}
}

// SendBulk sends n bytes at off of a buffer on the data channel at the end of the batch.
func (l *Link) SendBulk(to int, tag uint32, b *comm.Buf, off, n int, h comm.Handler) {
	l.frames.bulk = append(l.frames.bulk, bulk{to, tag, b, off, n, h})
}

// room finds n bytes behind what is said to a rank already.
func (f *frames) room(to, n int) []byte {
	m := f.open[to]
	if m != nil && m.n+n > comm.CtlMax {
		f.leave(to)
		m = nil
	}
	if m == nil {
		if m = f.take(1); m == nil {
			return nil
		}
		f.open[to] = m
		f.dirty = append(f.dirty, int32(to))
	}
	at := m.n
	m.n += n
	return m.bytes[at:m.n]
}

// leave sends the open frame of a rank.
func (f *frames) leave(to int) {
	m := f.open[to]
	if m == nil {
		return
	}
	f.open[to] = nil
	if m.n <= layout.FrameSmall {
		if small := f.take(0); small != nil {
			small.n = copy(small.bytes, m.bytes[:m.n])
			f.give(m)
			m = small
		}
	}
	f.l.open++
	f.l.t.Isend(comm.Peer(to), comm.Ctl, 0, m.buf, 0, m.n, m.sent)
}

func (f *frames) take(kind int) *frame {
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
		f.give(m)
	}
	return m
}

func (f *frames) give(m *frame) {
	m.n = 0
	f.spare[m.kind] = append(f.spare[m.kind], m)
}

// close gives the memory back, when nothing is in flight any more.
func (f *frames) close() {
	for _, list := range f.spare {
		for _, m := range list {
			m.buf.Free()
		}
	}
	f.spare = [2][]*frame{}
}
