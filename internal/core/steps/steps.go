// Package steps does the arithmetic of a worker that takes steps of its own between two exchanges (internal/policy/local): its own
// parameters, the steps of train.optimizer on them, what it takes over from its servers, and what it pushes. The runtime and the
// simulator use it, so they train alike, to the bit.
//
//	own       the parameters that the model reads and that steps change
//	grads     what backward of a step writes
//	global    where the servers' answers land
//	base      the servers' parameters that the worker continued from; global itself, where nothing lands while it takes steps
//	outgoing  the push: what it changed since: samples * (own - base), or own - base where pushes count equally
//
// Statistics are pushed as values, weighted by samples, and never take part in steps. The vectors lie in host memory, or stay on a device
// with memory of its own between two exchanges (Vectors).
package steps

import (
	"fmt"
	"math"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/local"
	"fluentps/internal/policy/optim"
)

// Options are what a Worker is made from.
type Options struct {
	Spec      local.Spec
	Env       local.Env
	Plan      *shard.Plan
	Layers    [][]int32                        // by layer: its pieces
	Runs      func(p *shard.Piece) []optim.Run // of a piece that steps change; none for a statistic
	Update    optim.Update                     // train.optimizer
	Batch     int64                            // samples of a step over all workers
	Budget    int64                            // samples over all workers; 0: no limit
	Fragments *shard.Fragments                 // nil: all shards are exchanged in every round
	Vectors   Vectors                          // nil: only steps are counted
	Clip      optim.Clip                       // of the gradients of a step
	// States is where the state of the optimizer begins that belongs to an element of a trained parameter, by vector of
	// the rule, in elements of the arena: it is averaged, as parameters are. nil: each worker keeps its own.
	States func(at int) []int
	// IsState says whether a parameter of the plan is such a state.
	IsState func(param int) bool
}

// Worker is the state of one worker. It belongs to one goroutine at a time.
type Worker struct {
	o      Options
	entry  local.Entry
	policy local.Policy
	vec    Vectors

	clip  *Clip         // nil: gradients are not clipped
	base  Vector        // what its changes are measured from
	runs  [][]optim.Run // by layer
	stats [][]span      // by layer: running statistics of the model
	state [][]span      // by layer: states of the optimizer that are averaged
	taken []bool        // by layer: it was taken over in this exchange

	count  Count
	round  local.Round
	open   bool  // the round has begun
	voted  int64 // the step of the round on which all have decided; 0: none
	ballot bool  // the worker votes for an exchange after the last step
	// What the lead shard's server told last, and the step count of the push that it answers.
	told     wire.Progress
	answered int64
	untold   bool // the run has resumed, and nothing was told since
}

type span struct{ lo, hi int }

// Count is what a Worker saves beside its vectors.
type Count struct {
	Step int64 `json:"step"` // steps taken
	Done int64 `json:"done"` // of the open round
	// Round and Ahead are those of the open round; Round 0: none is open.
	Round   int64     `json:"round,omitempty"`
	Ahead   int64     `json:"ahead,omitempty"`
	Open    bool      `json:"open,omitempty"`
	Merged  bool      `json:"merged,omitempty"` // the answers to the last push were taken over
	Began   bool      `json:"began,omitempty"`  // the servers' parameters were taken over once
	Pushed  int64     `json:"pushed"`           // steps of the last push that the lead shard took part in
	Last    int64     `json:"last"`             // the exchange that was pushed last; -1: none
	Since   []Sums    `json:"since"`            // by fragment: what was computed since its last push
	Policy  []float64 `json:"policy,omitempty"` // the memory of the policy
	Samples int64     `json:"samples"`          // of steps that no push has reported; the worker's own count
}

// Sums are what pushes report of steps.
type Sums struct {
	Samples int64   `json:"samples"`
	Correct int64   `json:"correct"`
	Loss    float64 `json:"loss"`
}

// New makes a worker at its first step.
func New(o Options) (*Worker, error) {
	entry, _ := local.All.Lookup(o.Spec.Policy)
	policy, err := local.New(o.Spec, o.Env)
	if err != nil {
		return nil, err
	}
	w := &Worker{o: o, entry: entry, policy: policy, vec: o.Vectors, base: baseOf(&entry), told: wire.Progress{Loss: math.NaN(), Share: 1}}
	w.count.Last, w.count.Since = -1, make([]Sums, w.fragments())
	if o.Vectors == nil {
		return w, nil
	}
	w.clip = NewClip(o.Clip, o.Plan)
	w.runs, w.stats, w.state, w.taken = make([][]optim.Run, len(o.Layers)), make([][]span, len(o.Layers)),
		make([][]span, len(o.Layers)), make([]bool, len(o.Layers))
	for layer, pieces := range o.Layers {
		for _, id := range pieces {
			p := &o.Plan.Pieces[id]
			if o.Plan.Shards[p.Shard].Stat {
				w.addStat(layer, p)
			}
			w.runs[layer] = append(w.runs[layer], o.Runs(p)...)
		}
	}
	return w, nil
}

// addStat notes a piece of a shard that is averaged.
func (w *Worker) addStat(layer int, p *shard.Piece) {
	for _, g := range w.o.Plan.Shards[p.Shard].Segs {
		s := span{max(p.Lo, g.At), min(p.Hi, g.At+g.Hi-g.Lo)}
		switch {
		case s.lo >= s.hi:
		case w.o.IsState != nil && w.o.IsState(g.Param):
			w.state[layer] = append(w.state[layer], s)
		default:
			w.stats[layer] = append(w.stats[layer], s)
		}
	}
}

