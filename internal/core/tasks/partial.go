package tasks

import (
	"fmt"

	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// partial sends the results of several batches, one after the other (Ozfatura, Gunduz, Ulukus, arXiv 1808.02240: several
// messages an iteration, so that what a straggler has finished counts [P]). The construction is reconstructed [R];
// the orders are those of Amiri and Gunduz (arXiv 1810.09992), recalled [M]. Partition j of iteration t is the batch
// that worker j has in it. The others compute copies:
//
//	worker i   computes the partitions TO(i,1) = i, TO(i,2) ... TO(i,load) in this order, and pushes each as the push of its owner
//	server     takes the first copy of each partition, closes the iteration at `required` partitions, and answers all
//	worker i   is answered: it leaves out what it has not pushed, and starts the next iteration
//
// With batching m the results of m partitions are pushed together, when the last of them is computed.
type partial struct {
	name     string
	me       int32
	steps    []int32 // by partition: samples of a step. All who compute a partition take the same steps, so that copies are equal to the bit
	order    []int32 // partitions
	batching int
	sums     bool    // what is kept is added up, and pushed as the worker's own iteration (coded.go)
	private  []int32 // with sums: per worker, samples of its batch that it alone computes; nil: none

	iter    int64
	todo    []core.Task // of this iteration, in order; the first is being computed or waits for it
	isOver  bool        // the iteration is closed
	current core.Task
}

func newPartial(s work.Spec, e Env) core.Work {
	n := len(e.Batches)
	return &partial{name: s.Policy, me: e.Me, steps: stepsOf(s, e.Batches), order: Owners(s, n)[e.Me], batching: s.Batching}
}

// Owners are, per worker, the partitions that it computes, in order; nil if the policy has no copies.
func Owners(s work.Spec, workers int) (all [][]int32) {
	if !hasCopies(s) {
		return nil
	}
	for i := range workers {
		var of []int32
		for j := range min(s.Load, workers) {
			if s.Order == work.Staircase && i%2 == 1 { // workers count from 1 in the source: its even ones go backward
				j = -j
			}
			of = append(of, int32((i+j+workers)%workers))
		}
		all = append(all, of)
	}
	return all
}

func (p *partial) Step(ev core.WorkEvent, out []core.Order) []core.Order {
	switch ev.Kind {
	case core.Starting:
		p.iter, p.isOver = ev.Task.Iter, false
		p.plan()
		return p.next(out)
	case core.Computed:
		if len(p.todo) > 0 && !p.isOver {
			return p.next(out)
		}
	case core.Answered:
		p.isOver = true
		return append(out, core.Order{Kind: core.CancelWork, Task: p.current})
	}
	return out
}

// plan lists the tasks of an iteration.
func (p *partial) plan() {
	p.todo = p.todo[:0]
	if p.sums {
		p.planSum()
		return
	}
	for k, owner := range p.order {
		t := core.Task{Owner: owner, Iter: p.iter, Parts: 1, Grain: p.steps[owner]}
		isLast := k == len(p.order)-1 || (k+1)%p.batching == 0
		if !isLast {
			t.Keep = core.Kept
		}
		p.todo = append(p.todo, t)
		if !isLast {
			continue
		}
		for _, kept := range p.order[k-k%p.batching : k] {
			p.todo = append(p.todo, core.Task{Owner: kept, Iter: p.iter, Parts: 1, Keep: core.Again})
		}
	}
}

// next assigns the next task.
func (p *partial) next(out []core.Order) []core.Order {
	t := p.todo[0]
	p.todo = p.todo[1:]
	p.current = t
	p.current.To = 0
	return append(out, core.Order{Kind: core.Assign, Task: t})
}

// String says which partitions are left, for the stall report.
func (p *partial) String() string {
	if p.isOver {
		return fmt.Sprintf(p.name+": every shard has closed iteration %d", p.iter)
	}
	var left []int32
	for _, t := range p.todo {
		if t.Keep != core.Again {
			left = append(left, t.Owner)
		}
	}
	if t := p.current; t.Part < t.Parts-1 {
		return fmt.Sprintf(p.name+": of iteration %d it came to its private part, samples up to %d, and partitions %v "+
			"are left", p.iter, p.private[p.me], left)
	}
	return fmt.Sprintf(p.name+": of iteration %d it came to partition %d of %v, and %v are left", p.iter, p.current.Owner, p.order, left)
}
