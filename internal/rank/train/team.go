package train

import (
	"fmt"
	"slices"

	"fluentps/internal/comm"
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/plan/layout"
	"fluentps/internal/policy/optim"
)

// With cluster.hierarchy: node the ranks that compute on one host are one worker (shard.Roles.ByNode). Its leader pushes
// and pulls; the other ranks are its members and have no node. They share a window:
//
//	leader's segment    the parameters: replies are received there, and all ranks of the team read them
//	member's segment    the member's gradients, which the leader adds to its own
//
// A member reads parameters and writes gradients only between the leader's Task and its own Summand of the layer. Replies
// change a layer's parameters only after its pieces were handed over, that is, after all members have sent that Summand. So
// nothing is copied but the sums, and no rank reads memory that changes.
// Source: straggler-and-contention 7.2 [A][T].

// join finds the memory of parameters and gradients, shared among the ranks of a team, and the exchange.
func (w *Side) join() error {
	r := w.station
	team := r.Roles.Team(w.me)
	if team[0] != r.Me {
		w.member = newMember(w, team[0])
		w.exchange = w.member
		w.arenas.params, w.arenas.grads = r.Team.Of(comm.Peer(team[0])), r.Team.Of(comm.Peer(r.Me))
		return w.bindModel(w.arenas.params, w.arenas.grads)
	}
	arena := r.Plan.Arena * shard.ElemBytes
	var err error
	if err = w.takeGradients(arena + layout.TailBytes(r.Config)); err != nil {
		return fmt.Errorf("gradient arena: %w", err)
	}
	w.exchange = alone{w}
	written := w.arenas.grads
	if len(team) == 1 {
		if w.arenas.params, err = w.room(arena); err != nil {
			return fmt.Errorf("parameter arena: %w", err)
		}
	} else {
		if w.arenas.params = r.Team.Of(comm.Peer(r.Me)); r.Config.Local.IsSet() { // the team's parameters are there, and answers land beside them
			if w.arenas.params, err = w.alloc(arena); err != nil {
				return fmt.Errorf("parameter arena: %w", err)
			}
		}
		if written, err = w.room(arena); err != nil {
			return fmt.Errorf("arena for the sums of gradients: %w", err)
		}
		w.leader = newTeamLeader(w, team, written)
		if !r.Config.Local.IsSet() {
			w.exchange = w.leader
		}
	}
	if r.Config.Local.IsSet() { // the model is bound to parameters of the worker's own
		return nil
	}
	return w.bindModel(w.arenas.params, written)
}

func (w *Side) alloc(bytes int) (*comm.Buf, error) {
	b, err := w.station.Transport.Alloc(bytes)
	if err == nil {
		w.arenas.allocated = append(w.arenas.allocated, b)
	}
	return b, err
}

// room allocates memory that the model is bound to.
func (w *Side) room(bytes int) (*comm.Buf, error) {
	b, isOurs, err := w.station.Room(w.model, bytes)
	if err == nil && isOurs {
		w.arenas.allocated = append(w.arenas.allocated, b)
	}
	return b, err
}

// teamLeader is the exchange of a worker with members: it passes on what all ranks of the team have computed.
type teamLeader struct {
	w            *Side
	team         *core.Team
	ranks        []int       // of the team; this rank is the first
	written      [][]float32 // by rank: its gradients; their sums go to the worker's gradient arena
	scratch      [][]float32
	summed       int64       // samples of the team in this iteration
	layers       int         // that wait until all are summed, because their norm is taken over all
	finished     bool        // this rank has computed its part
	taskSent     bool        // the members know of the iteration
	own          *comm.Buf   // what this rank has written
	head         wire.Header // of a team's step that is over
	readableTold int         // number of first layers that the members know to be readable
}

func newTeamLeader(w *Side, team []int, written *comm.Buf) *teamLeader {
	l := &teamLeader{w: w, team: core.NewTeam(len(team), len(w.pieces)), own: written, ranks: team,
		scratch: make([][]float32, len(team)), taskSent: true, readableTold: len(w.pieces)}
	l.written = append(l.written, written.F32())
	for _, rank := range team[1:] {
		l.written = append(l.written, w.station.Team.Of(comm.Peer(rank)).F32())
	}
	return l
}

func (l *teamLeader) Readable(layer int) bool { return l.w.node.Readable(layer) }
func (l *teamLeader) Writable(layer int) bool { return l.w.node.Writable(layer) }
func (l *teamLeader) Over() bool              { return l.w.node.State() == core.Computing }
func (l *teamLeader) Prepare(int, int64)      {}
func (l *teamLeader) Forwarded(h wire.Header) { l.forwardOver(0, h) }
func (l *teamLeader) LayerReady(layer int)    { l.summandReady(0, layer) }

