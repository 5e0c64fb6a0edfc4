package sim

import (
	"time"

	"fluentps/comm/wire"
	"fluentps/ps/core"
	"fluentps/ps/layout"
	"fluentps/ps/metrics"
	"fluentps/ps/shard"
	"fluentps/ps/steps"
)

// Steps of the workers' own between two exchanges (ps/local, ps/steps). Where a policy takes no steps while an exchange is in flight, an
// iteration has the stages of compute.go, with all steps but the first one's forward and the last one's backward between the two. Where
// it does, a step is one event, and a push leaves when its last step ends.

// ownSteps is that state of a worker; steps is nil where every step is an exchange.
type ownSteps struct {
	steps     *steps.Worker
	granted   bool  // the node's Compute was given, and its exchange was not pushed
	isGranted bool  // the answers to the last push were noticed
	active    bool  // steps or a wait for answers have begun
	waiting   bool  // for answers
	voting    bool  // for what all workers decide
	stepping  bool  // a step is running; its end is an evComputed
	done      int64 // samples of the round
	pushes    steps.Sums
}

// makeSteps makes the policies of the workers, if they take steps of their own.
func (s *simulation) makeSteps() error {
	if !s.cfg.Local.IsSet() {
		return nil
	}
	o, err := layout.StepsOf(s.cfg, s.plan, s.roles, s.o.Rows)
	if err != nil {
		return err
	}
	s.fragments = o.Fragments
	fragments := int64(1)
	if o.Fragments != nil {
		fragments = o.Fragments.N()
	}
	s.check.local = newLocalCheck(len(s.workers), len(s.plan.Shards), fragments)
	s.check.localMost = s.cfg.Local.StepsMost() * int64(s.cfg.BatchMax(len(s.workers)))
	o.Layers = layersOf(s.plan)
	for i := range s.workers {
		if s.real != nil {
			r := &s.real.replicas[i]
			own, grads := make([]float32, s.plan.Arena), make([]float32, s.plan.Arena)
			o.Vectors = steps.OnHost(&o, own, grads, r.params, r.grads)
			r.views = [2][][]float32{s.plan.Views(own), s.plan.Views(grads)}
		}
		w := &s.workers[i]
		if w.steps.steps, err = steps.New(o); err != nil {
			return err
		}
	}
	return nil
}

// layersOf lists the pieces of each layer.
func layersOf(p *shard.Plan) (all [][]int32) {
	for i := range p.Pieces {
		for int(p.Pieces[i].Layer) >= len(all) {
			all = append(all, nil)
		}
		all[p.Pieces[i].Layer] = append(all[p.Pieces[i].Layer], p.Pieces[i].ID)
	}
	return all
}

// beginOwn is told that the node exchanges.
func (s *simulation) beginOwn(me int32, iter int64) {
	w := &s.workers[me]
	o := &w.steps
	w.iter, o.granted = iter, true
	if o.steps.Runs() || o.steps.Votes() {
		if !o.active {
			o.active = true
			s.waited(w)
			s.goOn(me)
		}
		return
	}
	o.steps.Granted(w.node.Progress())
	o.steps.Next(true) // begins the round
	w.stage, w.took, w.stalled, w.read = 0, 0, true, false
	w.own, w.injected, w.late, w.more = w.takesRound(o.steps.Steps(), o.steps.Round())
}

// takesRound is how long so many steps compute. own is the time of the first, more that of the others.
func (w *worker) takesRound(from, n int64) (own, injected, late, more int64) {
	own, injected, late = w.takes(from)
	for k := from + 1; k < from+n; k++ {
		o, i, l := w.takes(k)
		more, injected = more+o, injected+i+l
	}
	return own, injected, late, more
}

// computeRound takes all steps of a round, at the time at which the last of its parameters has arrived, and makes its push.
func (s *simulation) computeRound(me int32) {
	w := &s.workers[me]
	own := w.steps.steps
	own.Taken()
	for range own.Round() {
		s.takeStep(me)
	}
	s.makePush(me)
}

// takeStep takes a step.
func (s *simulation) takeStep(me int32) {
	own := s.workers[me].steps.steps
	of := steps.Sums{Samples: s.workers[me].batch}
	if s.real != nil {
		of.Loss, of.Correct = s.real.takeStep(me)
	}
	own.Computed(of)
	s.check.local.workers[me].computed += of.Samples
	own.Ended()
}

// makePush makes the push of a round.
func (s *simulation) makePush(me int32) {
	w := &s.workers[me]
	o := &w.steps
	o.pushes = o.steps.Pushes(w.iter)
	if s.real != nil {
		s.real.makePush(me, w.iter)
	}
	o.done = o.steps.Pushed(w.iter)
	k := &s.check.local.workers[me]
	k.made[w.iter%int64(len(k.made))] += o.pushes.Samples
	k.own += o.done
}

