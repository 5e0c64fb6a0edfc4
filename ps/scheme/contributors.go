package scheme

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// With contributors: step the shards of a rule agree on whose pushes make an iteration. One of them, which leads, takes
// the first N_t as with contributors: shard, and says with Close which iterations are closed; the contributors are those
// of its folds since the Close before. The others follow: they stage every push, and close an iteration when they have
// been told its contributors (Closed) and have a push of each that can still come.

// closing is an iteration that the leading shard has closed.
type closing struct {
	iter  int64
	parts int64   // contributors
	who   []int32 // those told so far, ascending as they come; all of them before the iteration can close here
}

// closedEvent takes one contributor of an iteration, or hears that it has none, and those before it neither.
func (g *gate) closedEvent(ev Event, out []Decision) []Decision {
	n := len(g.told)
	switch {
	case ev.Shard != g.shard || !g.follows:
		g.bug(ev, "it is not for this shard, or this shard does not follow another")
	case (ev.Worker == NoWorker) != (ev.Parts == 0) || ev.Worker < NoWorker || int(ev.Worker) >= len(g.clock):
		g.bug(ev, "no such contributor")
	case ev.Iter < g.v:
		return out // nobody was left here, and all that had been pushed was given up
	case n > 0 && !g.told[n-1].complete():
		if c := &g.told[n-1]; c.iter != ev.Iter || c.parts != int64(ev.Parts) {
			g.bug(ev, "the contributors of another iteration are not told to the end")
		}
	case n > 0 && g.told[n-1].iter >= ev.Iter:
		g.bug(ev, "iterations close in order")
	default:
		g.told = append(g.told, closing{iter: ev.Iter, parts: int64(ev.Parts)})
	}
	c := &g.told[len(g.told)-1]
	if ev.Worker != NoWorker {
		c.who = append(c.who, ev.Worker)
	}
	if !c.complete() {
		return out
	}
	return g.advance(out)
}

func (c *closing) complete() bool { return len(c.who) == int(c.parts) }

// follow closes the iterations whose contributors are known and here.
func (g *gate) follow(out []Decision) []Decision {
	old := g.v
	for len(g.told) > 0 && g.ready(&g.told[0]) {
		out = g.closeAs(&g.told[0], out)
		g.told = slices.Delete(g.told, 0, 1)
	}
	if g.v > old {
		out = g.releaseParked(g.limit.moved(g, old), out)
	}
	return out
}

// ready says whether nobody who contributes can still push here. One that has left, or that came back and went on
// further, contributed to the leading shard alone.
func (g *gate) ready(c *closing) bool {
	return c.complete() && !slices.ContainsFunc(c.who, func(w int32) bool {
		return !g.left[w] && g.clock[w] <= c.iter
	})
}

// closeAs closes an iteration with the pushes of its contributors, and drops all others that are of it or before it.
func (g *gate) closeAs(c *closing, out []Decision) []Decision {
	if g.commits == byRank {
		slices.SortFunc(g.staged, func(a, b push) int {
			return cmp.Or(cmp.Compare(a.iter, b.iter), cmp.Compare(a.worker, b.worker))
		})
	}
	kept := g.staged[:0]
	for _, p := range g.staged {
		switch {
		case p.iter > c.iter:
			kept = append(kept, p)
		case p.iter == c.iter && slices.Contains(c.who, p.worker):
			out = g.fold(p, out)
		default:
			d := Decision{Kind: Drop, Worker: p.worker, Shard: g.shard, Iter: p.iter, Src: SlotPush, Reason: Surplus}
			if p.iter < c.iter {
				d.Reason = Late
			}
			out = append(out, d)
		}
	}
	g.staged = kept
	g.v = c.iter + 1
	return g.closes(c.iter, g.commitIteration(c.iter, out))
}

// closes says that iter is closed, where that was not the last thing said.
func (g *gate) closes(iter int64, out []Decision) []Decision {
	d := Decision{Kind: Close, Worker: NoWorker, Shard: g.shard, Iter: iter}
	if !g.agree || len(out) > 0 && out[len(out)-1] == d {
		return out
	}
	return append(out, d)
}

func (g *gate) textTold(b *strings.Builder) {
	for i, c := range g.told {
		fmt.Fprintf(b, "%s%d:%d", []string{" told=", ","}[min(i, 1)], c.iter, c.parts)
	}
}

// saveTold saves what a shard that follows was told; a shard that does not has nothing to save.
func (g *gate) saveTold(b []byte) []byte {
	if !g.follows {
		return b
	}
	put := func(x int64) { b = binary.LittleEndian.AppendUint64(b, uint64(x)) }
	put(int64(len(g.told)))
	for _, c := range g.told {
		put(c.iter)
		put(c.parts)
		put(int64(len(c.who)))
		for _, w := range c.who {
			put(int64(w))
		}
	}
	return b
}

func (g *gate) loadTold(d *decoder) {
	g.told = nil
	if !g.follows {
		return
	}
	at := g.v
	for range d.count(3) {
		c := closing{iter: d.between(at, maxClock), parts: d.between(0, int64(len(g.clock)))}
		if n := len(g.told); n > 0 && !g.told[n-1].complete() {
			d.fail("an iteration that was told after one that was not told to the end")
		}
		for range min(d.count(1), int(c.parts)) {
			c.who = append(c.who, int32(d.between(0, int64(len(g.clock))-1)))
		}
		at = c.iter + 1
		g.told = append(g.told, c)
	}
}