func (l *teamLeader) TaskDone() {
	l.finished = true
	l.end()
}

// begin starts an iteration of the team. The members hear of it after the other effects were obeyed.
func (l *teamLeader) begin(iter int64) {
	l.team.Begin(iter)
	l.finished, l.taskSent, l.readableTold = false, false, 0
}

// beginStep starts a step of a team that takes steps of its own.
func (l *teamLeader) beginStep(step int64) {
	l.team.Begin(step)
	l.sendMembers(&wire.Header{Kind: wire.Task, Worker: int32(l.w.me), Iter: step, Part: int32(len(l.w.pieces))})
}

// tellMembers sends the members the iteration that was started, and the layers that have become readable since.
func (l *teamLeader) tellMembers() {
	if l.w.deltas.own != nil {
		return // they hear of steps, not of exchanges
	}
	n := l.readableTold
	for n < len(l.w.pieces) && l.w.node.Readable(n) {
		n++
	}
	h := wire.Header{Kind: wire.Readable, Worker: int32(l.w.me), Iter: l.team.Iter(), Part: int32(n)}
	switch {
	case !l.taskSent:
		h.Kind = wire.Task
	case n == l.readableTold:
		return
	}
	l.taskSent, l.readableTold = true, n
	l.sendMembers(&h)
}

// endTraining tells the members that training is over.
func (l *teamLeader) endTraining() {
	l.sendMembers(&wire.Header{Kind: wire.Task, Flags: wire.Stop, Worker: int32(l.w.me)})
}

func (l *teamLeader) sendMembers(h *wire.Header) {
	for _, rank := range l.ranks[1:] {
		l.w.station.Net.Send(rank, h)
	}
}

// receive handles a message of a member.
func (l *teamLeader) receive(from int, h *wire.Header) {
	m := slices.Index(l.ranks, from)
	if m < 1 || h.Iter != l.team.Iter() || h.Part < 0 || int(h.Part) >= len(l.w.pieces) {
		l.w.station.Net.Fail(fmt.Errorf("train: control message of rank %d: %v of layer %d of iteration %d, to worker %d "+
			"in state %v", from, h.Kind, h.Part, h.Iter, l.w.me, l.team))
		return
	}
	if h.Kind == wire.Forwarded {
		l.forwardOver(m, *h)
		return
	}
	l.summandReady(m, int(h.Part))
	l.end()
}

func (l *teamLeader) forwardOver(m int, h wire.Header) {
	sum, complete := l.team.Forwarded(m, h)
	switch {
	case complete && l.w.deltas.own != nil:
		l.head = sum
	case complete:
		l.summed = sum.Samples
		l.w.step(core.Input{Kind: core.Forwarded, Msg: sum})
	}
}

// summandReady adds a layer up when all ranks have computed it, and hands it over.
func (l *teamLeader) summandReady(m, layer int) {
	if !l.team.Ready(m, layer) {
		return
	}
	sums := l.w.arenas.grads.F32()
	if own := l.w.deltas.own; own != nil {
		sums = own.sums
	}
	for _, id := range l.w.pieces[layer] {
		p := &l.w.station.Plan.Pieces[id]
		for k := range l.written {
			l.scratch[k] = l.written[k][p.Lo:p.Hi]
		}
		if optim.Sum(sums[p.Lo:p.Hi], l.scratch...) >= optim.Infinite {
			l.w.lookAtSum(p, sums[p.Lo:p.Hi], l)
		}
	}
	if l.w.deltas.own != nil {
		l.w.site.stepped()
		return
	}
	if l.w.it.clip == nil {
		l.push(layer)
		return
	}
	if l.layers++; l.layers < len(l.w.pieces) {
		return
	}
	l.layers = 0
	l.w.it.clip.Sums(sums, l.summed)
	for layer := range slices.Backward(l.w.pieces) {
		l.push(layer)
	}
}

// push hands over a layer of the sums.
func (l *teamLeader) push(layer int) {
	l.w.makeDelta(layer, l.team.Iter(), l.summed)
	l.w.handOver(layer)
}

// end ends the iteration when all ranks have computed everything.
func (l *teamLeader) end() {
	if l.finished && l.team.Over() && l.w.dealing.hasHeard() {
		l.finished = false
		l.w.dealing.teamComputed(l.team.Iter())
		l.w.step(core.Input{Kind: core.TaskDone})
	}
}

// explain names the members that the worker waits for; "" if none.
func (l *teamLeader) explain() string {
	if !l.finished {
		return ""
	}
	text := ""
	for _, m := range l.team.Behind() {
		text += fmt.Sprintf("; its member %s, %s", l.w.station.Roles.Name(l.ranks[m]), l.w.station.Net.Place(l.ranks[m]))
	}
	return text
}
