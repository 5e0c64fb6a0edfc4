package scheme

import "strings"

// mix says how pushes become a version where one push, or a number of pushes, makes a version. Most schemes commit them
// with a fixed weight. dynsgd, and softsync with lambda0, weigh each push by what was committed meanwhile.
type mix interface {
	// pushed folds and commits a push that was computed on version seen.
	pushed(g *gate, p push, seen int64, out []Decision) []Decision
	// weigh is the weight in the pending sums of a push that was computed on version seen, where several pushes make a
	// version. committed tells that they have become one, by this decision; it may change the decision's scale and
	// weight.
	weigh(g *gate, p push, seen int64) float64
	committed(g *gate, d *Decision)
	// stale says whether a push is dropped for the version that it was computed on.
	stale(g *gate, ev Event) bool
	// replied tells that a worker continues with the current version; forget that a worker has left or joined, as
	// g.left says.
	replied(w int32)
	forget(g *gate, w int32)
	// settle commits what can be committed now that workers have left.
	settle(g *gate, out []Decision) []Decision
	// text appends to the line of state, save to the saved state. load returns a new mix with the state that save
	// wrote, and leaves this one unchanged.
	text(b *strings.Builder)
	save(b []byte) []byte
	load(d *decoder) mix
}

// plain commits a push with the weight of the gate, and has no state. Other mixes embed it for the methods that they do
// not need.
type plain struct{}

func (plain) pushed(g *gate, p push, _ int64, out []Decision) []Decision {
	return g.commitPushes(p.worker, p.iter, g.weight, g.fold(p, out))
}
func (plain) weigh(*gate, push, int64) float64 { return 1 }
func (plain) committed(*gate, *Decision)       {}
func (plain) replied(int32)                    {}
func (plain) stale(*gate, Event) bool          { return false }
func (plain) forget(*gate, int32)              {}
func (plain) settle(_ *gate, out []Decision) []Decision {
	return out
}
func (plain) text(*strings.Builder) {}
func (plain) save(b []byte) []byte  { return b }
func (plain) load(*decoder) mix     { return plain{} }
