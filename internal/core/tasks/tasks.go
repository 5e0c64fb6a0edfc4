// Package tasks holds the policies of the work axis that move or cut the work of an iteration while it is computed. A
// policy is a pure machine beside its worker's node (core.Work): it is told what its worker computes, and messages of the
// machines of other workers, and it orders what its worker computes next. All messages between workers are its own.
//
// A worker computes in steps of some samples. Between two steps samples can be given to another worker or left out. The
// owner of an iteration alone decides about its samples, so each sample is computed once (lend.go).
package tasks

import (
	"fmt"

	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// Env is the run, as the policy of one worker sees it.
type Env struct {
	Me      int32
	Batches []int // samples of an iteration, by worker
	// Skips says that workers may skip iterations: a shard may wait for the push of an owner that has not pushed the iteration before.
	Skips bool
	// Threads is how many threads the kernels of each worker have at first, and Hosts is the host of each worker; nil: unknown.
	Threads int
	Hosts   []int32
}

// policies are the policies of work.All that have steps.
var policies = map[string]func(s work.Spec, e Env) core.Work{
	"flexrr":      newFlexRR,
	"epsp":        newEPSP,
	"anytime":     newTimed,
	"dropcompute": newDropCompute,
	"partial":     newPartial,
	"coded":       newCoded,
}

// New makes the policy of a worker. It panics if the policy has no steps.
func New(s work.Spec, e Env) core.Work {
	make, ok := policies[s.Policy]
	if !ok {
		panic(fmt.Sprintf("tasks: policy %q has no steps", s.Policy))
	}
	return make(s, e)
}

// Parts is the largest number of parts of an iteration: the owner's, and one for each sample that is given away.
func Parts(s work.Spec, batches []int) int {
	most := 1
	if e, _ := work.All.Lookup(s.Policy); e.Moves {
		for _, b := range batches {
			most = max(most, b)
		}
	}
	return most
}

// hasCopies says whether several workers compute the same batch.
func hasCopies(s work.Spec) bool {
	e, _ := work.All.Lookup(s.Policy)
	return e.Copies
}

// stepOf is the number of samples of a step, of a batch.
func stepOf(s work.Spec, batch int) int32 { return int32(s.StepOf(batch)) }

// stepsOf is the number of samples of a step, by worker whose batch it is.
func stepsOf(s work.Spec, batches []int) (steps []int32) {
	for _, b := range batches {
		steps = append(steps, stepOf(s, b))
	}
	return steps
}

// Slots is the number of pushes that a shard may hold beside those of its scheme.
func Slots(s work.Spec, workers int) int64 {
	switch e, _ := work.All.Lookup(s.Policy); {
	case e.Coded && s.Code.Alpha > 0:
		return 3 * int64(workers) // the same for each of the two pushes of an iteration
	case e.Coded:
		return int64(workers) // in flight while one of the same worker is staged
	case e.Copies:
		return int64(workers) + int64(core.AheadSlots(Owners(s, workers)))
	case e.Moves:
		return int64(workers) // parts in flight
	}
	return 0
}

// Kept is the number of tasks whose gradients a worker keeps, to push them later.
func Kept(s work.Spec) int {
	if e, _ := work.All.Lookup(s.Policy); e.Coded {
		return min(s.Code.Stragglers, 1) // their sum
	}
	if !hasCopies(s) {
		return 0
	}
	return min(s.Batching, s.Load) - 1
}
