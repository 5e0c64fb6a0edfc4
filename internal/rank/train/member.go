package train

import (
	"fmt"
	"time"

	"fluentps/internal/comm/wire"
)

// member is the exchange of a rank that computes for the leader of its node. The leader sends it iterations, and the member
// reports what it has computed. Both share the memory of parameters and gradients.
type member struct {
	w        *Side
	leader   int // its rank
	iter     int64
	readable int         // number of first layers that are readable
	started  int64       // number of iterations
	busy     bool        // an iteration is being computed
	nextTask wire.Header // the task that arrived before the end of the current one was noted; Kind 0: none
}

func newMember(w *Side, leader int) *member {
	return &member{w: w, leader: leader, iter: -1}
}

func (m *member) Readable(layer int) bool { return layer < m.readable }
func (m *member) Writable(int) bool       { return true } // the leader sends a task after it has added up the previous gradients
func (m *member) Over() bool              { return m.readable == len(m.w.pieces) }
func (m *member) Prepare(int, int64)      {}

func (m *member) Forwarded(h wire.Header) {
	h.Kind, h.Worker, h.Iter = wire.Forwarded, int32(m.w.me), m.iter
	m.w.station.Net.Send(m.leader, &h)
}

func (m *member) LayerReady(layer int) {
	m.w.station.Net.Send(m.leader, &wire.Header{Kind: wire.Summand, Worker: int32(m.w.me), Iter: m.iter, Part: int32(layer)})
}

func (m *member) TaskDone() {
	m.busy = false
	if h := m.nextTask; h.Kind != 0 {
		m.nextTask = wire.Header{}
		m.begin(&h)
	}
}

// receive handles a message of the leader.
func (m *member) receive(from int, h *wire.Header) {
	if from != m.leader || h.Part < 0 || int(h.Part) > len(m.w.pieces) {
		m.w.station.Net.Fail(fmt.Errorf(
			"train: control message of rank %d: %v of iteration %d with %d layers, to member %s", from, h.Kind, h.Iter, h.Part,
			m.w.station.Roles.Name(m.w.station.Me)))
		return
	}
	m.w.idle.lastHeader = m.w.station.Net.Clock()
	switch {
	case h.Kind == wire.Task && m.busy:
		m.nextTask = *h
	case h.Kind == wire.Task:
		m.begin(h)
	case m.nextTask.Kind != 0:
		m.nextTask.Part = h.Part
	default:
		m.readable = int(h.Part)
	}
	m.w.site.stepped()
}

// begin starts an iteration, or ends training.
func (m *member) begin(h *wire.Header) {
	m.w.endWait(m.w.station.Transport.Now())
	if h.Flags&wire.Stop != 0 {
		m.w.done = true
		return
	}
	m.iter, m.readable, m.busy = h.Iter, int(h.Part), true
	m.started++
	m.w.site.start(m.w.wholeTask(h.Iter))
}

func (m *member) explain(waited time.Duration) string {
	return fmt.Sprintf("member %s has waited %s after iteration %d for its leader, %s",
		m.w.station.Roles.Name(m.w.station.Me), waited.Round(time.Second), m.iter, m.w.station.Net.Place(m.leader))
}
