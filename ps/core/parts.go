package core

import (
	"fmt"
	"slices"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
)

// An iteration may come in parts: pushes of its worker, its owner, and of others that have computed some of its samples for it. Each
// names the owner, which part it is, and of how many. The server adds them up as they land, and tells the scheme of one push of the
// owner when all are there, so that schemes know nothing of parts:
//
//	a part of (Owner, Iter) has landed     the first one's slot stays, the others are merged into it
//	the last one                           Pushed of the owner, with the samples of all
//
// Until then the owner's pull is held, as it is while a push is on its way. The owner pushes one part of each of its iterations itself,
// in order: so an iteration of which nothing is there yet is not overtaken by a later one. What comes for an owner that has left, and
// what is there of its iterations, is dropped. A part that comes twice is acknowledged and ignored. Whoever leaves before a part that it
// owes has landed leaves its owner waiting: who gave the part away must give it to another.

// assembly is an iteration some of whose parts have landed.
type assembly struct {
	p    *pushed // the first that landed: its slot has the sum, its header becomes that of the whole
	have []int32 // parts that are in it
}

// isPart says whether a push is not a whole iteration of who sends it.
func isPart(m *wire.Header) bool { return m.Parts != 1 || m.Owner != m.Worker }

// makeParts makes room for iterations that come in so many parts at most; below 2 none does.
func (sh *ownShard) makeParts(most, workers int) {
	if most < 2 {
		return
	}
	sh.parts = make([][]*assembly, workers)
	sh.slotMax += int32(workers) // on their way, while a push of the same worker is staged
	if sh.early == nil {
		sh.early = make([][]wire.Header, workers) // a worker may send a part of another's while its own is on the way
	}
}

// assembled is where an iteration of an owner is put together; nil if nothing of it has landed.
func (sh *ownShard) assembled(m *wire.Header) *assembly {
	for _, a := range sh.parts[m.Owner] {
		if a.p.head.Iter == m.Iter {
			return a
		}
	}
	return nil
}

// hasPart says whether a part has landed before.
func (sh *ownShard) hasPart(m *wire.Header) bool {
	if m.Iter < sh.reached[m.Owner] {
		return true
	}
	a := sh.assembled(m)
	return a != nil && slices.Contains(a.have, m.Part)
}

// partLanded adds a part to what is there of its iteration.
func (s *Server) partLanded(sh *ownShard, p *pushed, in Input, out []Effect) []Effect {
	m := p.head // the header of the whole may take its place
	owner, by := m.Owner, m.Worker
	a := sh.assembled(&m)
	switch {
	case s.left[owner]:
		sh.freeSlot(p.slot)
		sh.stats.drop(scheme.Gone)
	case a == nil:
		list := append(sh.parts[owner], &assembly{p: p, have: []int32{m.Part}})
		slices.SortFunc(list, func(a, b *assembly) int { return int(a.p.head.Iter - b.p.head.Iter) })
		sh.parts[owner] = list
	default:
		out = append(out, Effect{Kind: Merge, Shard: sh.id, Slot: p.slot, Dst: a.p.slot, To: m.Worker, Iter: m.Iter})
		sh.freeSlot(p.slot)
		of := &a.p.head
		of.Samples, of.Correct, of.Loss, of.Version = of.Samples+m.Samples, of.Correct+m.Correct, of.Loss+m.Loss, min(of.Version, m.Version)
		of.Flags |= m.Flags
		if by == owner { // what it says of itself
			of.Clock, of.Blocked = m.Clock, m.Blocked
		}
		a.have = append(a.have, m.Part)
	}
	for len(sh.parts[owner]) > 0 && len(sh.parts[owner][0].have) == int(sh.parts[owner][0].p.head.Parts) {
		whole := sh.parts[owner][0].p
		sh.parts[owner] = sh.parts[owner][1:]
		whole.head.Worker, whole.head.Part, whole.head.Parts = owner, 0, 1
		out = s.landed(sh, whole, in, out)
	}
	return s.caughtUp(sh, by, s.wanted(sh, by, out)) // its own pull may have waited behind this
}

// forgetParts drops what has landed of the iterations of an owner that leaves.
func (sh *ownShard) forgetParts(owner int32) {
	if sh.parts == nil {
		return
	}
	for _, a := range sh.parts[owner] {
		sh.freeSlot(a.p.slot)
		sh.stats.drop(scheme.Gone)
	}
	sh.parts[owner] = nil
}

// checkParts holds what is put together to its order, and says how many slots it has.
func (sh *ownShard) checkParts(used map[int32]bool) (slots int, err error) {
	for owner, list := range sh.parts {
		for i, a := range list {
			slots++
			used[a.p.slot] = true
			if h := &a.p.head; h.Owner != int32(owner) || h.Iter < sh.reached[owner] || i > 0 && h.Iter <= list[i-1].p.head.Iter || len(a.have) > int(h.Parts) {
				return slots, fmt.Errorf("core: shard %d puts iteration %d of worker %d together of %v of %d parts, which has reached %d", sh.id, h.Iter, owner, a.have, h.Parts, sh.reached[owner])
			}
		}
	}
	return slots, nil
}
