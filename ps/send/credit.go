package send

import "fmt"

// credit is ByteScheduler's order: as priority's, but a piece leaves while fewer than credit bytes are on their way, so
// that they may be more than credit by one piece. A small credit is strict priority, one piece after the other; a large
// one is the order of readiness. What is best depends on the network and the net, and is looked for while the run goes
// on (tune.go). The size of the pieces matters as much, and no parameter server can change it in a run [A]: it is
// shards.max_bytes, for one run after the other.
type credit struct {
	lanes
	credit int64
	tuner  *tuner // nil: the credit stays
}

func newFixedCredit(o Options) Policy { return &credit{credit: o.Credit} }

func newCredit(o Options) Policy {
	c := &credit{credit: o.Credit}
	c.whole = true
	if o.Tune.Points > 0 {
		c.tuner = newTuner(o)
	}
	return c
}

// Step never lets go anything of another destination, not even when the credit grows: what waits there has something on
// its way, and goes when that is Sent.
func (c *credit) Step(ev Event, out []int32) []int32 {
	if ev.Kind == Started {
		if c.tuner != nil {
			c.credit = c.tuner.started(ev.At)
		}
		return out
	}
	l := c.take(ev)
	for {
		at, _, ok := c.next(l)
		if !ok || l.flying >= c.credit {
			return out
		}
		out = c.let(l, at, out)
	}
}

func (c *credit) String() string {
	text := fmt.Sprintf("credit held=%d flying=%dB credit=%dB", c.held, c.flying(), c.credit)
	if c.tuner != nil {
		text += " " + c.tuner.String()
	}
	return text
}
