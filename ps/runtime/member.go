package runtime

import (
	"fmt"
	"time"

	"fluentps/comm/wire"
)

// member is the exchange of a rank that computes for the leader of its node: it is given iterations, and says what it
// has computed of them. Parameters and gradients are in memory that both share.
type member struct {
	*workerSide
	leader   int // its rank
	iter     int64
	readable int         // so many of the first layers are
	started  int64       // iterations
	busy     bool        // one is computed
	next     wire.Header // the task that came before this one's end was noted; its Kind is zero if none
}

func newMember(w *workerSide, leader int) *member {
	return &member{workerSide: w, leader: leader, iter: -1}
}

func (m *member) Readable(layer int) bool { return layer < m.readable }
func (m *member) Writable(int) bool       { return true } // the task says that the last ones were added up
func (m *member) over() bool              { return m.readable == len(m.pieces) }
func (m *member) prepare(int, int64)      {}

func (m *member) forwarded(h wire.Header) {
	h.Kind, h.Worker, h.Iter = wire.Forwarded, int32(m.me), m.iter
	m.r.net.Send(m.leader, &h)
}

func (m *member) layerReady(layer int) {
	m.r.net.Send(m.leader, &wire.Header{Kind: wire.Summand, Worker: int32(m.me), Iter: m.iter, Part: int32(layer)})
}

func (m *member) taskDone() {
	m.busy = false
	if h := m.next; h.Kind != 0 {
		m.next = wire.Header{}
		m.take(&h)
	}
}

// came takes what the leader says.
func (m *member) came(from int, h *wire.Header) {
	if from != m.leader || h.Part < 0 || int(h.Part) > len(m.pieces) {
		m.r.net.Fail(fmt.Errorf("runtime: control message of rank %d: %v of iteration %d with %d layers, to member %s", from, h.Kind, h.Iter, h.Part, m.r.roles.Name(m.r.me)))
		return
	}
	m.lastHead = m.r.net.Clock()
	switch {
	case h.Kind == wire.Task && m.busy:
		m.next = *h
	case h.Kind == wire.Task:
		m.take(h)
	case m.next.Kind != 0:
		m.next.Part = h.Part
	default:
		m.readable = int(h.Part)
	}
	m.site.stepped()
}

// take begins an iteration, or ends training.
func (m *member) take(h *wire.Header) {
	m.workerSide.waited(m.r.t.Now())
	if h.Flags&wire.Stop != 0 {
		m.done = true
		return
	}
	m.iter, m.readable, m.busy = h.Iter, int(h.Part), true
	m.started++
	m.site.start(h.Iter)
}

func (m *member) explain(waited time.Duration) string {
	return fmt.Sprintf("member %s has waited %s behind iteration %d for its leader, %s", m.r.roles.Name(m.r.me), waited.Round(time.Second), m.iter, m.r.net.Place(m.leader))
}
