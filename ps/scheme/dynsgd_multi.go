package scheme

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// byVersion is the multi-version form: the parameters are their start plus the sum over versions of the mean of the
// pushes made to that version. Versions here are those of DynSGD, a worker's next stop, not the commits of the shard.
//
// A push u of version k whose mean is m over d pushes so far:
//
//	pending = -m_k                        0 where it is the first
//	m_k     = d/(d+1) m_k + 1/(d+1) u
//	pending = pending + m_k               what the mean moved by: (u - m_k)/(d+1)
//	commit pending
type byVersion struct {
	plain
	works   []int64   // the version that each worker computes for; -1: none yet, or it is gone
	open    []version // ascending by number, without gaps; at least one, at most max
	max     int
	highest int64 // number of the last one open
}

// version is one that some worker computes for, or the newest.
type version struct {
	pushes int64 // in its mean
	slot   int64 // its accumulator is SlotMean + slot; no two have the same
}

func newByVersion(workers, most int) *byVersion {
	return &byVersion{works: slices.Repeat([]int64{-1}, workers), open: make([]version, 1), max: most}
}

// pushed takes a push into the mean of the version that its worker computed for. One whose worker was let in before
// this scheme began counts for the newest.
func (m *byVersion) pushed(g *gate, p push, _ int64, out []Decision) []Decision {
	k := m.works[p.worker]
	if k < 0 {
		k = m.highest
	}
	v := &m.open[int64(len(m.open))-1-(m.highest-k)]
	mean := SlotMean + Slot(v.slot)
	fold := Decision{Kind: Fold, Worker: p.worker, Shard: g.shard, Iter: p.iter, Dst: SlotPending, Src: mean, Weight: -1}
	share := 1 / float64(v.pushes+1)
	if v.pushes > 0 {
		out = append(out, fold)
	}
	fold.Dst, fold.Src, fold.Scale, fold.Weight = mean, SlotPush, float64(v.pushes)*share, share/float64(p.samples)
	out = append(out, fold)
	fold.Dst, fold.Src, fold.Scale, fold.Weight = SlotPending, mean, float64(min(v.pushes, 1)), 1
	v.pushes++
	return append(out, fold, Decision{Kind: Commit, Worker: p.worker, Shard: g.shard, Iter: p.iter,
		Dst: SlotParams, Src: SlotPending, Scale: g.weight, Weight: 1, Samples: p.samples})
}

// replied moves a worker on: to a new version if it is the first to leave the newest, else to the newest. Where that
// would be one more than the s+2 that the source names, the worker stays on the newest: while one that leads by s
// computes, another may go from s behind it to s ahead, and would open a version at every step.
func (m *byVersion) replied(w int32) {
	if m.works[w] == m.highest && len(m.open) < m.max {
		m.open = append(m.open, version{slot: m.freeSlot()})
		m.highest++
	}
	m.works[w] = m.highest
	m.retire()
}

func (m *byVersion) gone(w int32) {
	m.works[w] = -1
	m.retire()
}

// retire closes the versions that nobody computes for any more and that nobody will: all but the newest, up to the
// oldest that has a worker.
func (m *byVersion) retire() {
	oldest := m.highest
	for _, k := range m.works {
		if k >= 0 {
			oldest = min(oldest, k)
		}
	}
	m.open = slices.Delete(m.open, 0, len(m.open)-1-int(m.highest-oldest))
}

func (m *byVersion) freeSlot() int64 {
	for s := int64(0); ; s++ {
		if !slices.ContainsFunc(m.open, func(v version) bool { return v.slot == s }) {
			return s
		}
	}
}

func (m *byVersion) text(b *strings.Builder) {
	for i, v := range m.open {
		fmt.Fprintf(b, "%s%d:%d", []string{" means=", ","}[min(i, 1)], m.highest-int64(len(m.open)-1-i), v.pushes)
	}
}

func (m *byVersion) save(b []byte) []byte {
	put := func(x int64) { b = binary.LittleEndian.AppendUint64(b, uint64(x)) }
	put(m.highest)
	put(int64(len(m.open)))
	for _, v := range m.open {
		put(v.pushes)
		put(v.slot)
	}
	for _, k := range m.works {
		put(k)
	}
	return b
}

func (m *byVersion) load(d *decoder) mix {
	n := &byVersion{max: m.max, highest: d.natural(), works: make([]int64, len(m.works))}
	n.open = make([]version, d.between(1, min(int64(m.max), n.highest+1)))
	taken := make([]bool, m.max)
	for i := range n.open {
		n.open[i] = version{pushes: d.natural(), slot: d.between(0, int64(m.max)-1)}
		if taken[n.open[i].slot] {
			d.fail("two means in one accumulator")
		}
		taken[n.open[i].slot] = true
	}
	oldest := n.highest
	for w := range n.works {
		if n.works[w] = d.between(-1, n.highest); n.works[w] >= 0 {
			oldest = min(oldest, n.works[w])
		}
	}
	if oldest != n.highest-int64(len(n.open)-1) {
		d.fail("means of versions that nobody computes for")
		n.open, n.highest = make([]version, 1), 0
	}
	return n
}
