package sim

import (
	"errors"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// dealt is the batch of a worker, in a run whose batches change (internal/policy/work). A worker reports the end of its plan to
// the first server's host and waits for the next plan before it computes on, as a real rank does. Both messages cost
// latency.
type dealt struct {
	plan  work.Assignment // Batches nil: batches never change
	tally work.Tally
}

// makeDealer makes the coordinator of batches, and gives the workers their first plan.
func (s *Simulation) makeDealer() error {
	var err error
	if s.policies.dealer, err = s.cfg.NewDealer(len(s.workers), s.o.Rows, nil, 0); err != nil || s.policies.dealer == nil {
		return err
	}
	s.policies.dealer.Replay = s.o.Record
	if len(s.o.Joins) > 0 {
		return errors.New("work.policy deals batches to the workers of the start, and no worker can join again; leave " +
			"--join out, or set work.policy: fixed")
	}
	for i := range s.workers {
		w := &s.workers[i]
		w.dealt.plan = *s.policies.dealer.Current()
		w.dealt.tally.Begin(w.dealt.plan.Until)
		w.node.DealUntil(w.dealt.plan.Until)
	}
	return nil
}

// setBatch sets the batch of a worker's iteration.
func (s *Simulation) setBatch(me int32, iter int64) {
	if w := &s.workers[me]; s.policies.dealer != nil {
		w.batch = int64(w.dealt.plan.Samples(w.index, iter, s.o.Rows))
	}
}

// tallied counts a computed iteration, and reports the last one of a plan.
func (s *Simulation) tallied(me int32) {
	w := &s.workers[me]
	if s.policies.dealer == nil {
		return
	}
	d := &w.dealt
	d.tally.Add(w.batch, time.Duration(w.pass.took), int(w.batch) == d.plan.Batches[w.index])
	if w.pass.iter+1 == d.plan.Until {
		s.q.after(s.now, s.latencyTo(w.host), evMeasured, me, 0)
	}
}

// leavesWork tells the coordinator that a worker computes nothing any more: it is lost, or the run ends.
func (s *Simulation) leavesWork(me int32) {
	if s.policies.dealer != nil {
		s.q.after(s.now, s.latencyTo(s.workers[me].host), evMeasured, me, 1)
	}
}

// latencyTo is the time of a message between a host and that of rank 0.
func (s *Simulation) latencyTo(host int) int64 {
	if host == 0 {
		return 0
	}
	return s.latency
}

// measured handles a report that has arrived, or the end of a worker.
func (s *Simulation) measured(me int32, left bool) {
	w := &s.workers[me]
	e := work.Event{Worker: w.index, Until: w.dealt.tally.Until, Measured: w.dealt.tally.Measured()}
	switch {
	case left && w.done:
		e.Kind = work.Ending
	case left:
		e.Kind = work.Left
	case w.dead: // it left meanwhile, and the report of its end follows
		return
	}
	answer := s.policies.dealer.Step(e)
	if answer == work.Nothing {
		return
	}
	if answer == work.Dealt && s.o.Dealt != nil {
		s.o.Dealt(*s.policies.dealer.Current())
	}
	for i := range s.workers {
		s.q.after(s.now, s.latencyTo(s.workers[i].host), evDealt, int32(i), int32(answer))
	}
}

// takesBatch gives a worker its next plan, or tells it that none follows. No further plan is dealt before all workers
// have computed this one.
func (s *Simulation) takesBatch(me int32, answer work.Answer) {
	w := &s.workers[me]
	if w.dead || w.done {
		return
	}
	head := wire.Header{Kind: wire.Dealt, Flags: wire.Stop}
	if answer == work.Dealt {
		before := w.dealt.plan.Number
		w.dealt.plan = *s.policies.dealer.Current()
		w.dealt.tally.Begin(w.dealt.plan.Until)
		if s.values != nil && w.dealt.plan.Number != before {
			s.values.Assigned(me)
		}
		head = wire.Header{Kind: wire.Dealt, Clock: w.dealt.plan.Until}
	}
	w.lastHead = s.now
	s.stepWorker(me, core.Input{Kind: core.Arrived, Msg: head})
}
