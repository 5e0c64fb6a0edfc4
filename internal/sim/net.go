package sim

import (
	"math"
	"slices"
)

// network moves transfers between hosts. Every host has one full-duplex card with two directions. Each direction shares its
// bandwidth equally among its transfers. A transfer is as fast as the smaller of its two shares. The unused part of a share, of a
// transfer that is slower at its other end, is not given to the other transfers.
//
// The home of a transfer is the direction that limits it. A direction has a clock that counts the bytes that a transfer at home
// there receives. So a change of its share changes no transfer, only the speed of its clock. A transfer changes its home when the
// order of its two shares changes. All starts and ends of one instant are settled together, so that a thousand equal transfers
// cost one settlement.
type network struct {
	bandwidth float64 // bytes per nanosecond of one direction; +Inf: no limit
	dirs      []direction
	flows     slab[flow]
	dirty     []int32 // directions whose number of transfers changed in this instant
	fresh     []int32 // transfers that started in this instant
	due       []int32 // heap of the directions with transfers at home, by the time at which the first transfer ends
}

// direction is one way through the card of a host: 2*host out of it, 2*host+1 into it.
type direction struct {
	n     int     // transfers through it
	share float64 // bytes per nanosecond of each transfer
	clock float64 // bytes that a transfer that has always been at home here would have received by time at
	at    int64
	home  []stay  // heap of the transfers that this direction limits, by end, then age
	away  []int32 // the other transfers through it, in no order
	peer  float64 // no transfer at home here has a share below this at its other end
	end   int64   // when the first transfer at home ends, rounded up; valid while there is one
	slot  int     // place in due, -1: not there
	dirty bool
}

// flow is one transfer.
type flow struct {
	from, to int32   // directions
	home     int32   // the one of the two that limits it
	apart    int32   // place in away of the other direction
	age      uint64  // orders transfers that end together
	bytes    float64 // its size, while it is fresh
	tag      int32   // the caller's name for it
}

// stay is a transfer at its home.
type stay struct {
	end  float64 // clock of the home at which it ends
	age  uint64
	flow int32
}

func newNetwork(hosts int, bytesPerS int64) *network {
	n := &network{bandwidth: math.Inf(1), dirs: make([]direction, 2*hosts)}
	if bytesPerS > 0 {
		n.bandwidth = float64(bytesPerS) / 1e9
	}
	for i := range n.dirs {
		n.dirs[i] = direction{share: n.bandwidth, peer: math.Inf(1), slot: -1}
	}
	return n
}

// start begins a transfer from one host to another. finished returns its tag.
func (n *network) start(from, to int, bytes int64, age uint64, tag int32) {
	f := n.flows.put(flow{from: int32(2 * from), to: int32(2*to + 1), age: age, bytes: float64(bytes), tag: tag})
	n.change(n.flows.all[f].from, 1)
	n.change(n.flows.all[f].to, 1)
	n.fresh = append(n.fresh, f)
}

func (n *network) change(dir int32, by int) {
	d := &n.dirs[dir]
	d.n += by
	if !d.dirty {
		d.dirty = true
		n.dirty = append(n.dirty, dir)
	}
}

func (n *network) other(f *flow, dir int32) int32 { return f.from + f.to - dir }

// advance brings the clock of a direction to now.
func (n *network) advance(d *direction, now int64) {
	if len(d.home) == 0 {
		d.clock = 0 // a small clock keeps more digits
	} else {
		d.clock += float64(float64(now-d.at) * d.share)
	}
	d.at = now
}

// settle makes the starts and ends of this instant take effect.
func (n *network) settle(now int64) {
	if len(n.dirty) == 0 {
		return
	}
	for _, i := range n.dirty {
		n.advance(&n.dirs[i], now)
	}
	slower := n.dirty[:0:0]
	for _, i := range n.dirty {
		d := &n.dirs[i]
		share := n.bandwidth / float64(max(1, d.n))
		if share < d.share {
			slower = append(slower, i)
		}
		d.share = share
		d.dirty = false
	}
	touched := n.dirty
	n.dirty = nil
	for _, i := range slower { // it may now limit transfers that others limited
		touched = n.attract(i, now, touched)
	}
	for _, i := range touched[:len(touched):len(touched)] { // others may now limit transfers that it limited
		touched = n.repel(i, now, touched)
	}
	for _, i := range n.fresh {
		f := &n.flows.all[i]
		home := f.to
		if n.dirs[f.from].share < n.dirs[f.to].share {
			home = f.from
		}
		n.settleAt(i, home, n.dirs[home].clock+f.bytes)
	}
	n.fresh = n.fresh[:0]
	for _, i := range touched {
		n.schedule(i)
	}
	n.dirty = touched[:0]
}

