package work

import (
	"fmt"
	"slices"
)

// Assignment is a plan with a number, from an iteration on.
type Assignment struct {
	Number  int64 `json:"number"`  // of assignments with other batches or rows that were before
	From    int64 `json:"from"`    // its first iteration
	Until   int64 `json:"until"`   // the first iteration of the next plan; 0: none follows
	Batches []int `json:"batches"` // by worker; 0: the worker had left
	Epoch   bool  `json:"epoch"`   // as in Plan

	last []int // of lastBatches; nil: not asked for yet
}

// Saved is what a run resumes from: an assignment, the memory of the policy after it, and the run that they belong to.
type Saved struct {
	Policy     string `json:"policy"`
	Env        Env    `json:"env"`
	Assignment `json:"assignment"`
	Memory     []float64 `json:"memory,omitempty"`
}

// Covers says whether an iteration belongs to the assignment.
func (a *Assignment) Covers(iter int64) bool {
	return iter >= a.From && (a.Until == 0 || iter < a.Until)
}

// Plan is the plan of the assignment.
func (a *Assignment) Plan() Plan {
	p := Plan{Batches: a.Batches, Epoch: a.Epoch}
	if a.Until > 0 {
		p.Iterations = a.Until - a.From
	}
	return p
}

// EventKind says what happened.
type EventKind uint8

const (
	Reported EventKind = iota // Worker has computed all iterations before Until, the end of its assignment, as Measured says
	Left                      // Worker is lost, and the others go on without it
	Ending                    // workers are told to stop: the run ends, and no plan follows
)

// Answer is what the workers must be told.
type Answer uint8

const (
	Nothing Answer = iota
	Dealt          // the next assignment
	NoMore         // that no plan follows: whoever waits for one stops
)

// Event is one input of a Coordinator.
type Event struct {
	Kind     EventKind
	Worker   int
	Until    int64
	Measured Measured
}

// Coordinator waits for the reports of all workers and asks the policy. It is a pure machine on server 0. A worker
// that has reported waits for the answer. One that will not report must leave, or the run must end: then nobody waits
// for ever.
type Coordinator struct {
	name     string
	env      Env
	policy   Policy
	current  Assignment
	ended    Assignment // the one before
	reported []bool
	left     []bool
	ending   bool
	measured []Measured // under the present plan, so far
	used     []Measured // under the plan before, as the policy was told
	// Replay holds measurements that are used in place of those reported; plans that it lacks are dealt by what is reported.
	Replay Record
}

// NewCoordinator makes the coordinator of a run; nil for fixed. from is what the run resumes from; nil: nothing. If
// that does not belong to this policy and these workers, or is nil, the policy begins at iteration start. An error
// says that it belongs to them and cannot be.
func NewCoordinator(s Spec, e Env, from *Saved, start int64) (*Coordinator, error) {
	p, err := New(s, e)
	if err != nil || p == nil {
		return nil, err
	}
	c := &Coordinator{name: s.Policy, env: e, policy: p, reported: make([]bool, e.Workers),
		left: make([]bool, e.Workers), measured: make([]Measured, e.Workers)}
	switch {
	case from == nil:
		c.set(p.Start(), start, 0)
	case !from.Continues(s, e):
		c.set(p.Start(), start, from.Number+1)
	default:
		if err := from.Check(e); err != nil {
			return nil, err
		}
		c.current = from.Assignment
		return c, p.Recall(from.Batches, from.Memory)
	}
	return c, nil
}

// Continues says whether a run of this policy and these workers resumes in the middle of the plan, rather than with a
// first plan of its own.
func (s *Saved) Continues(now Spec, e Env) bool {
	return s != nil && s.Policy == now.Policy && s.Env == e
}

// Check fails for an assignment that no run of these workers can have.
func (a *Assignment) Check(e Env) error {
	sum, bad := 0, len(a.Batches) != e.Workers || a.From < 0 || a.Number < 0 || a.Until <= a.From
	for _, b := range a.Batches {
		bad = bad || b < 1 || b > e.Max
		sum += b
	}
	if bad || sum != e.Batch || a.Epoch && a.Until-a.From != EpochIterations(e.Rows, sum, e.Workers) {
		return fmt.Errorf("work: assignment %d of %d workers, %d samples, iterations %d to %d, does not belong to a run "+
			"of %d workers and %d samples an iteration", a.Number, len(a.Batches), sum, a.From, a.Until, e.Workers, e.Batch)
	}
	return nil
}

// Save is what the run can resume from.
func (c *Coordinator) Save() *Saved {
	s := &Saved{Policy: c.name, Env: c.env, Assignment: c.current, Memory: c.policy.Memory()}
	s.Batches = slices.Clone(s.Batches)
	return s
}

// Ended is the assignment before the current one, with what was measured under it, by worker.
func (c *Coordinator) Ended() (Assignment, []Measured) { return c.ended, c.used }

// Current is the assignment that was dealt last.
func (c *Coordinator) Current() *Assignment { return &c.current }

// Waits says whether a worker's report is missing.
func (c *Coordinator) Waits(worker int) bool { return !c.reported[worker] && !c.left[worker] }

// Step handles an event.
func (c *Coordinator) Step(e Event) Answer {
	switch e.Kind {
	case Ending:
		if c.ending {
			return Nothing
		}
		c.ending = true
		return NoMore
	case Reported:
		if e.Until != c.current.Until || c.reported[e.Worker] || c.left[e.Worker] {
			panic(fmt.Sprintf("work: worker %d reports the end of iteration %d; reported %t, left %t, and the assignment "+
				"ends with %d", e.Worker, e.Until, c.reported[e.Worker], c.left[e.Worker], c.current.Until))
		}
		e.Measured.Iterations = max(1, e.Measured.Iterations) // 0 stands for a worker that has left; one that resumes may have measured nothing
		c.reported[e.Worker], c.measured[e.Worker] = true, e.Measured
	case Left:
		c.left[e.Worker], c.measured[e.Worker] = true, Measured{}
	}
	waiting := false
	for w := range c.left {
		if c.Waits(w) {
			return Nothing
		}
		waiting = waiting || !c.left[w]
	}
	if !waiting || c.ending { // all have left, or are leaving
		return Nothing
	}
	measured := c.measured
	if r, ok := c.Replay[c.current.Until]; ok {
		measured = slices.Clone(r.Measured)
		for w := range measured {
			if measured[w].Iterations = max(1, measured[w].Iterations); c.left[w] {
				measured[w] = Measured{}
			}
		}
	}
	c.used = slices.Clone(measured)
	c.set(c.policy.Step(measured), c.current.Until, c.current.Number)
	clear(c.reported)
	return Dealt
}

// set makes a plan the current assignment. Batches that stay, with the same rows, keep their number.
func (c *Coordinator) set(p Plan, from, number int64) {
	c.ended = c.current
	next := Assignment{Number: number, From: from, Batches: p.Batches, Epoch: p.Epoch, Until: from + p.Iterations}
	if c.current.Batches != nil {
		if !p.Epoch && slices.Equal(p.Batches, c.current.Batches) {
			next.From = c.current.From // samples continue
		} else {
			next.Number++
		}
	}
	if next.Epoch {
		next.lastBatches(c.env.Rows) // once, for all workers who get a copy
	}
	c.current = next
}
