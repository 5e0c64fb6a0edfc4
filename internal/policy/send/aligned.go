package send

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// aligned is priority, but while backward goes on, workers that differ by a little choose the same shards.
//
// A server answers a shard when all workers have sent it. With priority a worker whose link is busy picks the newest of the
// layers that became ready meanwhile. A worker that is one layer behind picks another one, and so on with every shard. Then most shards are
// complete only when all pushes are over, and the way back lies idle until then. Here a worker picks the roundest place among the
// places that became ready since: 8 rather than 10, and 10 rather than 9. Sets of places that nearly coincide mostly have the same roundest
// place, and a worker that missed it is back in step with the next one. As with priority, skipped layers spread over the whole
// net, so that the next forward meets them one by one. When the first layer is ready backward is over, and the first layers leave first.
//
// 4 workers and 1 server over 200 Mbit/s, 16 layers: 2.42 steps per second, with priority 2.01, with fifo 2.27.
type aligned struct {
	priority
	courses []course // indexed by destination
}

// course is what backward has handed for one destination.
type course struct {
	places []place // that were ever handed, in forward order
	over   bool    // backward has reached the first place
	left   []place // at most one: the first of those that left in this iteration
}

// place is a part of one layer that belongs to one shard.
type place struct{ layer, shard int32 }

func (p place) compare(q place) int {
	return cmp.Or(cmp.Compare(p.layer, q.layer), cmp.Compare(p.shard, q.shard))
}

func newAligned(o Options) Policy {
	return &aligned{priority: *newPriority(o).(*priority)}
}

func (a *aligned) Step(ev Event, out []int32) []int32 {
	if ev.Kind == Started {
		return out
	}
	l := a.note(ev)
	for int(ev.To) >= len(a.courses) {
		a.courses = append(a.courses, course{})
	}
	c := &a.courses[ev.To]
	if ev.Kind == Handed {
		c.handed(place{ev.Layer, ev.Shard})
	}
	for {
		at, n, ok := a.next(l)
		if ok && l.restOfShard == 0 && !c.over {
			at = c.roundest(l.waiting)
			n = l.waiting[at].bytes
		}
		if !ok || l.inFlight > 0 && l.inFlight+n > a.o.windowTo(ev.To) {
			return out
		}
		c.leaves(l.waiting[at].place())
		out = a.release(l, at, out)
	}
}

// handed notes that a place is ready. Backward goes from the last place to the first.
func (c *course) handed(p place) {
	at, known := slices.BinarySearchFunc(c.places, p, place.compare)
	if !known {
		c.places = slices.Insert(c.places, at, p)
	}
	if c.over && at > 0 { // the next iteration
		c.left = c.left[:0]
	}
	c.over = at == 0
}

func (c *course) leaves(p place) {
	if len(c.left) == 0 || p.compare(c.left[0]) < 0 {
		c.left = append(c.left[:0], p)
	}
}

// skipped says that the place itself or one before it has left in this iteration.
func (c *course) skipped(p place) bool { return len(c.left) > 0 && p.compare(c.left[0]) >= 0 }

func (w *waiting) place() place { return place{w.layer, w.shard} }

// roundest is the index of the waiting piece that leaves next while backward goes on: of those before all that left, the one whose
// place has the largest power of two as a factor, and of equals the last place. Without any it is the most urgent piece.
func (c *course) roundest(all []waiting) int {
	best, most := len(all)-1, -1
	for i := range all {
		p := all[i].place()
		if c.skipped(p) {
			continue
		}
		at, _ := slices.BinarySearchFunc(c.places, p, place.compare)
		zeros := bits.TrailingZeros(uint(at))
		if zeros > most || zeros == most && p.compare(all[best].place()) >= 0 { // of one place, the piece that was handed first
			best, most = i, zeros
		}
	}
	return best
}

func (a *aligned) String() string {
	return fmt.Sprintf("aligned held=%d flying=%dB window=%dB", a.held, a.inFlight(), a.o.windowTo(0))
}
