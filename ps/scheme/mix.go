package scheme

import "strings"

// mix is how pushes become a version where each push is one, or so many are. Most schemes commit them with a fixed weight;
// dynsgd, and softsync if it is asked to, weigh each by what else came meanwhile.
type mix interface {
	// pushed folds and commits a push that was computed on version seen.
	pushed(g *gate, p push, seen int64, out []Decision) []Decision
	// weigh gives the weight in the pending sums of a push that was computed on version seen, where several are a version;
	// committed tells that they have become one, by this decision, and may change its scale and weight.
	weigh(g *gate, p push, seen int64) float64
	committed(g *gate, d *Decision)
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
func (plain) weigh(*gate, push, int64) float64 { return 1 }
func (plain) committed(*gate, *Decision)       {}
func (plain) replied(int32)                    {}
func (plain) gone(int32)                       {}
func (plain) text(*strings.Builder)            {}
func (plain) save(b []byte) []byte             { return b }
func (plain) load(*decoder) mix                { return plain{} }
