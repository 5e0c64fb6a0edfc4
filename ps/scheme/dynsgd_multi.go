package scheme

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// byVersion is the multi-version form. The parameters are their initial value plus the sum, over versions, of the mean
// of the pushes made to that version. These are DynSGD's versions, a worker's next stop, not the commits of the shard.
//
// A push u of version k with mean m_k over d pushes so far:
//
//	pending = -m_k                        0 where it is the first
//	m_k     = d/(d+1) m_k + 1/(d+1) u
//	pending = pending + m_k               what the mean moved by: (u - m_k)/(d+1)
//	commit pending
type byVersion struct {
	plain
	workerVersion []int64   // per worker: the version that it computes for; -1: none yet, or it has left
	versions      []version // those that are open, ascending by number without gaps; at least one, at most max
	max           int
	newest        int64 // number of the last open version
}

// version is a version that some worker computes for, or the newest.
type version struct {
	pushes int64 // pushes in its mean
	slot   int64 // its accumulator is SlotMean + slot; slots are distinct
}

func newByVersion(workers, most int) *byVersion {
	return &byVersion{workerVersion: slices.Repeat([]int64{-1}, workers), versions: make([]version, 1), max: most}
}

// pushed adds a push to the mean of the version that its worker computed for. A push of a worker that was admitted
// before this scheme began counts for the newest version.
func (m *byVersion) pushed(g *gate, p push, _ int64, out []Decision) []Decision {
	k := m.workerVersion[p.worker]
	if k < 0 {
		k = m.newest
	}
	v := &m.versions[int64(len(m.versions))-1-(m.newest-k)]
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

// replied moves a worker on: to a new version if it is the first to leave the newest, else to the newest. The source
// names s+2 versions at most; where a new version would exceed that, the worker stays on the newest. While a worker
// that leads by s computes, another may go from s behind it to s ahead, and would open a version at every step.
func (m *byVersion) replied(w int32) {
	if m.workerVersion[w] == m.newest && len(m.versions) < m.max {
		m.versions = append(m.versions, version{slot: m.freeSlot()})
		m.newest++
	}
	m.workerVersion[w] = m.newest
	m.retire()
}

func (m *byVersion) forget(_ *gate, w int32) {
	m.workerVersion[w] = -1
	m.retire()
}

// retire closes the versions that no worker computes for now or later: all before the oldest that has a worker.
func (m *byVersion) retire() {
	oldest := m.newest
	for _, k := range m.workerVersion {
		if k >= 0 {
			oldest = min(oldest, k)
		}
	}
	m.versions = slices.Delete(m.versions, 0, len(m.versions)-1-int(m.newest-oldest))
}

func (m *byVersion) freeSlot() int64 {
	for s := int64(0); ; s++ {
		if !slices.ContainsFunc(m.versions, func(v version) bool { return v.slot == s }) {
			return s
		}
	}
}

func (m *byVersion) text(b *strings.Builder) {
	for i, v := range m.versions {
		fmt.Fprintf(b, "%s%d:%d", []string{" means=", ","}[min(i, 1)], m.newest-int64(len(m.versions)-1-i), v.pushes)
	}
}

func (m *byVersion) save(b []byte) []byte {
	put := func(x int64) { b = binary.LittleEndian.AppendUint64(b, uint64(x)) }
	put(m.newest)
	put(int64(len(m.versions)))
	for _, v := range m.versions {
		put(v.pushes)
		put(v.slot)
	}
	for _, k := range m.workerVersion {
		put(k)
	}
	return b
}

func (m *byVersion) load(d *decoder) mix {
	n := &byVersion{max: m.max, newest: d.natural(), workerVersion: make([]int64, len(m.workerVersion))}
	n.versions = make([]version, d.between(1, min(int64(m.max), n.newest+1)))
	taken := make([]bool, m.max)
	for i := range n.versions {
		n.versions[i] = version{pushes: d.natural(), slot: d.between(0, int64(m.max)-1)}
		if taken[n.versions[i].slot] {
			d.fail("two means in one accumulator")
		}
		taken[n.versions[i].slot] = true
	}
	oldest := n.newest
	for w := range n.workerVersion {
		if n.workerVersion[w] = d.between(-1, n.newest); n.workerVersion[w] >= 0 {
			oldest = min(oldest, n.workerVersion[w])
		}
	}
	if oldest != n.newest-int64(len(n.versions)-1) {
		d.fail("means of versions that no worker computes for")
		n.versions, n.newest = make([]version, 1), 0
	}
	return n
}
