package core

import (
	"fmt"

	"fluentps/internal/comm/wire"
)

// Team is the leader's view of the ranks that compute with it (cluster.hierarchy: node). Inside a node gradients are
// summed as under BSP: a layer can be pushed when all ranks have computed theirs. It is then summed in the order of the
// ranks, so that its bits do not depend on which rank was first. What crosses the network is one sum and one count of
// samples per node, never a mean: nodes may have different numbers of ranks. Source: straggler-and-contention 7.2
// [A][T].
type Team struct {
	iter  int64         // the iteration being computed, -1 before the first
	heads []wire.Header // per rank, the leader first; Kind is zero until the rank's forward pass is over
	done  [][]bool      // done[l][m]: the gradients of layer l of rank m are final
}

// NewTeam makes the team of a leader and size-1 members. The model has so many layers.
func NewTeam(size, layers int) *Team {
	t := &Team{iter: -1, heads: make([]wire.Header, size), done: make([][]bool, layers)}
	for l := range t.done {
		t.done[l] = make([]bool, size)
	}
	return t
}

// Iter is the iteration being computed or computed last, -1 before the first.
func (t *Team) Iter() int64 { return t.iter }

// Begin starts an iteration.
func (t *Team) Begin(iter int64) {
	if iter <= t.iter || t.iter >= 0 && !t.Over() {
		panic(fmt.Sprintf("core: team: iteration %d begins in state %v", iter, t))
	}
	t.iter = iter
	clear(t.heads)
	for l := range t.done {
		clear(t.done[l])
	}
}

// Forwarded notes that a rank's forward pass is over. With the last rank whole is true, and sum has Samples, Correct
// and Loss of all ranks, and the shortest Blocked: the rank that computed longest waited for replies alone, the others
// waited for that rank, too.
func (t *Team) Forwarded(rank int, head wire.Header) (sum wire.Header, whole bool) {
	if t.heads[rank].Kind != 0 {
		panic(fmt.Sprintf("core: team: rank %d has done its forward pass in state %v", rank, t))
	}
	t.heads[rank] = head
	t.heads[rank].Kind = wire.Push
	for m := range t.heads {
		if t.heads[m].Kind == 0 {
			return wire.Header{}, false
		}
		sum.Samples += t.heads[m].Samples
		sum.Correct += t.heads[m].Correct
		sum.Loss += t.heads[m].Loss
		if sum.Blocked = min(sum.Blocked, t.heads[m].Blocked); m == 0 {
			sum.Blocked = t.heads[m].Blocked
		}
	}
	return sum, true
}

// Ready notes that a rank's gradients of a layer are final. With the last rank whole is true: the members' gradients
// must be added to the leader's in the order of their ranks, and then the layer's pieces are ready.
func (t *Team) Ready(rank, layer int) (whole bool) {
	if t.heads[rank].Kind == 0 || t.done[layer][rank] {
		panic(fmt.Sprintf("core: team: rank %d has layer %d ready in state %v", rank, layer, t))
	}
	t.done[layer][rank] = true
	return t.whole(layer)
}

func (t *Team) whole(layer int) bool {
	for _, done := range t.done[layer] {
		if !done {
			return false
		}
	}
	return true
}

// Over says whether every rank has computed every layer.
func (t *Team) Over() bool {
	for l := range t.done {
		if !t.whole(l) {
			return false
		}
	}
	return true
}

// Behind lists the ranks that have not, for the stall report.
func (t *Team) Behind() (ranks []int) {
	for m := range t.heads {
		for l := range t.done {
			if !t.done[l][m] {
				ranks = append(ranks, m)
				break
			}
		}
	}
	return ranks
}

func (t *Team) String() string {
	text := fmt.Sprintf("team iter=%d", t.iter)
	for m := range t.heads {
		ready := 0
		for l := range t.done {
			if t.done[l][m] {
				ready++
			}
		}
		text += fmt.Sprintf(" %d:%d/%d", m, ready, len(t.done))
	}
	return text
}
