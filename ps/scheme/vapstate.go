package scheme

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// text shows the value of each worker's updates in transit, and the pushes that wait with the value of their update:
//
//	transit=w0:0.5,w2:0.25 held=w0@i3:0.5
func (l *transit) text(b *strings.Builder) {
	head := " transit="
	oldest := l.oldest()
	for w, list := range l.updates {
		sum, n := 0.0, 0
		for _, u := range list {
			if u.version > oldest {
				sum += u.norm
				n++
			}
		}
		if n > 0 {
			fmt.Fprintf(b, "%sw%d:%.4g", head, w, l.weight*sum)
			head = ","
		}
	}
	head = " held="
	for _, h := range l.held {
		fmt.Fprintf(b, "%sw%d@i%d:%.4g", head, h.worker, h.iter, l.weight*h.norm)
		head = ","
	}
}

// save writes 64-bit integers: the version, the workers that compute by ascending version, the updates of each worker,
// and the pushes that wait. Norms are the bits of a float64.
func (l *transit) save(b []byte) []byte {
	put := func(xs ...int64) {
		for _, x := range xs {
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		}
	}
	norm := func(x float64) int64 { return int64(math.Float64bits(x)) }
	n := int64(0)
	for _, v := range l.reads {
		if v != idle {
			n++
		}
	}
	put(l.version, n)
	ring := int32(len(l.reads))
	for w := l.next[ring]; w != ring; w = l.next[w] {
		put(int64(w), l.reads[w])
	}
	for _, list := range l.updates {
		put(int64(len(list)))
		for _, u := range list {
			put(u.version, norm(u.norm))
		}
	}
	put(int64(len(l.held)))
	for _, h := range l.held {
		put(int64(h.worker), h.iter, h.samples, norm(h.norm))
	}
	return b
}

func (l *transit) load(d *decoder) limit {
	workers := len(l.reads)
	n := &transit{fixed: l.fixed, keys: l.keys, weight: l.weight, reads: slices.Repeat([]int64{idle}, workers), next: make([]int32, workers+1),
		prev: make([]int32, workers+1), updates: make([][]update, workers), hasHeld: make([]bool, workers)}
	n.next[workers], n.prev[workers] = int32(workers), int32(workers)
	worker := func() int32 { return int32(d.between(0, int64(workers)-1)) }
	norm := func() float64 { return d.fraction(0, math.Inf(1)) }
	last := d.natural()
	for range d.count(2) {
		w := worker()
		if n.reads[w] != idle {
			d.fail("a worker that computes on two versions")
		}
		n.version = d.between(n.version, last) // in the order of their replies
		n.replied(w, 0)
	}
	n.version = last
	for w := range n.updates {
		before := int64(0)
		for range min(d.count(2), transitMax+1) {
			before = d.between(before+1, last)
			n.updates[w] = append(n.updates[w], update{before, norm()})
		}
		if len(n.updates[w]) > transitMax {
			d.fail("more updates in transit than a worker may have")
		}
	}
	for range d.count(4) {
		h := heldPush{push: push{worker: worker(), iter: d.natural(), samples: d.natural()}, norm: norm(), waited: true}
		if n.hasHeld[h.worker] {
			d.fail("two pushes of one worker that wait")
		}
		n.held, n.hasHeld[h.worker] = append(n.held, h), true
	}
	return n
}

// broken names the first invariant that a decoded state violates.
func (l *transit) broken(g *gate) string {
	for w, v := range l.reads {
		if v != idle && (g.left[w] || g.hasParked[w] || l.hasHeld[w]) {
			return "a worker that computes and has left, or waits"
		}
	}
	for _, h := range l.held {
		if h.samples == 0 || h.iter >= g.clock[h.worker] {
			return "a push that waits and should be committed, or that cannot have landed"
		}
	}
	return ""
}
