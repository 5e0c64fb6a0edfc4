package send

import "fmt"

// priority is P3's order: the piece of the first layer leaves first, and a slice that is leaving is not interrupted. In
// P3 a slice is both one message and what the server answers as one. Here a message is a piece, and what is answered as
// one is a shard. At most window bytes are in flight to one destination, or one piece that is larger. So a piece delays
// a more urgent one at most by the time for window bytes, and by the rest of its shard.
//
// P3 has one slice in flight, and slices of 40,000 parameters (its code) or about 50,000 (its best figure) [A][M]. With
// MPI a link idles between two sends unless the second is posted before the first is over. So the default window has
// room for two pieces, where nothing is known of the link.
type priority struct {
	lanes
	o Options
}

func newPriority(o Options) Policy {
	if o.Window == 0 && len(o.Windows) == 0 {
		o.Window = 2 * o.Largest
	}
	p := &priority{o: o}
	p.whole = true
	return p
}

// newPriorityReply lets the first layers interrupt everything else: a worker can use each layer as soon as it is there.
func newPriorityReply(o Options) Policy {
	p := newPriority(o).(*priority)
	p.whole = false
	return p
}

func (p *priority) Step(ev Event, out []int32) []int32 {
	if ev.Kind == Started {
		return out
	}
	l := p.note(ev)
	for {
		at, n, ok := p.next(l)
		if !ok || l.inFlight > 0 && l.inFlight+n > p.o.windowTo(ev.To) {
			return out
		}
		out = p.release(l, at, out)
	}
}

func (p *priority) String() string {
	return fmt.Sprintf("priority held=%d flying=%dB window=%dB", p.held, p.inFlight(), p.o.windowTo(0))
}
