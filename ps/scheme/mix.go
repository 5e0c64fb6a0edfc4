package scheme

import "strings"

// mix is how a push becomes a version where each push is one. Most schemes commit it with a fixed weight; dynsgd
// weighs it by what else came meanwhile.
type mix interface {
	// pushed folds and commits a push that was computed on version seen.
	pushed(g *gate, p push, seen int64, out []Decision) []Decision
	// replied tells that a worker goes on with the current version; gone that it leaves or comes.
	replied(w int32)
	gone(w int32)
	// text appends to the line of state, save to the saved state. load reads what save wrote into a new mix and
	// leaves the old one as it is.
	text(b *strings.Builder)
	save(b []byte) []byte
	load(d *decoder) mix
}

// plain commits a push with the weight of the gate, and has nothing to remember. Other mixes embed it for what they
// do not need.
type plain struct{}

func (plain) pushed(g *gate, p push, _ int64, out []Decision) []Decision {
	return g.commit(p.worker, p.iter, g.weight, g.fold(p, out))
}
func (plain) replied(int32)         {}
func (plain) gone(int32)            {}
func (plain) text(*strings.Builder) {}
func (plain) save(b []byte) []byte  { return b }
func (plain) load(*decoder) mix     { return plain{} }
