package servernode

import (
	"fmt"
	"slices"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/ps/scheme"
)

// An iteration may arrive in parts: one push of its worker (the owner), and pushes of other workers that have computed
// some of its samples. Each part names the owner and its own index. The owner's own part tells how many there are: the
// owner may learn that while it computes, so 0 in another's part leaves it open. The server adds the parts up as they
// land. When all have landed it tells the scheme of one push of the owner, so schemes know nothing of parts:
//
//	a part of (Owner, Iter) has landed     the first one's slot stays, the others are merged into it
//	the last one                           Pushed of the owner, with the samples of all
//
// Until then the server holds the owner's pull, as it does while a push is in flight. The owner itself pushes one part
// of each of its iterations, in order: so a later iteration never overtakes one of which no part has landed. If the
// owner leaves, the server drops the parts of its iterations, those that have landed and those that still arrive. A
// header that arrives twice is acknowledged and ignored. A part that two workers have computed counts once: the copy that
// lands second is received and dropped. If a worker leaves before a part that it owes has landed, the
// owner waits: the policy that assigned the part must assign it again. Where the scheme itself counts on parts (Ahead.Apart),
// none are added up.

// assembly is an iteration of which some parts have landed.
type assembly struct {
	sum  *pushed // the part that landed first: its slot has the sum, its header becomes that of the whole
	have []int32 // the parts that the sum contains
}

// acknowledge tells the sender that a push need not be sent again.
func acknowledge(m *wire.Header) core.Effect {
	return core.Effect{Kind: core.Send, To: m.Worker,
		Msg: wire.Header{Kind: wire.Ack, Worker: m.Worker, Owner: m.Owner, Shard: m.Shard, Iter: m.Iter, Part: m.Part}}
}

// isPart says whether a push is less than a whole iteration of its sender.
func isPart(m *wire.Header) bool { return m.Parts != 1 || m.Owner != m.Worker }

// makeParts makes room for iterations of at most so many parts; below 2 iterations have no parts.
func (sh *ownShard) makeParts(most int) {
	if most < 2 {
		return
	}
	sh.hasParts = true
	sh.slots.most += int32(len(sh.peers)) // for parts in flight while a push of the same worker is staged
}

// assemblyOf is the assembly that a part belongs to; nil if no part of its iteration has landed.
func (sh *ownShard) assemblyOf(m *wire.Header) *assembly {
	for _, a := range sh.peers[m.Owner].parts {
		if a.sum.head.Iter == m.Iter {
			return a
		}
	}
	return nil
}

// partName names a part among all pushes of a worker.
type partName struct {
	owner, part int32
	iter        int64
}

// offeredMax is how many pushes of a worker a shard remembers, to tell a header that arrives twice from a part that
// another worker has computed, too. Only the first is without pieces. A header repeats shortly after it arrived first.
const offeredMax = 64

// isRepeated says whether the same worker has sent the same header before.
func (sh *ownShard) isRepeated(m *wire.Header) bool {
	return slices.Contains(sh.peers[m.Worker].offered, partName{m.Owner, m.Part, m.Iter})
}

// noteOffered remembers the header of a push whose pieces are received.
func (sh *ownShard) noteOffered(m *wire.Header) {
	if !sh.hasParts {
		return
	}
	list := sh.peers[m.Worker].offered
	if len(list) == offeredMax {
		list = slices.Delete(list, 0, 1)
	}
	sh.peers[m.Worker].offered = append(list, partName{m.Owner, m.Part, m.Iter})
}

// hasPart says whether a part has landed already.
func (sh *ownShard) hasPart(m *wire.Header) bool {
	if m.Iter < sh.peers[m.Owner].reached {
		return true
	}
	a := sh.assemblyOf(m)
	return a != nil && slices.Contains(a.have, m.Part)
}

// partLanded adds a part to its iteration.
func (s *Server) partLanded(sh *ownShard, p *pushed, in core.Input, out []core.Effect) []core.Effect {
	m := p.head // a copy: the header of the whole may overwrite p.head
	owner, by := m.Owner, m.Worker
	a := sh.assemblyOf(&m)
	switch {
	case s.isGone(owner):
		sh.slots.freeSlot(p.slot)
		sh.stats.drop(scheme.Gone)
	case sh.hasPart(&m):
		sh.slots.freeSlot(p.slot)
		sh.stats.drop(scheme.Surplus)
	case a == nil:
		list := append(sh.peers[owner].parts, &assembly{sum: p, have: []int32{m.Part}})
		slices.SortFunc(list, func(a, b *assembly) int { return int(a.sum.head.Iter - b.sum.head.Iter) })
		sh.peers[owner].parts = list
	default:
		out = append(out, core.Effect{Kind: core.Merge, Shard: sh.id, Slot: p.slot, Dst: a.sum.slot, To: m.Worker, Iter: m.Iter})
		sh.slots.freeSlot(p.slot)
		of := &a.sum.head
		of.Samples, of.Correct, of.Loss, of.Version = of.Samples+m.Samples, of.Correct+m.Correct, of.Loss+m.Loss, min(of.Version, m.Version)
		of.Flags, of.Parts = of.Flags|m.Flags, max(of.Parts, m.Parts)
		if by == owner { // these two tell of the owner itself
			of.Clock, of.Blocked = m.Clock, m.Blocked
		}
		a.have = append(a.have, m.Part)
	}
	for len(sh.peers[owner].parts) > 0 && len(sh.peers[owner].parts[0].have) == int(sh.peers[owner].parts[0].sum.head.Parts) {
		whole := sh.peers[owner].parts[0].sum
		sh.peers[owner].parts = sh.peers[owner].parts[1:]
		whole.head.Worker, whole.head.Part, whole.head.Parts = owner, 0, 1
		out = s.pushLanded(sh, whole, in, out)
	}
	return s.handleDeferred(sh, by, s.tryPull(sh, by, out)) // the sender's own pull may have waited for this part
}

// forgetParts drops the landed parts of an owner that leaves.
func (sh *ownShard) forgetParts(owner int32) {
	for _, a := range sh.peers[owner].parts {
		sh.slots.freeSlot(a.sum.slot)
		sh.stats.drop(scheme.Gone)
	}
	sh.peers[owner].parts = nil
}

// checkParts verifies the order of the assemblies.
func (sh *ownShard) checkParts() error {
	for owner := range sh.peers {
		k := &sh.peers[owner]
		for i, a := range k.parts {
			h := &a.sum.head
			if h.Owner != int32(owner) || h.Iter < k.reached || i > 0 && h.Iter <= k.parts[i-1].sum.head.Iter ||
				h.Parts > 0 && len(a.have) > int(h.Parts) {
				return fmt.Errorf("core: shard %d assembles iteration %d of worker %d from parts %v of %d, and the worker has reached %d",
					sh.id, h.Iter, owner, a.have, h.Parts, k.reached)
			}
		}
	}
	return nil
}

// Parts says which parts of a worker's oldest iteration that is not complete have landed at a shard; "" if none has.
func (s *Server) Parts(shard, owner int32) string {
	sh := s.shards[shard]
	if len(sh.peers[owner].parts) == 0 {
		return ""
	}
	a := sh.peers[owner].parts[0]
	of := "an unknown number, which its own part tells"
	if n := a.sum.head.Parts; n > 0 {
		of = fmt.Sprint(n)
	}
	return fmt.Sprintf("parts %v of %s of its iteration %d have landed", slices.Sorted(slices.Values(a.have)), of, a.sum.head.Iter)
}