// baseOf is the vector that changes are measured from.
func baseOf(e *local.Entry) Vector {
	if e.KeepsBase() {
		return Base
	}
	return Global
}

func (w *Worker) fragments() int64 {
	if w.o.Fragments == nil {
		return 1
	}
	return w.o.Fragments.N()
}

// VectorCount is how many vectors of the arena's length a Worker has beside global and outgoing: own, grads and base
// are in it, and saved those that a checkpoint holds.
func VectorCount(s *local.Spec, u optim.Update) (all, saved int) {
	e, _ := local.All.Lookup(s.Policy)
	all, saved = 2+u.Rule.State(), u.Rule.State()
	if s.AveragesState() { // the state is among the parameters
		all, saved = 2, 0
	}
	if e.Runs() {
		saved++ // its own parameters
	}
	if e.KeepsBase() {
		all, saved = all+1, saved+1
	}
	return all, saved
}

// Save returns what a checkpoint holds; the vectors are not copied. steps counts those of the optimizer.
func (w *Worker) Save() (c Count, steps int64, vectors [][]float32) {
	c = w.count
	c.Since = append([]Sums(nil), c.Since...)
	c.Policy = w.policy.Memory()
	c.Round, c.Ahead, c.Open = 0, 0, false
	if w.open {
		c.Round, c.Ahead, c.Open = w.round.Steps, w.round.Ahead, w.round.Open
	}
	var named []Vector
	if w.entry.Runs() {
		named = append(named, Own)
	}
	if w.entry.KeepsBase() {
		named = append(named, Base)
	}
	vectors, steps = w.vec.Save(named...)
	return c, steps, vectors
}

// Resume restores what Save returned, apart from the vectors: the caller writes those of Save in place, and then calls Restored.
func (w *Worker) Resume(c *Count, steps int64) error {
	if c.Since != nil && int64(len(c.Since)) != w.fragments() {
		return fmt.Errorf("steps: the checkpoint is of a run that exchanges its parameters in %d fragments, and this one "+
			"does in %d", len(c.Since), w.fragments())
	}
	if c.Step < 0 || c.Done < 0 || c.Round < 0 || c.Ahead < 0 || c.Ahead > c.Round || c.Pushed < 0 || c.Pushed > c.Step {
		return fmt.Errorf("steps: a worker at step %d with %d of %d steps of its round, %d of them ahead, and %d pushed",
			c.Step, c.Done, c.Round, c.Ahead, c.Pushed)
	}
	if err := w.policy.Recall(c.Policy); err != nil {
		return err
	}
	w.vec.Resume(steps)
	w.count = *c
	w.count.Since = make([]Sums, w.fragments())
	copy(w.count.Since, c.Since)
	if w.open = c.Round > 0; w.open {
		w.round = local.Round{Steps: c.Round, Ahead: c.Ahead, Open: c.Open}
	}
	if !w.entry.Runs() { // every round begins with the servers' parameters
		w.count.Began, w.count.Merged = false, false
	}
	w.answered, w.untold = w.count.Pushed, true
	return nil
}

// Restored says that the vectors that Save returned were written.
func (w *Worker) Restored() { w.vec.Restored() }

// Forget drops the steps that were not pushed: the worker takes the servers' parameters over again. A run that resumes with another
// number of workers begins so, because else the steps of one worker could be pushed by two.
func (c *Count) Forget() {
	c.Done, c.Round, c.Ahead, c.Open, c.Merged, c.Began, c.Last, c.Since, c.Samples, c.Pushed = 0, 0, 0, false, false,
		false, -1, nil, 0, c.Step
}

// StartAt makes a worker that has taken no step begin at a step: the run resumes from one whose workers took none of their own.
func (w *Worker) StartAt(step int64) { w.count.Step, w.count.Pushed, w.answered = step, step, step }

// Steps is the number of steps that the worker has taken.
func (w *Worker) Steps() int64 { return w.count.Step }

// Read returns all of one of the worker's vectors, which is not to be written.
func (w *Worker) Read(v Vector) []float32 { return w.vec.Read(v) }

// Fault is the first value of the worker's own parameters that was not finite after a step; nil: all were, or nobody looks.
func (w *Worker) Fault() (f *optim.Fault, looks bool) { return w.vec.Fault() }

// Err is why the device that holds the vectors has failed; nil: it has not. A push or a state that was made since is not to be used.
func (w *Worker) Err() error {
	if w.vec == nil {
		return nil
	}
	return w.vec.Err()
}

// Unpushed is the number of samples that the worker has computed since its last push, of any fragment.
func (w *Worker) Unpushed() int64 { return w.count.Samples }

// Round is the number of steps of the round that has begun.
func (w *Worker) Round() int64 { return w.round.Steps }

// Leave drops what was not pushed, as the worker has left the run, and comes back later.
func (w *Worker) Leave() {
	w.count.Forget()
	w.count.Since = make([]Sums, w.fragments())
	w.open, w.answered = false, w.count.Step
}

// Votes says whether rounds may end by votes.
func (w *Worker) Votes() bool { return local.Votes(w.policy) }

// Runs says whether the worker takes steps while an exchange is in flight.
func (w *Worker) Runs() bool { return w.entry.Runs() }
