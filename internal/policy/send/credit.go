package send

import "fmt"

// credit is ByteScheduler's order. It is priority's order, but a piece leaves while fewer than credit bytes are in
// flight, so these may exceed the credit by one piece. A small credit is strict priority, one piece after the other. A
// large one is the order of readiness. The best value depends on the network and the net, and is searched for during
// the run (tune.go). The size of the pieces matters as much, but no parameter server can change it during a run [A]. It
// is shards.max_bytes, to be tried from run to run.
type credit struct {
	lanes
	credit int64
	tuner  *tuner // nil: the credit stays
}

func newFixedCredit(o Options) Policy {
	first, _ := o.CreditOf()
	return &credit{credit: first}
}

func newCredit(o Options) Policy {
	o.Credit, o.Tune = o.CreditOf()
	c := &credit{credit: o.Credit}
	c.whole = true
	if o.Tune.Points > 0 {
		c.tuner = newTuner(o)
	}
	return c
}

// Step releases pieces of the event's destination only, even when the credit grows. What waits for another destination
// has a piece in flight there, and leaves when that piece is Sent.
func (c *credit) Step(ev Event, out []int32) []int32 {
	if ev.Kind == Started {
		if c.tuner != nil {
			c.credit = c.tuner.started(ev.At)
		}
		return out
	}
	l := c.note(ev)
	for {
		at, _, ok := c.next(l)
		if !ok || l.inFlight >= c.credit {
			return out
		}
		out = c.release(l, at, out)
	}
}

func (c *credit) String() string {
	text := fmt.Sprintf("credit held=%d flying=%dB credit=%dB", c.held, c.inFlight(), c.credit)
	if c.tuner != nil {
		text += " " + c.tuner.String()
	}
	return text
}
