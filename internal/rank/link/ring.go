package link

import (
	"fmt"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/plan/layout"
)

// ring is the preposted receives of control messages.
type ring struct {
	bufs    []*comm.Buf
	ops     []comm.Op
	closing bool        // the receives are being cancelled: their completions are no messages
	record  wire.Record // the record being handled; kept here to avoid an allocation
}

// Open posts the receives of control messages. Each is posted again when its message has been handled, which never
// blocks; meanwhile the others take what arrives.
func (l *Link) Open() error {
	g := &l.ring
	for i := range layout.RingDepth(l.t.Size()) {
		b, err := l.t.Alloc(comm.CtlMax)
		if err != nil {
			return err
		}
		g.bufs = append(g.bufs, b)
		g.ops = append(g.ops, 0)
		frame := b.Bytes()
		var handle comm.Handler
		handle = func(d comm.Done) {
			if g.closing {
				g.ops[i] = 0
				return
			}
			if d.Err != nil {
				l.Fail(fmt.Errorf("link: control message: %w", d.Err))
				return
			}
			l.read(int(d.Peer), frame[:d.N])
			g.ops[i] = l.t.Irecv(comm.AnyPeer, comm.Ctl, 0, b, 0, comm.CtlMax, handle)
		}
		g.ops[i] = l.t.Irecv(comm.AnyPeer, comm.Ctl, 0, b, 0, comm.CtlMax, handle)
	}
	return nil
}

// read handles the records of a frame in their order, as one batch.
func (l *Link) read(from int, frame []byte) {
	l.Begin()
	defer l.End()
	m := &l.ring.record
	for {
		var rest []byte
		var err error
		if *m, rest, err = wire.Next(frame); err != nil {
			l.Fail(fmt.Errorf("link: control message of rank %d: %w", from, err))
			return
		}
		if m.Kind.Training() {
			l.Traffic.Received += int64(m.Size)
		}
		h := l.handlers[m.Kind]
		if h == nil {
			l.Fail(fmt.Errorf("link: control message of rank %d: a %v, which this rank does not expect", from, m.Kind))
			return
		}
		h(from, m)
		if frame = rest; len(frame) == 0 {
			return
		}
	}
}

// Closing returns whether receives are being cancelled. Their completions are then no messages.
func (l *Link) Closing() bool { return l.ring.closing }

// Close cancels the receives, and calls cancel, which cancels the receives of other packages. It drives until its
// receives have completed, idle returns true and the link is idle.
func (l *Link) Close(cancel func(), idle func() bool) error {
	g := &l.ring
	g.closing = true
	for _, op := range g.ops {
		l.t.Cancel(op)
	}
	cancel()
	err := l.Drive(func() bool {
		for _, op := range g.ops {
			if op != 0 {
				return false
			}
		}
		return l.Idle() && idle()
	})
	for _, b := range g.bufs {
		b.Free()
	}
	g.bufs, g.ops = nil, nil
	l.frames.close()
	return err
}
