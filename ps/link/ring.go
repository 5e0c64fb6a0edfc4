package link

import (
	"fmt"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/layout"
)

// ring is the preposted receives of control messages.
type ring struct {
	bufs    []*comm.Buf
	ops     []comm.Op
	closing bool        // completions of cancelled receives are expected
	record  wire.Record // that is acted on: kept here, a record takes no memory
}

// Open preposts the receives of control messages. Each is reposted when its message was acted on, which never
// waits; meanwhile the others take what comes.
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
		var came comm.Handler
		came = func(d comm.Done) {
			if g.closing {
				g.ops[i] = 0
				return
			}
			if d.Err != nil {
				l.Fail(fmt.Errorf("link: control message: %w", d.Err))
				return
			}
			l.read(int(d.Peer), frame[:d.N])
			g.ops[i] = l.t.Irecv(comm.AnyPeer, comm.Ctl, 0, b, 0, comm.CtlMax, came)
		}
		g.ops[i] = l.t.Irecv(comm.AnyPeer, comm.Ctl, 0, b, 0, comm.CtlMax, came)
	}
	return nil
}

// read acts on the records of a frame in their order, and answers them together.
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
			l.Fail(fmt.Errorf("link: control message of rank %d: a %v, which nobody here waits for", from, m.Kind))
			return
		}
		h(from, m)
		if frame = rest; len(frame) == 0 {
			return
		}
	}
}

// Closing says that receives are taken back: what comes of them now is no message.
func (l *Link) Closing() bool { return l.ring.closing }

// Close takes the receives back, and calls cancel, which does the same with those of others. It waits until all of them are
// back, and idle says so, and nothing is on its way.
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
