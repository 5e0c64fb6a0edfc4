package sim

import "math"

// ends says which of two transfers of one home ends first.
func (n *network) ends(a, b int32) bool {
	f, g := &n.flows.all[a], &n.flows.all[b]
	return f.end < g.end || f.end == g.end && f.age < g.age
}

func (n *network) up(heap []int32, k int) {
	for k > 0 {
		above := (k - 1) / 2
		if !n.ends(heap[k], heap[above]) {
			break
		}
		n.swap(heap, k, above)
		k = above
	}
}

func (n *network) down(heap []int32, k int) {
	for {
		kid := 2*k + 1
		if kid >= len(heap) {
			return
		}
		if kid+1 < len(heap) && n.ends(heap[kid+1], heap[kid]) {
			kid++
		}
		if !n.ends(heap[kid], heap[k]) {
			return
		}
		n.swap(heap, k, kid)
		k = kid
	}
}

func (n *network) swap(heap []int32, a, b int) {
	heap[a], heap[b] = heap[b], heap[a]
	n.flows.all[heap[a]].place = int32(a)
	n.flows.all[heap[b]].place = int32(b)
}

// schedule puts a direction to its place among those that are due.
func (n *network) schedule(dir int32) {
	d := &n.dirs[dir]
	if len(d.home) == 0 {
		if d.slot >= 0 {
			n.unschedule(d.slot)
			d.slot = -1
		}
		return
	}
	left := math.Max(0, n.flows.all[d.home[0]].end-d.clock)
	d.end = d.at + int64(math.Ceil(left/d.share))
	if d.slot < 0 {
		d.slot = len(n.due)
		n.due = append(n.due, dir)
	}
	n.sift(d.slot)
}

func (n *network) unschedule(k int) {
	last := len(n.due) - 1
	n.due[k] = n.due[last]
	n.dirs[n.due[k]].slot = k
	n.due = n.due[:last]
	if k < last {
		n.sift(k)
	}
}

// sooner orders directions by when they are due, then by number.
func (n *network) sooner(a, b int32) bool {
	x, y := n.dirs[a].end, n.dirs[b].end
	return x < y || x == y && a < b
}

// sift restores the order of due around place k.
func (n *network) sift(k int) {
	h := n.due
	for k > 0 && n.sooner(h[k], h[(k-1)/2]) {
		k = n.exchange(k, (k-1)/2)
	}
	for {
		kid := 2*k + 1
		if kid >= len(h) {
			return
		}
		if kid+1 < len(h) && n.sooner(h[kid+1], h[kid]) {
			kid++
		}
		if !n.sooner(h[kid], h[k]) {
			return
		}
		k = n.exchange(k, kid)
	}
}

// exchange swaps two places of due and returns the second.
func (n *network) exchange(a, b int) int {
	h := n.due
	h[a], h[b] = h[b], h[a]
	n.dirs[h[a]].slot = a
	n.dirs[h[b]].slot = b
	return b
}