// attract moves to dir the homes of its transfers whose other end now has a larger share. It appends the changed directions to
// touched.
func (n *network) attract(dir int32, now int64, touched []int32) []int32 {
	d := &n.dirs[dir]
	for k := 0; k < len(d.away); {
		i := d.away[k]
		f := &n.flows.all[i]
		h := &n.dirs[f.home]
		if h.share <= d.share {
			h.peer = math.Min(h.peer, d.share)
			k++
			continue
		}
		touched = append(touched, f.home)
		n.move(i, dir, now) // takes i out of d.away
	}
	return touched
}

// repel moves away the homes of the transfers at home at dir whose other end now has a smaller share. It appends the changed
// directions to touched.
func (n *network) repel(dir int32, now int64, touched []int32) []int32 {
	d := &n.dirs[dir]
	if d.share <= d.peer {
		return touched
	}
	d.peer = math.Inf(1)
	var leave []int32
	for _, at := range d.home {
		f := &n.flows.all[at.flow]
		if share := n.dirs[n.other(f, dir)].share; share < d.share {
			leave = append(leave, at.flow)
		} else {
			d.peer = math.Min(d.peer, share)
		}
	}
	for _, i := range leave {
		to := n.other(&n.flows.all[i], dir)
		touched = append(touched, to)
		n.move(i, to, now)
	}
	return touched
}

// move gives a transfer another home. It searches the old home, because moves are rare.
func (n *network) move(i, to int32, now int64) {
	h, d := &n.dirs[n.flows.all[i].home], &n.dirs[to]
	n.advance(h, now)
	n.advance(d, now)
	k := slices.IndexFunc(h.home, func(at stay) bool { return at.flow == i })
	left := math.Max(0, h.home[k].end-h.clock)
	n.leave(h, k)
	n.settleAt(i, to, d.clock+left)
}

// settleAt adds a transfer to the heap of its home, and to away of its other direction.
func (n *network) settleAt(i, home int32, end float64) {
	f := &n.flows.all[i]
	d, o := &n.dirs[home], &n.dirs[n.other(f, home)]
	f.home = home
	d.home = append(d.home, stay{end: end, age: f.age, flow: i})
	up(d.home, len(d.home)-1)
	d.peer = math.Min(d.peer, o.share)
	f.apart = int32(len(o.away))
	o.away = append(o.away, i)
}

// leave removes the transfer at place k of its home d from both of its directions.
func (n *network) leave(d *direction, k int) {
	f := &n.flows.all[d.home[k].flow]
	o := &n.dirs[n.other(f, f.home)]
	last := len(o.away) - 1
	o.away[f.apart] = o.away[last]
	n.flows.all[o.away[f.apart]].apart = f.apart
	o.away = o.away[:last]
	last = len(d.home) - 1
	d.home[k] = d.home[last]
	d.home = d.home[:last]
	if k < last {
		down(d.home, k)
		up(d.home, k)
	}
	if last == 0 {
		d.peer = math.Inf(1)
	}
}

// next is when the next transfer ends; ok is false if there is none.
func (n *network) next() (at int64, ok bool) {
	if len(n.due) == 0 {
		return 0, false
	}
	return n.dirs[n.due[0]].end, true
}

// finished ends the transfers that are over at now, which is the time that next returned. It calls done with the tag of each.
func (n *network) finished(now int64, done func(tag int32)) {
	for len(n.due) > 0 && n.dirs[n.due[0]].end <= now {
		dir := n.due[0]
		d := &n.dirs[dir]
		n.advance(d, now)
		over := d.clock + d.share // end is rounded up, by at most one nanosecond
		for first := true; len(d.home) > 0 && (first || d.home[0].end <= over); first = false {
			i := d.home[0].flow
			n.leave(d, 0)
			f := n.flows.take(i)
			n.change(f.from, -1)
			n.change(f.to, -1)
			done(f.tag)
		}
		n.schedule(dir)
	}
}

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
