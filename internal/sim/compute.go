package sim

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/core/shard"
	"fluentps/internal/policy/straggler"
	"fluentps/internal/show/metrics"
	"fluentps/internal/show/metrics/timings"
)

// An iteration computes in stages: forward of each layer from the first to the last, then backward of each layer from the last to
// the first. Forward of a layer waits for its parameters. Backward of a layer waits until the gradients that it overwrites have
// left; at its end the pieces of the layer are ready. Consecutive stages that nothing can delay are one event.
//
// Forward is a third of the computing, because backward has two products where forward has one. The share of a layer in either is
// its share of the parameters [R], or equal for model synthetic. Without send.overlap the whole net is one layer.

// stages describe the layers and the shares of computing of the model.
type stages struct {
	pieces [][]int32 // per layer, in arena order
	late   bool      // the net is one layer: all gradients are handed over at the end of backward
	done   []float64 // share of the computing that is done before each of the 2L stages, and 1 at the end
}

const forwardShare = 1.0 / 3

func newStages(c *configs.Config, p *shard.Plan, overlap bool) stages {
	if !overlap {
		all := make([]int32, len(p.Pieces))
		for i := range all {
			all[i] = int32(i)
		}
		order := int32(1) // last layers first
		if c.InRounds() {
			order = -1 // in the order of the model
		}
		slices.SortStableFunc(all, func(a, b int32) int { return int(order * (p.Pieces[b].Layer - p.Pieces[a].Layer)) })
		return stages{late: true, pieces: [][]int32{all}, done: []float64{0, forwardShare, 1}}
	}
	layers := 1
	for i := range p.Params {
		layers = max(layers, p.Params[i].Layer+1)
	}
	n := stages{pieces: make([][]int32, layers), done: make([]float64, 2*layers+1)}
	for i := range p.Pieces {
		n.pieces[p.Pieces[i].Layer] = append(n.pieces[p.Pieces[i].Layer], p.Pieces[i].ID)
	}
	before := make([]int64, layers+1) // parameters, or layers, before each
	var all int64
	for i := range p.Params {
		size := int64(p.Params[i].N)
		if c.Model.Name == "synthetic" {
			size = 1
		}
		before[p.Params[i].Layer+1] += size
		all += size
	}
	for l := range layers {
		before[l+1] += before[l]
	}
	for l := range layers + 1 {
		share := float64(before[l]) / float64(all)
		n.done[l] = float64(forwardShare * share)
		n.done[2*layers-l] = 1 - float64((1-forwardShare)*share)
	}
	return n
}

// text describes the model of computing.
func (n *stages) text(c *configs.Config) string {
	switch {
	case n.late:
		return "all gradients are ready at its end, and no overlap"
	case len(n.pieces) == 1:
		return "all gradients are ready at its end"
	case c.Model.Name == "synthetic":
		return fmt.Sprintf("forward 1/3, backward 2/3, %d equal layers in turn", len(n.pieces))
	}
	return fmt.Sprintf("forward 1/3, backward 2/3, %d layers in turn by their parameters", len(n.pieces))
}

// layer is the layer of a stage of backward.
func (n *stages) layer(stage int) int { return 2*len(n.pieces) - 1 - stage }

// pass is how far a worker is in its iteration. Times are in virtual nanoseconds.
type pass struct {
	iter     int64
	stage    int              // the next stage, or the first one of the running stages
	to       int              // the stage after the running stages
	own      int64            // time of the iteration without injected slowness
	injected int64            // slowness between forward and backward
	late     int64            // slowness after the update, before the iteration
	more     int64            // time of the steps after the first one, of a worker that takes several
	took     int64            // time of the finished stages
	busy     bool             // stages are running
	stalled  bool             // the next stage has been waiting since waitFrom
	read     bool             // all parameters have been read
	epoch    int32            // of the running stages: an evComputed of another epoch is void
	from     int64            // when the running stages began
	until    int64            // when the running stages end
	resume   int64            // when the pause ends
	rest     [2]time.Duration // blocked and pull since the iteration that was recorded last
}

// before is the time that all stages before stage take.
func (w *worker) before(n *stages, stage int) int64 {
	at := int64(float64(float64(w.pass.own) * n.done[stage]))
	if stage > 0 {
		at += w.pass.late
	}
	if stage > len(n.pieces) {
		at += w.pass.injected + w.pass.more
	}
	return at
}

