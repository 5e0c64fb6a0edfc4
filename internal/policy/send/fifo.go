package send

import "fmt"

// fifo lets pieces leave in the order in which they become ready, last layers first. With a window, at most so many bytes are in flight to
// one destination, or one piece that is larger, so that pieces arrive one after the other and not all at the end: MPI shares a link among
// the messages that it has. Without a window it holds nothing back.
type fifo struct {
	o             Options
	holds         bool // some destination has a window
	byDestination []line
	held          int // pieces that wait, over all destinations
}

// line is what waits for one destination.
type line struct {
	waiting  []queued
	first    int // of waiting that has not left
	inFlight int64
	window   int64
}

type queued struct {
	piece int32
	bytes int64
}

func newFifo(o Options) Policy { return &fifo{o: o, holds: o.Window > 0 || len(o.Windows) > 0} }

// newFifoReply returns nil without a window: a reply then leaves whole, at once.
func newFifoReply(o Options) Policy {
	if f := newFifo(o).(*fifo); f.holds {
		return f
	}
	return nil
}

func (f *fifo) Step(ev Event, out []int32) []int32 {
	if !f.holds || ev.Kind == Started {
		if ev.Kind == Handed {
			out = append(out, ev.Piece)
		}
		return out
	}
	for int(ev.To) >= len(f.byDestination) {
		f.byDestination = append(f.byDestination, line{window: f.o.windowTo(int32(len(f.byDestination)))})
	}
	l := &f.byDestination[ev.To]
	switch ev.Kind {
	case Handed:
		l.waiting = append(l.waiting, queued{ev.Piece, ev.Bytes})
		f.held++
	case Sent:
		l.inFlight -= ev.Bytes
	case Forgotten:
		f.held -= len(l.waiting) - l.first
		l.waiting, l.first = l.waiting[:0], 0
	}
	for l.first < len(l.waiting) {
		next := l.waiting[l.first]
		if l.inFlight > 0 && l.inFlight+next.bytes > l.window {
			return out
		}
		l.first++
		l.inFlight += next.bytes
		f.held--
		out = append(out, next.piece)
	}
	l.waiting, l.first = l.waiting[:0], 0
	return out
}

func (f *fifo) Held() int { return f.held }

func (f *fifo) String() string {
	if !f.holds {
		return "fifo held=0"
	}
	var inFlight int64
	for i := range f.byDestination {
		inFlight += f.byDestination[i].inFlight
	}
	return fmt.Sprintf("fifo held=%d flying=%dB window=%dB", f.held, inFlight, f.o.windowTo(0))
}
