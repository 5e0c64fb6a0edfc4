package sim

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
)

// traffic is all that is on its way between nodes.
type traffic struct {
	net       *network
	messages  slab[message]
	transfers slab[Transfer]
	replies   slab[Transfer]       // replies that have left, but the server does not know yet
	ahead     map[[2]int32][]int32 // by shard and worker: landed pieces of pushes that are not staged
	moving    int                  // transfers that have not landed

	sent, received, lost int64 // bytes of transfers: sent = received + lost when nothing is in flight
}

// Transfer is the bytes of a message in flight: a piece of a push, a whole reply, a piece of a reply, or the keys of a pull.
type Transfer struct {
	Reply          bool
	Asks           bool   // the keys of a pull, whose message is in slot piece
	IsPiece        bool   // one piece of a reply
	Published      bool   // a reply without a pull
	Life           uint16 // of the worker
	Worker, Server int32
	Shard, Piece   int32
	Iter           int64 // of a push
	Buf            int32
	Bytes          int64
}

// arrived delivers a control message. It drops messages from and to a dead worker.
func (s *Simulation) arrived(ev event) {
	m := &s.traffic.messages.all[ev.arg]
	if m.head.Kind != wire.Closed && m.head.Kind != wire.Normed && !s.workers[m.head.Worker].isAlive(m.life) {
		s.traffic.messages.take(ev.arg)
		return
	}
	if m.head.Kind == wire.Barrier {
		s.atBarrier(s.traffic.messages.take(ev.arg))
		return
	}
	if int(ev.node) >= len(s.workers) {
		s.serve(ev)
		return
	}
	head := s.traffic.messages.take(ev.arg).head
	if !s.workers[ev.node].dead { // else it is a message of another worker
		s.deliver(ev.node, head)
	}
}

// deliver gives a worker a message.
func (s *Simulation) deliver(me int32, m wire.Header) {
	w := &s.workers[me]
	if m.Kind == wire.Reply || m.Kind == wire.Publish {
		w.lastHead = s.now
	}
	s.stepWorker(me, core.Input{Kind: core.Arrived, Msg: m})
}

// landed delivers the last byte of a transfer.
func (s *Simulation) landed(ev event) {
	t := &s.traffic.transfers.all[ev.arg]
	s.traffic.moving--
	if !s.workers[t.Worker].isAlive(t.Life) {
		s.traffic.lost += t.Bytes
		s.traffic.transfers.take(ev.arg)
		if s.values != nil {
			s.values.Lost(ev.arg)
		}
		return
	}
	s.traffic.received += t.Bytes
	if t.Asks {
		s.serve(event{at: ev.at, kind: evControl, node: ev.node, arg: s.traffic.transfers.take(ev.arg).Piece})
		return
	}
	if !t.Reply {
		s.serve(ev)
		return
	}
	reply := s.traffic.transfers.take(ev.arg)
	if s.values != nil && !reply.Published {
		s.values.ReplyLanded(reply)
	}
	s.observer.ReplyLanded(reply.Shard, reply.Worker, reply.IsPiece)
	for _, p := range s.Carries(reply) {
		s.stepWorker(ev.node, core.Input{Kind: core.PieceLanded, Piece: p.ID})
	}
}

// Carries lists the pieces of a reply that a transfer carries.
func (s *Simulation) Carries(t Transfer) []shard.Piece {
	if t.IsPiece {
		return s.plan.Pieces[t.Piece : t.Piece+1]
	}
	return s.plan.Shards[t.Shard].Pieces
}

// control sends a message to a node.
func (s *Simulation) control(to int32, m message, local bool) {
	d := s.latency
	if local {
		d = 0
	}
	s.q.after(s.now, d, evControl, to, s.traffic.messages.put(m))
}

// move starts a transfer between a worker and a server, and returns its slot.
func (s *Simulation) move(t Transfer) int32 {
	s.traffic.moving++
	s.traffic.sent += t.Bytes
	w, m := &s.workers[t.Worker], &s.servers[t.Server]
	i := s.traffic.transfers.put(t)
	switch {
	case w.host == m.host:
		s.q.after(s.now, nanoseconds(t.Bytes, s.cfg.Simulate.Network.Memory), evSent, 0, i)
	case s.cfg.Simulate.Network.Bandwidth == 0:
		s.q.after(s.now, 0, evSent, 0, i)
	case t.Reply:
		s.traffic.net.start(m.host, w.host, t.Bytes, s.q.seq, i)
	default:
		s.traffic.net.start(w.host, m.host, t.Bytes, s.q.seq, i)
	}
	return i
}

// sent handles the moment at which the last byte of a transfer has left.
func (s *Simulation) sent(i int32) {
	t := s.traffic.transfers.all[i]
	server := int32(len(s.workers)) + t.Server
	to, d := server, s.latency
	if t.Reply {
		to = t.Worker
	}
	if s.workers[t.Worker].host == s.servers[t.Server].host {
		d = 0
	}
	s.q.after(s.now, d, evLanded, to, i)
	if t.Reply {
		if s.values != nil && s.workers[t.Worker].isAlive(t.Life) {
			s.values.ReplySent(t)
		}
		s.serve(event{at: s.now, kind: evSent, node: server, arg: s.traffic.replies.put(t)})
	} else if !t.Asks && s.workers[t.Worker].isAlive(t.Life) {
		if s.values != nil {
			s.values.PushLeft(i, t)
		}
		s.stepWorker(t.Worker, core.Input{Kind: core.PieceSent, Piece: t.Piece})
	}
}

// nanoseconds is how long bytes take at a rate in bytes per second. A rate of 0 is without limit.
func nanoseconds(bytes, rate int64) int64 {
	if rate == 0 {
		return 0
	}
	return int64(float64(bytes) / float64(rate) * 1e9)
}