// compute starts an iteration, or a task.
func (s *Simulation) compute(me int32, e *core.Effect) {
	w, iter := &s.workers[me], e.Iter
	if s.HasTasks() {
		s.beginTask(me, e.Task())
		return
	}
	if w.steps.steps != nil {
		s.beginOwn(me, iter)
		return
	}
	w.pass.iter, w.pass.stage, w.pass.took = iter, 0, 0
	w.pass.stalled, w.pass.read = true, false
	s.setBatch(me, iter)
	w.pass.own, w.pass.injected, w.pass.late = w.takes(iter)
}

// proceed starts the next stages, if the first of them need not wait.
func (s *Simulation) proceed(me int32) {
	w := &s.workers[me]
	layers := len(s.stages.pieces)
	stage := w.pass.stage
	for stage < layers && w.node.Readable(stage) {
		stage++
	}
	if w.pass.stage == 0 && w.pass.late > 0 && stage < layers { // it sleeps after the whole update
		return
	}
	forward := w.pass.stage < layers
	if stage >= layers && s.reads(me) && w.node.Writable(s.stages.layer(stage)) {
		stage++
	}
	if stage == w.pass.stage {
		return
	}
	w.pass.stalled = false
	if forward {
		s.waited(w)
	} else {
		w.spans.Add(metrics.Push, time.Duration(s.now-w.waitFrom))
	}
	w.pass.busy, w.pass.to = true, stage
	w.pass.epoch++
	w.pass.from = s.now
	w.pass.until = max(s.now, w.pass.resume) + w.before(&s.stages, w.pass.to) - w.before(&s.stages, w.pass.stage)
	s.q.after(s.now, w.pass.until-s.now, evComputed, me, w.pass.epoch)
}

// reads says whether all parameters of the iteration have arrived. The first time it also computes the real gradients: the
// parameters do not change until the gradients are ready.
func (s *Simulation) reads(me int32) bool {
	w := &s.workers[me]
	if w.pass.read || w.node.State() != core.Computing {
		return w.pass.read
	}
	w.pass.read = true
	s.started(me, w.pass.iter)
	if w.steps.steps != nil {
		s.computeRound(me)
		return true
	}
	if s.values != nil {
		s.values.Compute(me, w.pass.iter)
	}
	return true
}

// computed ends the running stages. After backward of a layer the pieces of the layer are ready.
func (s *Simulation) computed(me int32, epoch int32) {
	w := &s.workers[me]
	if w.dead || !w.pass.busy || epoch != w.pass.epoch {
		return
	}
	isWhole := w.steps.steps == nil && !w.tasks.isOn // else its stages are not those of one pass
	if !isWhole {
		w.timeline.RanTask(w.pass.iter, time.Duration(w.pass.from), time.Duration(s.now))
	}
	if w.steps.stepping {
		s.stepped(me)
		return
	}
	if w.tasks.isOn && !w.tasks.isLast {
		s.grainDone(me)
		return
	}
	w.pass.busy = false
	if isWhole {
		s.ran(w)
	}
	w.pass.stage = w.pass.to
	w.pass.took += s.now - w.pass.from
	w.spans.Add(metrics.Compute, time.Duration(s.now-w.pass.from))
	w.waitFrom = s.now
	layers := len(s.stages.pieces)
	if w.pass.stage == layers+1 {
		s.forwarded(me)
	}
	if w.pass.stage > layers {
		if w.pass.stage == 2*layers {
			s.recorded(me)
			s.tallied(me)
		}
		for _, p := range s.stages.pieces[s.stages.layer(w.pass.stage-1)] {
			if w.tasks.isOn && w.tasks.task.Keep == core.Kept {
				break // nothing is pushed now
			}
			s.stepWorker(me, core.Input{Kind: core.PieceReady, Piece: p})
		}
	}
	if w.pass.stage < 2*layers {
		w.pass.stalled = true
		s.proceed(me)
		return
	}
	if w.tasks.isOn {
		s.taskDone(me)
		return
	}
	w.samples += w.pushed()
	w.pace.Add(time.Duration(w.pass.took))
	w.blocked = 0
	s.stepWorker(me, core.Input{Kind: core.TaskDone})
}

// ran tells the timeline of the stages that have run.
func (s *Simulation) ran(w *worker) {
	if w.timeline == nil {
		return
	}
	layers := len(s.stages.pieces)
	end := func(stage int) time.Duration {
		return time.Duration(max(w.pass.from, w.pass.until-w.before(&s.stages, w.pass.to)+w.before(&s.stages, stage)))
	}
	for stage := w.pass.stage; stage < w.pass.to; stage++ {
		layer := stage
		if stage >= layers {
			layer = s.stages.layer(stage)
		}
		w.timeline.Ran(w.pass.iter, layer, stage >= layers, end(stage), end(stage+1))
	}
	if w.pass.to == 2*layers {
		w.timeline.RanAll(w.pass.iter)
	}
}

