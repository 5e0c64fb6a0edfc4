package send

import "fmt"

// priority is P3's order: the piece of the first layer leaves first, and a slice that is on its way is not interrupted. A
// slice is a message there and what the server answers as one; here these are a piece and a shard. So no more than window
// bytes are on their way to one destination, or one piece that is larger: by that much time at most, and by the rest of a
// shard that it is of, a piece delays one that is more urgent than it.
//
// P3 has one slice on its way, and slices of 40,000 parameters (its code) or about 50,000 (its best figure) [A][M]. With
// MPI a link idles between two sends unless the second is posted before the first is over: hence two.
type priority struct {
	lanes
	window int64
}

func newPriority(o Options) Policy {
	p := &priority{window: o.Window}
	p.whole = true
	if p.window == 0 {
		p.window = 2 * o.Largest
	}
	return p
}

// newPriorityReply lets the first layers interrupt all else: a worker can use each layer when it is there.
func newPriorityReply(o Options) Policy {
	p := newPriority(o).(*priority)
	p.whole = false
	return p
}

func (p *priority) Step(ev Event, out []int32) []int32 {
	if ev.Kind == Started {
		return out
	}
	l := p.take(ev)
	for {
		at, n, ok := p.next(l)
		if !ok || l.flying > 0 && l.flying+n > p.window {
			return out
		}
		out = p.let(l, at, out)
	}
}

func (p *priority) String() string {
	return fmt.Sprintf("priority held=%d flying=%dB window=%dB", p.held, p.flying(), p.window)
}
