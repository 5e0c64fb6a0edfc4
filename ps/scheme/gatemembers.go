package scheme

import "slices"

// AsksElsewhere says whether this scheme asks workers whether they wait elsewhere.
func (g *gate) AsksElsewhere() bool { return g.rounds != nil }

func (g *gate) leave(w int32, out []Decision) []Decision {
	if g.left[w] {
		return out
	}
	g.left[w] = true
	g.live--
	g.limit.workerLeft(w)
	g.mix.forget(g, w)
	if g.clock[w] <= g.v {
		g.atMin--
	}
	if g.hasParked[w] {
		g.hasParked[w] = false
		g.parked = slices.DeleteFunc(g.parked, func(p pull) bool { return p.worker == w })
	}
	if g.live == 0 && g.commits == byCount && g.pendingPushes > 0 {
		out = g.commitPending(NoWorker, g.v, out)
	}
	return g.advance(g.mix.settle(g, out))
}

// join starts a worker at v, or at its own clock where its earlier pushes reach further: repeating those iterations
// would count them twice.
func (g *gate) join(w int32, clock int64, out []Decision) []Decision {
	if !g.left[w] {
		return out
	}
	g.left[w] = false
	g.live++
	g.limit.workerJoined(w)
	g.mix.forget(g, w)
	g.clock[w] = max(g.v, g.clock[w], clock)
	if g.clock[w] == g.v {
		g.atMin++
	}
	return g.advance(out)
}