// recorded tells of an iteration whose computing is over.
func (s *Simulation) recorded(me int32) {
	w := &s.workers[me]
	isExtra := w.tasks.isOn && !w.tasks.isOwn // it belongs to no iteration of the worker, unless its push is a sum
	start, took := time.Duration(s.now-w.pass.took), time.Duration(w.pass.took)
	if s.o.Computed != nil && (!isExtra || s.policies.code != nil) {
		s.o.Computed(int(me), w.pass.iter, start, time.Duration(s.now))
	}
	if s.o.Iterations != nil && !isExtra {
		w.pass.rest = [2]time.Duration{}
		s.o.Iterations[me].Add(timings.Iteration{Iter: w.pass.iter, Start: start, Compute: took,
			Injected: took - time.Duration(w.tasks.own+w.pass.own+w.pass.more), Samples: int(w.pushed())})
	}
}

// forwarded gives the node the values that its pushes report. The node needs them when the first piece is ready.
func (s *Simulation) forwarded(me int32) {
	w := &s.workers[me]
	head := wire.Header{Samples: w.batch}
	if w.tasks.isOn {
		head = w.tasks.sums
		s.observer.TaskComputed(me, head.Samples)
	} else if w.steps.steps != nil {
		head = s.reported(me)
	} else if s.values != nil {
		head.Loss, head.Correct = s.values.Loss(me)
	}
	head.Blocked = w.blocked
	s.stepWorker(me, core.Input{Kind: core.Forwarded, Msg: head})
}

// pushed is the number of samples of the worker's iteration.
func (w *worker) pushed() int64 {
	if w.steps.steps != nil {
		return w.steps.done
	}
	if w.tasks.isOn {
		return w.tasks.taken()
	}
	return w.batch
}

// takes is how long an iteration computes, in nanoseconds. own is what its batch costs, or the time of the recorded iteration that it
// replays. injected is the slowness of faults, which delays the worker between forward and backward, and late that before the iteration.
func (w *worker) takes(iter int64) (own, injected, late int64) {
	base, pushing, a := w.amounts(iter, 0, w.batch)
	return int64(base), int64(a.Of(base - pushing)), int64(w.slow.Before(iter))
}

// amounts are the time that the batch of an iteration computes, the part of it that a recorded run spent on pushing, and the slowness of
// the samples [from, to).
func (w *worker) amounts(iter, from, to int64) (base, pushing time.Duration, a straggler.Amount) {
	base, a = w.cost.Of(w.batch), w.slow.Part(iter, from, to, w.batch)
	if r, ok := w.slow.Recorded(iter); ok {
		base, pushing, a.Least = w.cost.Stretched(r, w.batch), r.Push, 0
	}
	return base, pushing, a
}

// pause delays the computing of a worker.
func (s *Simulation) pause(me int32, p Pause) {
	w := &s.workers[me]
	if w.dead || w.done {
		return
	}
	w.pass.resume = max(w.pass.resume, s.now) + int64(p.For)
	if w.pass.busy {
		w.pass.until += int64(p.For)
		w.pass.epoch++
		s.q.after(s.now, w.pass.until-s.now, evComputed, me, w.pass.epoch)
	}
}

// Cost is what an iteration of one worker computes by its batch, C(b) = fixed + perSample·b, in nanoseconds.
type Cost struct {
	Fixed, PerSample float64
}

// CostOf is the configured cost of a worker.
func CostOf(m *configs.Simulate, worker int) Cost {
	c := Cost{float64(m.Compute.Fixed), float64(m.Compute.PerSample)}
	factor, fixed := 1.0, 1.0
	if len(m.PerWorker) > 0 {
		factor = m.PerWorker[worker]
		fixed = factor
	}
	if len(m.FixedPerWorker) > 0 {
		fixed = m.FixedPerWorker[worker]
	}
	return Cost{c.Fixed * fixed, c.PerSample * factor}
}

func (c Cost) Of(batch int64) time.Duration {
	return time.Duration(c.Fixed + float64(c.PerSample*float64(batch)))
}

// Stretched is the time of a recorded iteration for another batch. Nothing is known of the batch of an old recording.
func (c Cost) Stretched(r straggler.Recorded, batch int64) time.Duration {
	if r.Samples == 0 || int64(r.Samples) == batch {
		return r.Own
	}
	was, is := c.Of(int64(r.Samples)), c.Of(batch)
	if was == 0 {
		return r.Own
	}
	return time.Duration(float64(r.Own) * float64(is) / float64(was))
}
