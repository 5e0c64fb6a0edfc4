package send

import "fmt"

// priority is P3's order: the piece of the first layer leaves first, and a piece that is on its way is not interrupted.
// So no more than window bytes are on their way to one destination, or one piece that is larger: by that much time at
// most a piece delays one that is more urgent than it.
//
// P3 has one slice on its way, and slices of 40,000 parameters (its code) or about 50,000 (its best figure) [A][M]. With
// MPI a link idles between two sends unless the second is posted before the first is over: hence two.
type priority struct {
	lanes
	window int64
}

func newPriority(o Options) Policy {
	window := o.Window
	if window == 0 {
		window = 2 * o.Largest
	}
	return &priority{window: window}
}

func (p *priority) Step(ev Event, out []int32) []int32 {
	if ev.Kind == Started {
		return out
	}
	l := p.take(ev)
	for {
		n, ok := l.next()
		if !ok || l.flying > 0 && l.flying+n > p.window {
			return out
		}
		out = p.let(l, out)
	}
}

func (p *priority) String() string {
	return fmt.Sprintf("priority held=%d flying=%dB window=%dB", p.held, p.flying(), p.window)
}
