package sim

import (
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/core/workernode"
	"fluentps/internal/policy/straggler"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/timeline"
)

// worker is one worker and the model of its computing.
type worker struct {
	node  *workernode.Worker
	index int
	rank  int
	host  int
	slow  straggler.Worker

	cost    Cost // of computing, without slowness
	batch   int64
	samples int64
	dead    bool
	life    uint16 // how often it has rejoined: messages in flight from or to an earlier life are lost
	died    int64  // when it last died
	fresh   bool   // it has rejoined and not begun an iteration since
	done    bool

	pass     pass // of its iteration
	dealt    dealt
	steps    ownSteps
	tasks    tasking
	spans    metrics.Spans
	pace     metrics.Pace
	waitFrom int64 // since when it has not computed
	lastHead int64 // when the header of the last reply arrived
	blocked  int64 // nanoseconds blocked before the current iteration
	timeline *timeline.Worker
}

// stepWorker steps a worker that is alive, and applies the effects.
func (s *Simulation) stepWorker(me int32, in core.Input) {
	w := &s.workers[me]
	in.At = time.Duration(s.now)
	s.out = w.node.Step(in, s.out[:0])
	s.count(me, &in, w.node)
	w.timeline.Stepped(&in, s.out, in.At)
	for i := range s.out {
		e := &s.out[i]
		if e.Kind == core.Send || e.Kind == core.Adopt { // few of all effects
			s.observer.WorkerDid(me, e)
		}
		switch e.Kind {
		case core.Send:
			if e.Msg.Kind == wire.Pull && s.plan.Shards[e.Msg.Shard].PullBytes() > 0 {
				s.ask(me, e)
				continue
			}
			m := &s.servers[e.To]
			s.control(int32(len(s.workers))+e.To, message{e.Msg, w.life}, w.host == m.host)
		case core.SendBarrier:
			s.control(s.rank0(), message{e.Msg, w.life}, w.host == 0)
		case core.SendPiece:
			s.push(me, e)
		case core.Adopt, core.Keep, core.AddLocal:
			if s.values != nil {
				s.values.WorkerDid(me, e)
			}
		case core.Compute:
			s.compute(me, e)
		case core.Cancel:
			s.cancel(me, e)
		case core.SendWorker:
			s.control(e.To, message{e.Msg, w.life}, w.host == s.workers[e.To].host)
		case core.Done:
			if !w.pass.busy {
				s.waited(w)
			}
			w.done = true
			s.leavesWork(me)
			s.ended = s.now
			s.undone--
		}
	}
	if w.pass.stalled {
		s.proceed(me)
	}
	if w.tasks.mustCut {
		s.cutGrain(me)
	}
	if w.steps.waiting || w.steps.voting {
		s.hasAnswers(me)
	}
}

// push sends a piece of a push.
func (s *Simulation) push(me int32, e *core.Effect) {
	p := &s.plan.Pieces[e.Piece]
	bytes := p.PushBytes
	if s.values != nil {
		bytes = s.values.Encode(me, p, e.Iter)
	}
	t := Transfer{Life: s.workers[me].life, Worker: me, Server: e.To, Shard: e.Shard, Piece: e.Piece, Iter: e.Iter, Bytes: bytes}
	i := s.move(t)
	if s.values != nil {
		s.values.PushSent(i, t)
	}
}

// started tells which copies a worker reads.
func (s *Simulation) started(me int32, iter int64) {
	for i := range s.tallies {
		at := iter
		if f := s.policies.fragments; f != nil {
			if s.workers[me].node.Rests(int32(i)) {
				continue
			}
			at = f.Clock(int32(i), iter)
		}
		s.observer.WorkerStarts(me, int32(i), at, s.workers[me].fresh)
	}
	s.workers[me].fresh = false
}

// waited splits a time without computing as the runtime does: blocked until the header of the last reply arrived, then pull.
func (s *Simulation) waited(w *worker) {
	blocked, pull := max(0, w.lastHead-w.waitFrom), s.now-max(w.lastHead, w.waitFrom)
	w.blocked += blocked
	w.timeline.Waited(w.pass.iter, time.Duration(w.waitFrom), time.Duration(w.lastHead), time.Duration(s.now))
	w.spans.Add(metrics.Blocked, time.Duration(blocked))
	w.spans.Add(metrics.Pull, time.Duration(pull))
	if s.o.Iterations != nil {
		w.pass.rest[0], w.pass.rest[1] = w.pass.rest[0]+time.Duration(blocked), w.pass.rest[1]+time.Duration(pull)
		s.o.Iterations[w.node.Me()].Waited(w.pass.rest[0], w.pass.rest[1])
	}
}

// lose ends a worker at once. Its servers learn of that after the latency of a message.
func (s *Simulation) lose(me int32) {
	w := &s.workers[me]
	if w.dead || w.done {
		return
	}
	w.dead, w.pass.busy, w.pass.stalled, w.died = true, false, false, s.now
	s.ended = s.now
	s.undone--
	s.counts.lost++
	s.leavesWork(me)
	s.observer.WorkerLost(me)
	s.loseTasks(me)
	for m := range s.servers {
		left := message{head: wire.Header{Kind: wire.Left, Worker: me, Clock: int64(w.life)}, life: w.life}
		s.q.after(s.now, s.latency, evDeath, int32(len(s.workers)+m), s.traffic.messages.put(left))
	}
}
