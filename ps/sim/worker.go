package sim

import (
	"math/rand/v2"
	"time"

	"fluentps/comm/wire"
	"fluentps/configs"
	"fluentps/ps/core"
	"fluentps/ps/metrics"
)

// worker is one worker and the model of its computing.
type worker struct {
	node *core.Worker
	rank int
	host int
	draw *rand.Rand // of (seed, worker)
	slow []configs.Slow

	multiple float64         // of the base, for this worker
	trace    []time.Duration // computing times of a real run, in order; nil: drawn
	replayed int             // of the trace

	batch   int64
	samples int64
	phase   bool // two_state: in a slow phase
	dead    bool
	life    uint16 // how often it came back: what is on its way from or to an earlier life is lost
	died    int64  // when it last did
	fresh   bool   // it came back and has not begun an iteration since
	done    bool
	busy    bool  // computes
	epoch   int32 // of its computing: an evComputed of another one is void
	from    int64 // when computing began
	until   int64 // when it will end
	resume  int64 // when its pause is over

	spans    metrics.Spans
	waitFrom int64 // when the last iteration was over
	lastHead int64 // when the last reply's header came
	blocked  int64 // before the iteration that is computed
}

// stepWorker steps a worker that is alive, and obeys.
func (s *simulation) stepWorker(me int32, in core.Input) {
	w := &s.workers[me]
	in.At = time.Duration(s.now)
	s.out = w.node.Step(in, s.out[:0])
	s.count(me, &in, w.node)
	for i := range s.out {
		e := &s.out[i]
		switch e.Kind {
		case core.Send:
			if e.Msg.Kind == wire.Pull {
				s.check.asked(e.Msg)
			}
			m := &s.servers[e.To]
			s.control(int32(len(s.workers))+e.To, message{e.Msg, w.life}, w.host == m.host)
		case core.SendPiece:
			p := &s.plan.Pieces[e.Piece]
			if s.real != nil {
				s.real.pushSent(me)
			}
			s.move(transfer{life: w.life, worker: me, server: e.To, shard: e.Shard, piece: e.Piece, bytes: bytesOf(p)})
		case core.Adopt, core.Keep, core.AddLocal:
			if e.Kind == core.Adopt {
				s.check.adopted(e.Shard, me)
			}
			if s.real != nil {
				s.real.obeyWorker(me, e)
			}
		case core.Compute:
			s.started(me, e.Iter)
			s.compute(me, e.Iter)
		case core.Remap:
			s.check.fail("worker %d has the map of the shards of epoch %d, a server that of epoch %d", me, s.plan.Epoch, e.Iter)
		case core.Done:
			s.waited(w)
			w.done = true
			s.ended = s.now
			s.undone--
		}
	}
}

// started notes how old what a worker reads is.
func (s *simulation) started(me int32, iter int64) {
	for i := range s.tallies {
		lag, age := s.check.started(int32(i), me, iter, s.workers[me].fresh)
		s.tallies[i].lag.Add(lag)
		s.tallies[i].age.Add(age)
	}
	s.workers[me].fresh = false
}

// waited splits the time since the last iteration was over as the runtime does: blocked until the last reply
// began, pull until it was in.
func (s *simulation) waited(w *worker) {
	w.blocked = max(0, w.lastHead-w.waitFrom)
	w.spans.Add(metrics.Blocked, time.Duration(w.blocked))
	w.spans.Add(metrics.Pull, time.Duration(s.now-max(w.lastHead, w.waitFrom)))
}

// compute starts an iteration.
func (s *simulation) compute(me int32, iter int64) {
	w := &s.workers[me]
	s.waited(w)
	w.busy = true
	w.epoch++
	w.from = s.now
	w.until = max(s.now, w.resume) + w.takes(&s.cfg.Simulate, iter)
	s.q.after(s.now, w.until-s.now, evComputed, me, w.epoch)
	if s.real != nil {
		s.real.compute(me, iter)
	}
}

// takes is how long an iteration computes, in nanoseconds: the base with its noise or the next time of the trace,
// and the injected slowness.
func (w *worker) takes(m *configs.Simulate, iter int64) int64 {
	base := float64(m.Compute) * w.multiple
	noisy := base
	switch n := &m.Noise; n.Kind {
	case "normal":
		noisy = max(0.01*base, base+float64(base*float64(n.Spread*w.draw.NormFloat64())))
	case "exponential":
		noisy = base + float64(base*float64(n.Spread*w.draw.ExpFloat64()))
	case "two_state":
		if p := w.draw.Float64(); w.phase {
			w.phase = p >= n.Leave
		} else {
			w.phase = p < n.Enter
		}
		if w.phase {
			noisy = base * n.Factor
		}
	case "trace":
		noisy = float64(w.trace[w.replayed%len(w.trace)])
		w.replayed++
	}
	d := noisy
	for _, f := range w.slow {
		if iter < f.From || f.Until > 0 && iter >= f.Until {
			continue
		}
		d += float64(f.Sleep)
		if f.Factor > 1 {
			d += float64((f.Factor - 1) * noisy)
		}
	}
	return int64(d)
}

// computed ends an iteration: all its pieces are ready, last layer first.
func (s *simulation) computed(me int32, epoch int32) {
	w := &s.workers[me]
	if w.dead || !w.busy || epoch != w.epoch {
		return
	}
	w.busy = false
	if s.o.Computed != nil {
		s.o.Computed(int(me), w.node.Iter(), time.Duration(w.from), time.Duration(s.now))
	}
	w.samples += w.batch
	w.spans.Add(metrics.Compute, time.Duration(s.now-w.from))
	w.waitFrom = s.now
	head := wire.Header{Samples: w.batch, Blocked: w.blocked}
	if s.real != nil {
		r := &s.real.replicas[me]
		head.Loss, head.Correct = r.loss, int64(r.correct)
	}
	s.stepWorker(me, core.Input{Kind: core.Forwarded, Msg: head})
	for _, p := range s.pieces {
		s.stepWorker(me, core.Input{Kind: core.PieceReady, Piece: p})
	}
	s.stepWorker(me, core.Input{Kind: core.TaskDone})
}

// pause holds up what a worker computes.
func (s *simulation) pause(me int32, p Pause) {
	w := &s.workers[me]
	if w.dead || w.done {
		return
	}
	w.resume = max(w.resume, s.now) + int64(p.For)
	if w.busy {
		w.until += int64(p.For)
		w.epoch++
		s.q.after(s.now, w.until-s.now, evComputed, me, w.epoch)
	}
}

// lose ends a worker in the middle of whatever it does. Its servers notice as fast as a message travels.
func (s *simulation) lose(me int32) {
	w := &s.workers[me]
	if w.dead || w.done {
		return
	}
	w.dead, w.busy, w.died = true, false, s.now
	s.ended = s.now
	s.undone--
	s.lost++
	for m := range s.servers {
		left := message{head: wire.Header{Kind: wire.Left, Worker: me, Clock: int64(w.life)}, life: w.life}
		s.q.after(s.now, s.latency, evTold, int32(len(s.workers)+m), s.messages.put(left))
	}
}
