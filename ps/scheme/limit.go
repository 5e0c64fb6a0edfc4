package scheme

import (
	"strings"
	"time"
)

// limit is the pull condition of a gate: how far ahead of v a worker may start an iteration. What tells dssp,
// pssp and dsps from ssp is here; the gate does the rest.
type limit interface {
	// bound is what a delayed pull for iteration c waits for: it may leave once c - v <= bound.
	bound(c int64) int64
	// admit says whether a pull is answered on arrival. It is asked once per pull, so it may draw or spend.
	admit(g *gate, w int32, lead int64) bool
	// pushed and replied tell when a worker computes, and what it pushed.
	pushed(ev Event)
	replied(w int32, at time.Duration)
	// leaves tells that a worker is gone, forget that one comes of whom nothing is known.
	leaves(w int32)
	forget(w int32)
	// lasts says whether it has anything to save that is of use when the run goes on from a checkpoint.
	lasts() bool
	// moved tells that v has come from old to g.v. If it answers true, delayed pulls are judged anew, whatever
	// their keys.
	moved(g *gate, old int64) (rose bool)
	// text appends to the line of state, save to the saved state. load reads what save wrote into a new limit
	// and leaves the old one as it is.
	text(b *strings.Builder)
	save(b []byte) []byte
	load(d *decoder) limit
}

// fixed is the limit c - v <= s, with nothing to remember. Other limits embed it for what they do not need.
type fixed struct{ s int64 }

func (f fixed) bound(int64) int64                       { return f.s }
func (f fixed) admit(_ *gate, _ int32, lead int64) bool { return lead <= f.s }
func (f fixed) pushed(Event)                            {}
func (f fixed) replied(int32, time.Duration)            {}
func (f fixed) leaves(int32)                            {}
func (f fixed) forget(int32)                            {}
func (f fixed) lasts() bool                             { return false }
func (f fixed) moved(*gate, int64) (rose bool)          { return false }
func (f fixed) text(*strings.Builder)                   {}
func (f fixed) save(b []byte) []byte                    { return b }
func (f fixed) load(*decoder) limit                     { return f }

// fastest says whether nobody in the run has a larger clock than w.
func (g *gate) fastest(w int32) bool {
	for other, c := range g.clock {
		if !g.left[other] && c > g.clock[w] {
			return false
		}
	}
	return true
}

// slowest is the worker of the lowest rank whose clock is v. There is one while anybody is in the run.
func (g *gate) slowest() int32 {
	for w, c := range g.clock {
		if !g.left[w] && c == g.v {
			return int32(w)
		}
	}
	return NoWorker
}
