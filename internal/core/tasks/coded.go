package tasks

import (
	"fluentps/internal/core"
	"fluentps/internal/policy/work"
	"fluentps/internal/policy/work/code"
)

// coded computes the batches of several workers and pushes one weighted sum of their gradients, the codeword (package
// code has the source). It does so as partial does that keeps all results; but the driver adds up what it keeps, with
// the factors of the code:
//
//	worker i   computes and keeps the partitions of row i, its own first, and pushes their sum as the push of its own iteration
//	server     decodes as soon as enough have pushed, closes the iteration, and answers all
//	worker i   is answered: it leaves out what it has not computed or pushed, and starts the next iteration
//
// With alpha the end of each batch alone is coded, and its beginning is the private part of its worker:
//
//	worker i   computes its private part, and pushes it as part 0 of 2 of its own iteration; then the coded samples of the partitions
//	           of row i, and pushes their sum as part 1
//	server     waits for the private part of each worker in the run, and for enough sums
//
// The push reports the samples, the loss and the hits of the worker's own partition alone. So over the pushes of an
// iteration each sample counts at most once.
func newCoded(s work.Spec, e Env) core.Work {
	order := code.Partitions(code.Spec{Kind: code.Kind(s.Code.Kind), Workers: len(e.Batches), Stragglers: s.Code.Stragglers}, int(e.Me))
	p := &partial{name: s.Policy, me: e.Me, steps: stepsOf(s, e.Batches), order: order, sums: true}
	if s.Code.Alpha > 0 {
		for _, b := range e.Batches {
			p.private = append(p.private, int32(code.Private(b, s.Code.Stragglers, s.Code.Alpha)))
		}
	}
	return p
}

// planSum lists the tasks of an iteration whose gradients are added up.
func (p *partial) planSum() {
	sum := core.Task{Owner: p.me, Iter: p.iter, Parts: 1}
	if p.private != nil {
		sum.Part, sum.Parts = 1, 2
		p.todo = append(p.todo, core.Task{Owner: p.me, Iter: p.iter, Parts: 2, To: p.private[p.me], Grain: p.steps[p.me]})
	}
	for _, owner := range p.order {
		t := core.Task{Owner: owner, Iter: p.iter, Part: sum.Part, Parts: sum.Parts, Grain: p.steps[owner]}
		if p.private != nil {
			t.From = p.private[owner]
		}
		if len(p.order) > 1 {
			t.Keep = core.Kept
		}
		p.todo = append(p.todo, t)
	}
	if len(p.order) > 1 {
		sum.Keep = core.Again
		p.todo = append(p.todo, sum)
	}
}
