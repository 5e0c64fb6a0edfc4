package scheme

import (
	"strings"
	"time"
)

// limit is the pull condition of a gate: how far ahead of v a worker may start an iteration. It is all that
// distinguishes dssp, pssp and dsps from ssp.
type limit interface {
	// bound is the limit for a delayed pull for iteration c: the pull may be answered once c - v <= bound.
	bound(c int64) int64
	// admit says whether a pull is answered on arrival. It is called once per pull, so it may toss a coin or use up a
	// grant.
	admit(g *gate, w int32, lead int64) bool
	// pushed and replied tell the limit when a worker computes, and what it pushed.
	pushed(ev Event)
	replied(w int32, at time.Duration)
	// workerLeft tells that a worker has left; workerJoined that a worker has come, about which nothing is known.
	workerLeft(w int32)
	workerJoined(w int32)
	// hasMemory says whether the limit has a memory that a resumed run can use.
	hasMemory() bool
	// vMoved tells that v has moved from old to g.v. If it returns true, all delayed pulls are judged anew, whatever
	// their keys.
	vMoved(g *gate, old int64) (rose bool)
	// text appends to the line of state, save to the saved state. load returns a new limit with the state that save
	// wrote, and leaves this one unchanged.
	text(b *strings.Builder)
	save(b []byte) []byte
	load(d *decoder) limit
}

// fixed is the limit c - v <= s, without state. Other limits embed it for the methods that they do not need.
type fixed struct{ s int64 }

func (f fixed) bound(int64) int64                       { return f.s }
func (f fixed) admit(_ *gate, _ int32, lead int64) bool { return lead <= f.s }
func (f fixed) pushed(Event)                            {}
func (f fixed) replied(int32, time.Duration)            {}
func (f fixed) workerLeft(int32)                        {}
func (f fixed) workerJoined(int32)                      {}
func (f fixed) hasMemory() bool                         { return false }
func (f fixed) vMoved(*gate, int64) (rose bool)         { return false }
func (f fixed) text(*strings.Builder)                   {}
func (f fixed) save(b []byte) []byte                    { return b }
func (f fixed) load(*decoder) limit                     { return f }

// fastest says whether no worker in the run has a larger clock than w.
func (g *gate) fastest(w int32) bool {
	for other, c := range g.clock {
		if !g.left[other] && c > g.clock[w] {
			return false
		}
	}
	return true
}

// slowest is the worker of the lowest rank whose clock is v, or NoWorker when nobody is in the run.
func (g *gate) slowest() int32 {
	for w, c := range g.clock {
		if !g.left[w] && c == g.v {
			return int32(w)
		}
	}
	return NoWorker
}
