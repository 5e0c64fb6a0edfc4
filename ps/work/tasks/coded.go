package tasks

import (
	"fluentps/ps/core"
	"fluentps/ps/work"
	"fluentps/ps/work/code"
)

// coded computes the batches of several workers and pushes one weighted sum of their gradients, the codeword (package code has the source). It does so as
// partial does that keeps all results; but the driver adds up what it keeps, with the factors of the code:
//
//	worker i   computes and keeps the partitions of row i, its own first, and pushes their sum as the push of its own iteration
//	server     decodes as soon as enough have pushed, closes the iteration, and answers all
//	worker i   is answered: it leaves out what it has not computed or pushed, and starts the next iteration
//
// The push reports the samples, the loss and the hits of the worker's own partition alone. So over the pushes of an iteration each sample counts at
// most once.
func newCoded(s work.Spec, e Env) core.Work {
	order := code.Partitions(code.Spec{Kind: code.Kind(s.Code.Kind), Workers: len(e.Batches), Stragglers: s.Code.Stragglers}, int(e.Me))
	return &partial{name: s.Policy, me: e.Me, steps: stepsOf(s, e.Batches), order: order, sums: true}
}

// planSum lists the tasks of an iteration whose gradients are added up.
func (p *partial) planSum() {
	for _, owner := range p.order {
		t := core.Task{Owner: owner, Iter: p.iter, Parts: 1, Grain: p.steps[owner]}
		if len(p.order) > 1 {
			t.Keep = core.Kept
		}
		p.todo = append(p.todo, t)
	}
	if len(p.order) > 1 {
		p.todo = append(p.todo, core.Task{Owner: p.me, Iter: p.iter, Parts: 1, Keep: core.Again})
	}
}