// goOn does what the policy does next, until that takes time.
func (s *simulation) goOn(me int32) {
	w := &s.workers[me]
	o := &w.steps
	for !w.done && !w.dead {
		if !o.isGranted && o.granted && w.node.State() == core.Computing {
			o.isGranted = true
			o.steps.Granted(w.node.Progress())
			s.started(me, w.iter)
		}
		switch o.steps.Next(o.isGranted) {
		case steps.Await:
			if !o.isGranted {
				o.waiting, w.waitFrom = true, s.now
				return
			}
			o.steps.Taken()
		case steps.Step:
			own, injected, late := w.takes(o.steps.Steps())
			w.busy, o.stepping = true, true
			w.epoch++
			w.from, w.until = s.now, max(s.now, w.resume)+own+injected+late
			w.own, w.injected = w.own+own, w.injected+injected+late
			s.q.after(s.now, w.until-s.now, evComputed, me, w.epoch)
			return
		case steps.Vote:
			s.vote(me)
			return
		case steps.Push:
			s.pushOwn(me)
		}
	}
	o.active = false
}

// stepped ends a step.
func (s *simulation) stepped(me int32) {
	w := &s.workers[me]
	w.busy, w.steps.stepping = false, false
	w.took += s.now - w.from
	w.spans.Add(metrics.Compute, time.Duration(s.now-w.from))
	w.waitFrom = s.now
	s.takeStep(me)
	s.goOn(me)
}

// hasAnswers goes on where the answers that a worker waits for have come.
func (s *simulation) hasAnswers(me int32) {
	w := &s.workers[me]
	o := &w.steps
	if yes, known := w.node.Verdict(); o.voting && known {
		o.voting = false
		s.waited(w)
		o.steps.Decided(yes)
		s.goOn(me)
		return
	}
	if o.waiting && (w.done || o.granted && w.node.State() == core.Computing) {
		o.waiting = false
		if !w.done {
			s.waited(w)
		}
		s.goOn(me)
	}
}

// vote tells the lead shard's server what a worker wants after its step.
func (s *simulation) vote(me int32) {
	w := &s.workers[me]
	step, exchange := w.steps.steps.Ballot()
	m := wire.Header{Iter: w.iter, Clock: step}
	if exchange {
		m.Part = 1
	}
	w.steps.voting, w.waitFrom = true, s.now
	s.stepWorker(me, core.Input{Kind: core.Voted, Msg: m})
}

// pushOwn pushes everything at once.
func (s *simulation) pushOwn(me int32) {
	w := &s.workers[me]
	o := &w.steps
	s.makePush(me)
	s.recorded(me)
	w.pace.Add(time.Duration(w.took))
	w.samples += o.done
	s.forwarded(me)
	for layer := len(s.passes.pieces) - 1; layer >= 0; layer-- {
		for _, p := range s.passes.pieces[layer] {
			s.stepWorker(me, core.Input{Kind: core.PieceReady, Piece: p})
		}
	}
	w.blocked, w.took, w.own, w.injected = 0, 0, 0, 0
	o.granted, o.isGranted = false, false
	s.stepWorker(me, core.Input{Kind: core.TaskDone})
}

// taken is the number of steps that the worker took on parameters of its own.
func (w *worker) taken() int64 {
	if w.steps.steps == nil {
		return 0
	}
	return w.steps.steps.Steps()
}

// reported are the values that the pushes of a worker report.
func (s *simulation) reported(me int32) wire.Header {
	p := s.workers[me].steps.pushes
	return wire.Header{Samples: p.Samples, Correct: p.Correct, Loss: p.Loss}
}

// leaveSteps drops what a worker did not push.
func (s *simulation) leaveSteps(me int32) {
	if w := &s.workers[me]; w.steps.steps != nil {
		s.check.local.forgets(me, w.steps.steps)
		w.steps.steps.Leave()
		w.steps = ownSteps{steps: w.steps.steps}
		w.own, w.injected = 0, 0
	}
}

// takeStep computes a step on the worker's own parameters.
func (f *floats) takeStep(me int32) (loss float64, correct int64) {
	w, own := &f.replicas[me], f.s.workers[me].steps.steps
	step := own.Steps()
	f.rows = w.sampler.Batch(step, f.rows)
	f.batch.Take(f.set.Train, f.rows)
	w.augment.Apply(f.batch.X, step)
	f.model.Bind(w.views[0], w.views[1])
	loss, hits := f.step(me, step, f.batch)
	own.Begin()
	for layer := range f.layers {
		own.Move(layer, int64(f.batch.N))
	}
	return loss, int64(hits)
}

// makePush writes a push where it is sent from.
func (f *floats) makePush(me int32, iter int64) {
	w := &f.replicas[me]
	f.keepUnsent(w)
	if w.flying > 0 {
		f.s.check.fail("immutable gradients: worker %d makes the push of iteration %d while %d pieces of its last push have not landed", me, iter, w.flying)
	}
	for layer := range f.layers {
		f.s.workers[me].steps.steps.Make(layer, iter)
	}
}
