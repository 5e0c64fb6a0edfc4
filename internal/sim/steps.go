package sim

import (
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/steps"
	"fluentps/internal/plan/layout"
	"fluentps/internal/show/metrics"
)

// Steps of the workers' own between two exchanges (internal/policy/local, internal/core/steps). Where a policy takes no steps while an
// exchange is in flight, an iteration has the stages of compute.go, with all steps but the first one's forward and the last one's
// backward between the two. Where it does, a step is one event, and a push leaves when its last step ends.

// ownSteps is the state of a worker that takes steps of its own; steps is nil where every step is an exchange.
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
func (s *Simulation) makeSteps() error {
	if !s.cfg.Local.IsSet() {
		return nil
	}
	o, err := layout.StepsOf(s.cfg, s.plan, s.roles, s.o.Rows)
	if err != nil {
		return err
	}
	s.policies.fragments = o.Fragments
	o.Layers = LayersOf(s.plan)
	for i := range s.workers {
		if s.values != nil {
			o.Vectors = s.values.Vectors(int32(i), &o)
		}
		w := &s.workers[i]
		if w.steps.steps, err = steps.New(o); err != nil {
			return err
		}
	}
	return nil
}

// LayersOf lists the pieces of each layer.
func LayersOf(p *shard.Plan) (all [][]int32) {
	for i := range p.Pieces {
		for int(p.Pieces[i].Layer) >= len(all) {
			all = append(all, nil)
		}
		all[p.Pieces[i].Layer] = append(all[p.Pieces[i].Layer], p.Pieces[i].ID)
	}
	return all
}

// beginOwn is told that the node exchanges.
func (s *Simulation) beginOwn(me int32, iter int64) {
	w := &s.workers[me]
	o := &w.steps
	w.pass.iter, o.granted = iter, true
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
	w.pass.stage, w.pass.took, w.pass.stalled, w.pass.read = 0, 0, true, false
	w.pass.own, w.pass.injected, w.pass.late, w.pass.more = w.takesRound(o.steps.Steps(), o.steps.Round())
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
func (s *Simulation) computeRound(me int32) {
	w := &s.workers[me]
	own := w.steps.steps
	own.Taken()
	for range own.Round() {
		s.takeStep(me)
	}
	s.makePush(me)
}

// takeStep takes a step.
func (s *Simulation) takeStep(me int32) {
	own := s.workers[me].steps.steps
	of := steps.Sums{Samples: s.workers[me].batch}
	if s.values != nil {
		of.Loss, of.Correct = s.values.TakeStep(me, own)
	}
	own.Computed(of)
	s.observer.StepTaken(me, of.Samples)
	own.Ended()
}

// makePush makes the push of a round.
func (s *Simulation) makePush(me int32) {
	w := &s.workers[me]
	o := &w.steps
	o.pushes = o.steps.Pushes(w.pass.iter)
	if s.values != nil {
		s.values.MakePush(me, w.pass.iter, o.steps)
	}
	o.done = o.steps.Pushed(w.pass.iter)
	s.observer.PushMade(me, w.pass.iter, o.pushes.Samples, o.done)
}

// goOn does what the policy does next, until that takes time.
func (s *Simulation) goOn(me int32) {
	w := &s.workers[me]
	o := &w.steps
	for !w.done && !w.dead {
		if !o.isGranted && o.granted && w.node.State() == core.Computing {
			o.isGranted = true
			o.steps.Granted(w.node.Progress())
			s.started(me, w.pass.iter)
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
			w.pass.busy, o.stepping = true, true
			w.pass.epoch++
			w.pass.from, w.pass.until = s.now, max(s.now, w.pass.resume)+own+injected+late
			w.pass.own, w.pass.injected = w.pass.own+own, w.pass.injected+injected+late
			s.q.after(s.now, w.pass.until-s.now, evComputed, me, w.pass.epoch)
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
func (s *Simulation) stepped(me int32) {
	w := &s.workers[me]
	w.pass.busy, w.steps.stepping = false, false
	w.pass.took += s.now - w.pass.from
	w.spans.Add(metrics.Compute, time.Duration(s.now-w.pass.from))
	w.waitFrom = s.now
	s.takeStep(me)
	s.goOn(me)
}

// hasAnswers goes on where the answers that a worker waits for have come.
func (s *Simulation) hasAnswers(me int32) {
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
func (s *Simulation) vote(me int32) {
	w := &s.workers[me]
	step, exchange := w.steps.steps.Ballot()
	m := wire.Header{Iter: w.pass.iter, Clock: step}
	if exchange {
		m.Part = 1
	}
	w.steps.voting, w.waitFrom = true, s.now
	s.stepWorker(me, core.Input{Kind: core.Voted, Msg: m})
}

// pushOwn pushes everything at once.
func (s *Simulation) pushOwn(me int32) {
	w := &s.workers[me]
	o := &w.steps
	s.makePush(me)
	s.recorded(me)
	w.pace.Add(time.Duration(w.pass.took))
	w.samples += o.done
	s.forwarded(me)
	for layer := len(s.stages.pieces) - 1; layer >= 0; layer-- {
		for _, p := range s.stages.pieces[layer] {
			s.stepWorker(me, core.Input{Kind: core.PieceReady, Piece: p})
		}
	}
	w.blocked, w.pass.took, w.pass.own, w.pass.injected = 0, 0, 0, 0
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
func (s *Simulation) reported(me int32) wire.Header {
	p := s.workers[me].steps.pushes
	return wire.Header{Samples: p.Samples, Correct: p.Correct, Loss: p.Loss}
}

// leaveSteps drops what a worker did not push.
func (s *Simulation) leaveSteps(me int32) {
	if w := &s.workers[me]; w.steps.steps != nil {
		s.observer.StepsLost(me)
		w.steps.steps.Leave()
		w.steps = ownSteps{steps: w.steps.steps}
		w.pass.own, w.pass.injected = 0, 0
	}
}
