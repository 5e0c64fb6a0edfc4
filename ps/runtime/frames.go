package runtime

import (
	"fmt"
	"time"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/layout"
)

// frames sends what nodes say. All that one batch of effects says to a rank leaves at the end of the batch in one
// control message, in order, with the small pieces among it; the other pieces follow on the data channel. Nothing
// waits for more to come. In steady state it takes no memory: buffers are kept, and so are their handlers.
type frames struct {
	r       *rank
	batches int // begun and not ended: effects are obeyed inside the input that led to them
	at      time.Duration
	read    bool // at is of this batch
	open    []*frame
	dirty   []int32 // ranks that an open frame is for, maybe some that have none any more
	bulk    []bulk
	spare   [2][]*frame // by size: frameSmall, comm.CtlMax
	apart   bool        // every header begins a message of its own, as with PS-Lite
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

// begin opens a batch; every begin has its end.
func (r *rank) begin() { r.frames.batches++ }

// clock is the time on the world's clock: what it was when this batch first asked, or a lap ended.
func (r *rank) clock() time.Duration {
	f := &r.frames
	if f.batches == 0 {
		return r.t.Now()
	}
	if !f.read {
		f.at, f.read = r.t.Now(), true
	}
	return f.at
}

// lap is the time since clock was last looked at in this batch.
func (r *rank) lap() time.Duration {
	from := r.clock()
	r.frames.at = r.t.Now()
	return r.frames.at - from
}

// end sends what the batch has to say, if it is not inside another.
func (r *rank) end() {
	f := &r.frames
	if f.batches > 1 {
		f.batches--
		return
	}
	if r.server != nil {
		r.server.folded()
	}
	f.flush()
	if r.server != nil {
		r.server.answered()
		r.server.postDue()
	}
	f.batches--
	f.read = false
}

// flush lets all go that is said.
func (f *frames) flush() {
	r := f.r
	for _, to := range f.dirty {
		f.leave(int(to))
	}
	f.dirty = f.dirty[:0]
	for i := range f.bulk { // behind the headers, so that a receiver knows what comes
		b := &f.bulk[i]
		r.sent(b.to, b.n)
		r.t.Isend(comm.Peer(b.to), comm.Data, b.tag, b.buf, b.off, b.n, b.h)
	}
	f.bulk = f.bulk[:0]
}

// send says a header to a rank, now or with the rest of the batch.
func (r *rank) send(to int, h *wire.Header) {
	r.begin()
	if r.frames.apart {
		r.frames.leave(to)
	}
	if room := r.frames.room(to, wire.Size); room != nil {
		wire.Encode(room, h)
		if training(h.Kind) {
			r.sent(to, wire.Size)
		}
	}
	r.end()
}

// sendInline puts a piece behind its header. The values are read before it returns.
func (r *rank) sendInline(to int, kind wire.Kind, piece int32, values []byte) {
	if room := r.frames.room(to, wire.PieceSize+len(values)); room != nil {
		wire.EncodePiece(room, kind, piece, len(values))
		copy(room[wire.PieceSize:], values)
		r.sent(to, wire.PieceSize+len(values))
	}
}

// sendThere says that a piece is in memory that both share.
func (r *rank) sendThere(to int, piece int32) {
	if room := r.frames.room(to, wire.PieceSize); room != nil {
		wire.EncodePiece(room, wire.PieceThere, piece, 0)
		r.sent(to, wire.PieceSize)
	}
}

// sendBulk sends n bytes at off of a buffer on the data channel at the end of the batch.
func (r *rank) sendBulk(to int, tag uint32, b *comm.Buf, off, n int, h comm.Handler) {
	r.frames.bulk = append(r.frames.bulk, bulk{to, tag, b, off, n, h})
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
	f.r.open++
	f.r.t.Isend(comm.Peer(to), comm.Ctl, 0, m.buf, 0, m.n, m.sent)
}

func (f *frames) take(kind int) *frame {
	if n := len(f.spare[kind]); n > 0 {
		m := f.spare[kind][n-1]
		f.spare[kind] = f.spare[kind][:n-1]
		return m
	}
	b, err := f.r.t.Alloc([...]int{layout.FrameSmall, comm.CtlMax}[kind])
	if err != nil {
		f.r.fail(fmt.Errorf("runtime: control message: %w", err))
		return nil
	}
	m := &frame{buf: b, bytes: b.Bytes(), kind: kind}
	m.sent = func(d comm.Done) {
		f.r.open--
		f.r.fail(d.Err)
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
