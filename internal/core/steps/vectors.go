package steps

import (
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
)

// Vector names one of a worker's vectors, all of which have the arena's length. The package comment says what each holds.
type Vector uint8

const (
	Own Vector = iota
	Grads
	Global
	Base // only where a policy keeps it; else changes are measured from Global
	Outgoing
	vectorsN
)

// Vectors are the vectors of a worker, with the arithmetic on their elements lo to hi-1. The host writes Global and reads Outgoing: answers
// land in the one, pushes are sent from the other. Where the vectors are on a device with memory of its own, Arrived and Leave move
// elements between the two, and nothing else does.
type Vectors interface {
	// Arrived makes what the host wrote into Global readable. The host must not write it again before the next Left has returned.
	Arrived(lo, hi int)
	// Leave begins to make Outgoing readable for the host, and Left waits until it is.
	Leave(lo, hi int)
	Left()

	Copy(dst, src Vector, lo, hi int)
	// Scale is dst = by*src.
	Scale(dst, src Vector, lo, hi int, by float32)
	// Add is dst = dst + by*src.
	Add(dst, src Vector, lo, hi int, by float32)
	// Squares is the sum of the squares of v: optim.Squares.
	Squares(v Vector, lo, hi int) float64
	// Mix is own = global + keep*(own - global).
	Mix(lo, hi int, keep float32)
	// Change is dst = weight*(after - before). dst may be after.
	Change(dst, after, before Vector, lo, hi int, weight float32)
	// Compensate corrects Outgoing for the distance from Base to Global: optim.Compensate.
	Compensate(lo, hi int, strength, weight float32)

	// Begin begins a step, and Step moves a run of Own along Grads, as those of optim.Inner do.
	Begin()
	Step(q optim.Run, step, samples int64)

	// Read returns all of a vector: host memory, or a copy of what is on the device.
	Read(v Vector) []float32
	// Fault is the first value of Own that was not finite after a step; nil: all were, or nobody looks. looks: steps look.
	Fault() (f *optim.Fault, looks bool)

	// Err is why the device has failed; nil: it has not. All else does nothing from then on, and no vector is to be trusted.
	Err() error

	// Save returns the optimizer's state, then the named vectors, and the steps of the optimizer. Host memory is not copied, and may be
	// written in place; Restored makes such writes readable. Resume sets the steps.
	Save(named ...Vector) (vectors [][]float32, steps int64)
	Resume(steps int64)
	Restored()
}

// Host is Vectors in host memory.
type Host struct {
	*optim.Inner
	v      [vectorsN][]float32
	states func(at int) []int // Options.States
}

// OnHost makes them of memory of the arena's length. own must hold zeros.
func OnHost(o *Options, own, grads, global, push []float32) *Host {
	n := o.Plan.Arena
	if o.States != nil { // the state is in Own
		n = 0
	}
	h := &Host{Inner: optim.NewInner(n, o.Update), states: o.States,
		v: [vectorsN][]float32{Own: own, Grads: grads, Global: global, Outgoing: push}}
	if e, _ := local.All.Lookup(o.Spec.Policy); e.KeepsBase() {
		h.v[Base] = make([]float32, o.Plan.Arena)
	}
	return h
}

func (h *Host) Arrived(int, int) {}
func (h *Host) Leave(int, int)   {}
func (h *Host) Left()            {}
func (h *Host) Restored()        {}
func (h *Host) Err() error       { return nil }

func (h *Host) Copy(dst, src Vector, lo, hi int) { copy(h.v[dst][lo:hi], h.v[src][lo:hi]) }

func (h *Host) Scale(dst, src Vector, lo, hi int, by float32) {
	optim.Scaled(h.v[dst][lo:hi], h.v[src][lo:hi], by)
}

func (h *Host) Add(dst, src Vector, lo, hi int, by float32) {
	optim.AddDelta(h.v[dst][lo:hi], h.v[src][lo:hi], float64(by))
}

func (h *Host) Read(v Vector) []float32 { return h.v[v] }

func (h *Host) Fault() (f *optim.Fault, looks bool) { return h.Inner.Fault(), true }

func (h *Host) Squares(v Vector, lo, hi int) float64 { return optim.Squares(h.v[v][lo:hi]) }

func (h *Host) Mix(lo, hi int, keep float32) { optim.Mix(h.v[Own][lo:hi], h.v[Global][lo:hi], keep) }

func (h *Host) Change(dst, after, before Vector, lo, hi int, weight float32) {
	h.Inner.Change(h.v[dst][lo:hi], h.v[after][lo:hi], h.v[before][lo:hi], weight)
}

func (h *Host) Compensate(lo, hi int, strength, weight float32) {
	optim.Compensate(h.v[Outgoing][lo:hi], h.v[Global][lo:hi], h.v[Base][lo:hi], strength, weight)
}

func (h *Host) Step(q optim.Run, step, samples int64) {
	if h.states != nil {
		h.StepBeside(h.v[Own], h.v[Grads], q, h.states(q.Lo), step, samples)
		return
	}
	h.Inner.Step(h.v[Own], h.v[Grads], q, step, samples)
}

func (h *Host) Save(named ...Vector) (vectors [][]float32, steps int64) {
	state, steps := h.Inner.State()
	if h.states == nil {
		vectors = append(vectors, state...)
	}
	for _, name := range named {
		vectors = append(vectors, h.v[name])
	}
	return vectors, steps
}
