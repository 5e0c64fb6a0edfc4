package train

import (
	"fmt"
	"slices"

	"fluentps/comm"
	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/optim"
	"fluentps/ps/shard"
)

// With cluster.hierarchy: node the ranks that compute on one host are one worker (shard.Roles.ByNode). Its leader pushes
// and pulls; the others are its members, and have no node of their own. They share a window:
//
//	leader's segment    the parameters, where replies land and from where all of them read
//	member's segment    its gradients, which the leader adds to its own
//
// A member reads parameters and writes gradients only between the leader's Task and its own Summand of the layer, and
// replies change a layer's parameters only when its pieces were handed over, which is when all have sent that Summand.
// So nothing is copied but the sums, and nobody reads what changes.
// Source: straggler-and-contention 7.2 [A][T].

// join finds the memory for parameters and gradients, where the ranks of a team share it, and whom to compute with.
func (w *Side) join() error {
	r := w.station
	team := r.Roles.Team(w.me)
	if team[0] != r.Me {
		w.member = newMember(w, team[0])
		w.with = w.member
		w.arenas.params, w.arenas.grads = r.Team.Of(comm.Peer(team[0])), r.Team.Of(comm.Peer(r.Me))
		return w.bindModel(w.arenas.params, w.arenas.grads)
	}
	arena := r.Plan.Arena * shard.ElemBytes
	var err error
	if err = w.takeGradients(arena + layout.TailBytes(r.Config)); err != nil {
		return fmt.Errorf("gradient arena: %w", err)
	}
	w.with = alone{w}
	written := w.arenas.grads
	if len(team) == 1 {
		if w.arenas.params, err = w.alloc(arena); err != nil {
			return fmt.Errorf("parameter arena: %w", err)
		}
	} else {
		w.arenas.params = r.Team.Of(comm.Peer(r.Me))
		if written, err = w.alloc(arena); err != nil {
			return fmt.Errorf("arena for the sums of gradients: %w", err)
		}
		w.lead = newLeading(w, team, written)
		w.with = w.lead
	}
	return w.bindModel(w.arenas.params, written)
}

func (w *Side) alloc(bytes int) (*comm.Buf, error) {
	b, err := w.station.Transport.Alloc(bytes)
	if err == nil {
		w.arenas.own = append(w.arenas.own, b)
	}
	return b, err
}

// leading is the exchange of a worker with members: what it has computed goes on when all have.
type leading struct {
	w        *Side
	team     *core.Team
	ranks    []int       // of the team, this one first
	written  [][]float32 // gradients of each of them; the sums go to the worker's gradient arena
	scratch  [][]float32
	summed   int64 // samples of the team in this iteration
	finished bool  // this rank has computed its part
	tasked   bool  // the members know of the iteration
	told     int   // and that so many of its first layers are readable
}

func newLeading(w *Side, team []int, written *comm.Buf) *leading {
	l := &leading{w: w, team: core.NewTeam(len(team), len(w.pieces)), ranks: team, scratch: make([][]float32, len(team)), tasked: true, told: len(w.pieces)}
	l.written = append(l.written, written.F32())
	for _, rank := range team[1:] {
		l.written = append(l.written, w.station.Team.Of(comm.Peer(rank)).F32())
	}
	return l
}

func (l *leading) Readable(layer int) bool { return l.w.node.Readable(layer) }
func (l *leading) Writable(layer int) bool { return l.w.node.Writable(layer) }
func (l *leading) Over() bool              { return l.w.node.State() == core.Computing }
func (l *leading) Prepare(int, int64)      {}
func (l *leading) Forwarded(h wire.Header) { l.forwardOver(0, h) }
func (l *leading) LayerReady(layer int)    { l.summandReady(0, layer) }

func (l *leading) TaskDone() {
	l.finished = true
	l.end()
}

// begin starts an iteration of the team; the members hear of it when the effects beside were obeyed.
func (l *leading) begin(iter int64) {
	l.team.Begin(iter)
	l.finished, l.tasked, l.told = false, false, 0
}

// tell gives the members the iteration that was started, and the layers that have become readable since.
func (l *leading) tell() {
	n := l.told
	for n < len(l.w.pieces) && l.w.node.Readable(n) {
		n++
	}
	h := wire.Header{Kind: wire.Readable, Worker: int32(l.w.me), Iter: l.team.Iter(), Part: int32(n)}
	switch {
	case !l.tasked:
		h.Kind = wire.Task
	case n == l.told:
		return
	}
	l.tasked, l.told = true, n
	l.order(&h)
}

// dismiss tells the members that training is over.
func (l *leading) dismiss() {
	l.order(&wire.Header{Kind: wire.Task, Flags: wire.Stop, Worker: int32(l.w.me)})
}

func (l *leading) order(h *wire.Header) {
	for _, rank := range l.ranks[1:] {
		l.w.station.Net.Send(rank, h)
	}
}

// came takes what a member says.
func (l *leading) came(from int, h *wire.Header) {
	m := slices.Index(l.ranks, from)
	if m < 1 || h.Iter != l.team.Iter() || h.Part < 0 || int(h.Part) >= len(l.w.pieces) {
		l.w.station.Net.Fail(fmt.Errorf("train: control message of rank %d: %v of layer %d of iteration %d, to worker %d in state %v", from, h.Kind, h.Part, h.Iter, l.w.me, l.team))
		return
	}
	if h.Kind == wire.Forwarded {
		l.forwardOver(m, *h)
		return
	}
	l.summandReady(m, int(h.Part))
	l.end()
}

func (l *leading) forwardOver(m int, h wire.Header) {
	if sum, whole := l.team.Forwarded(m, h); whole {
		l.summed = sum.Samples
		l.w.step(core.Input{Kind: core.Forwarded, Msg: sum})
	}
}

// summandReady adds a layer up when all have computed it, and hands it over.
func (l *leading) summandReady(m, layer int) {
	if !l.team.Ready(m, layer) {
		return
	}
	sums := l.w.arenas.grads.F32()
	for _, id := range l.w.pieces[layer] {
		p := &l.w.station.Plan.Pieces[id]
		for k := range l.written {
			l.scratch[k] = l.written[k][p.Lo:p.Hi]
		}
		optim.Sum(sums[p.Lo:p.Hi], l.scratch...)
	}
	l.w.makeDelta(layer, l.team.Iter(), l.summed)
	l.w.handOver(layer)
}

// end ends the iteration when all have computed everything.
func (l *leading) end() {
	if l.finished && l.team.Over() {
		l.finished = false
		l.w.step(core.Input{Kind: core.TaskDone})
	}
}

// explain says which members the worker waits for; empty if none.
func (l *leading) explain() string {
	if !l.finished {
		return ""
	}
	text := ""
	for _, m := range l.team.Behind() {
		text += fmt.Sprintf("; its member %s, %s", l.w.station.Roles.Name(l.ranks[m]), l.w.station.Net.Place(l.ranks[m]))
	}
	return text
}
