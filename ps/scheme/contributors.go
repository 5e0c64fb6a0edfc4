package scheme

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
)

// With contributors: step the shards of a rule agree on whose pushes make an iteration. One of them leads: it takes the
// first N_t pushes, as with contributors: shard, and says with Close which iterations are closed. The contributors are
// the workers of its folds since the previous Close. The other shards follow: they stage every push. They close an
// iteration when they were told its contributors (Closed) and have the pushes of all contributors that can still push.

// closing is an iteration that the leading shard has closed.
type closing struct {
	iter         int64
	count        int64   // contributors
	contributors []int32 // those told so far, in ascending order; complete before the iteration can close here
}

// closedEvent handles one contributor of an iteration. Or it hears that the iteration, and open ones before it, have
// none.
func (g *gate) closedEvent(ev Event, out []Decision) []Decision {
	n := len(g.closings)
	switch {
	case ev.Shard != g.shard || !g.follows:
		g.bug(ev, "it is not for this shard, or this shard does not follow another")
	case (ev.Worker == NoWorker) != (ev.Parts == 0) || ev.Worker < NoWorker || int(ev.Worker) >= len(g.clock):
		g.bug(ev, "no such contributor")
	case ev.Iter < g.v:
		return out // nobody was in the run here, and all pushes were given up
	case n > 0 && !g.closings[n-1].complete():
		if c := &g.closings[n-1]; c.iter != ev.Iter || c.count != int64(ev.Parts) {
			g.bug(ev, "the contributors of another iteration were not all told")
		}
	case n > 0 && g.closings[n-1].iter >= ev.Iter:
		g.bug(ev, "iterations close in order")
	default:
		g.closings = append(g.closings, closing{iter: ev.Iter, count: int64(ev.Parts)})
	}
	c := &g.closings[len(g.closings)-1]
	if ev.Worker != NoWorker {
		c.contributors = append(c.contributors, ev.Worker)
	}
	if !c.complete() {
		return out
	}
	return g.advance(out)
}

func (c *closing) complete() bool { return len(c.contributors) == int(c.count) }

// follow closes the iterations whose contributors are known and have pushed here.
func (g *gate) follow(out []Decision) []Decision {
	old := g.v
	for len(g.closings) > 0 && g.canClose(&g.closings[0]) {
		out = g.closeWith(&g.closings[0], out)
		g.closings = slices.Delete(g.closings, 0, 1)
	}
	if g.v > old {
		out = g.releaseParked(g.limit.vMoved(g, old), out)
	}
	return out
}

// canClose says whether the contributors are known and none of them can still push the iteration. A contributor that
// left, or came back further on, has contributed to the leading shard alone.
func (g *gate) canClose(c *closing) bool {
	return c.complete() && !slices.ContainsFunc(c.contributors, func(w int32) bool {
		return !g.left[w] && g.clock[w] <= c.iter
	})
}

// closeWith closes an iteration with the pushes of its contributors, and drops all other pushes of it and of earlier
// ones.
func (g *gate) closeWith(c *closing, out []Decision) []Decision {
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
		case p.iter == c.iter && slices.Contains(c.contributors, p.worker):
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
	return g.sayClosed(c.iter, g.commitIteration(c.iter, out))
}

// sayClosed says that iter is closed, unless that was the last decision.
func (g *gate) sayClosed(iter int64, out []Decision) []Decision {
	d := Decision{Kind: Close, Worker: NoWorker, Shard: g.shard, Iter: iter}
	if !g.agree || len(out) > 0 && out[len(out)-1] == d {
		return out
	}
	return append(out, d)
}

func (g *gate) textClosings(b *strings.Builder) {
	for i, c := range g.closings {
		fmt.Fprintf(b, "%s%d:%d", []string{" told=", ","}[min(i, 1)], c.iter, c.count)
	}
}

// saveClosings saves the closings of a shard that follows; other shards have none.
func (g *gate) saveClosings(b []byte) []byte {
	if !g.follows {
		return b
	}
	put := func(x int64) { b = binary.LittleEndian.AppendUint64(b, uint64(x)) }
	put(int64(len(g.closings)))
	for _, c := range g.closings {
		put(c.iter)
		put(c.count)
		put(int64(len(c.contributors)))
		for _, w := range c.contributors {
			put(int64(w))
		}
	}
	return b
}

func (g *gate) loadClosings(d *decoder) {
	g.closings = nil
	if !g.follows {
		return
	}
	at := g.v
	for range d.count(3) {
		c := closing{iter: d.between(at, maxClock), count: d.between(0, int64(len(g.clock)))}
		if n := len(g.closings); n > 0 && !g.closings[n-1].complete() {
			d.fail("a closing after one whose contributors are not complete")
		}
		for range min(d.count(1), int(c.count)) {
			c.contributors = append(c.contributors, int32(d.between(0, int64(len(g.clock))-1)))
		}
		at = c.iter + 1
		g.closings = append(g.closings, c)
	}
}
