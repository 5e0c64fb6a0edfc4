package sim

import "math"

func (a *stay) before(b *stay) bool { return a.end < b.end || a.end == b.end && a.age < b.age }

// up and down restore the order of a heap around place k.
func up(heap []stay, k int) {
	at := heap[k]
	for k > 0 && at.before(&heap[(k-1)/2]) {
		heap[k] = heap[(k-1)/2]
		k = (k - 1) / 2
	}
	heap[k] = at
}

func down(heap []stay, k int) {
	at := heap[k]
	for {
		kid := 2*k + 1
		if kid+1 < len(heap) && heap[kid+1].before(&heap[kid]) {
			kid++
		}
		if kid >= len(heap) || !heap[kid].before(&at) {
			break
		}
		heap[k] = heap[kid]
		k = kid
	}
	heap[k] = at
}

// schedule moves a direction to its place in due, or removes it if it has no transfer at home.
func (n *network) schedule(dir int32) {
	d := &n.dirs[dir]
	if len(d.home) == 0 {
		if d.slot >= 0 {
			n.unschedule(d.slot)
			d.slot = -1
		}
		return
	}
	left := math.Max(0, d.home[0].end-d.clock)
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

// sooner orders directions by the time at which they are due, then by number.
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
