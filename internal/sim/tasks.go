package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core"
	"fluentps/internal/core/inturn"
	"fluentps/internal/plan/build"
	"fluentps/internal/show/metrics"
	"fluentps/ps/scheme"
)

// Runs with a policy that says which samples a worker computes (internal/core/task.go). A task is computed in grains of samples, as in
// internal/rank/train/work.go. All grains but the last are one event each; the last one has the stages of compute.go, and hands the
// sums over.
//
//	a grain begins   StepBegun: the policy may cancel the samples behind it
//	the last one     forward ─ Forwarded ─ backward ─ PieceReady of all pieces ─ TaskDone
//
// A grain of n samples costs n/b of what an iteration of its worker costs, whose own batch has b samples: so the grains of a batch cost
// what the batch costs, and the fixed part of the cost model makes no small grain expensive. Slowness of faults is that of the worker
// that computes, in its own iteration, and is spread in the same way. A message between workers costs latency only, and to merge a part
// costs a server what a fold costs. If a worker is lost, the other workers hear of it when the servers do.

// tasking is the task of a worker.
type tasking struct {
	task    core.Task
	iter    int64 // the worker's own iteration that began last; -1: none
	isOwn   bool  // the task is the worker's first one of its own iteration
	isOn    bool  // the task is not done
	mustCut bool  // no grain has begun
	isLast  bool  // the current grain is the last one
	next, n int32 // first sample of the current grain, and number of its samples
	limit   int32 // end of the task: the first sample that is not computed
	began   int64 // when the first grain began
	own     int64 // time of the grains before the last one, without slowness
	sums    wire.Header
	kept    []keptTask // of the iteration

	stretch    float64 // how much longer computing takes with the threads that the worker has; 0: as long as is modelled
	threadsSum int64   // of its own iterations
}

// keptTask is a task that was computed and is pushed later.
type keptTask struct {
	task core.Task
	sums wire.Header
}

// taken is how many samples of the task were computed.
func (k *tasking) taken() int64 { return int64(k.next + k.n - k.task.From) }

// text names the task of a worker that is not done; "": there is none.
func (k *tasking) text() string {
	if t := &k.task; k.isOn {
		return fmt.Sprintf(" computes part %d of worker %d's iteration %d, samples %d to %d of [%d, %d)", t.Part, t.Owner,
			t.Iter, k.next, k.next+k.n, t.From, k.limit)
	}
	return ""
}

// takeAxes makes the policies of the work axis, if there are any. Each is watched by the checker.
func (s *Simulation) takeAxes() error {
	s.policies.axes = (&build.Run{Config: s.cfg, Roles: s.roles, Hosts: worldOf(s.cfg), Axes: s.o.Axes}).AxesInUse()
	if s.policies.axes.Work == nil {
		return nil
	}
	switch {
	case len(s.o.Joins) > 0:
		return errors.New("a policy says which samples each worker computes (work.policy), and knows no worker that " +
			"comes back; leave --join out, or set work.policy: fixed")
	case s.cfg.DealsBatches() || s.cfg.Local.IsSet() || s.cfg.InRounds():
		return errors.New("a policy says which samples each worker computes, but their batches or steps are dealt by " +
			"another policy, or the workers go in rounds; set work.policy: fixed, local.policy: none and baseline: none")
	}
	code, err := s.cfg.Code(len(s.roles.Workers))
	if err != nil {
		return fmt.Errorf("work.code: %w", err)
	}
	s.policies.code = code
	policy := s.policies.axes.Work
	s.policies.axes.Work = func(worker int) core.Work { return &watched{policy(worker), s, int32(worker)} }
	return nil
}

// refuseScheme fails for a scheme that does not go with pushes that are parts.
func (s *Simulation) refuseScheme(rule int, ss *inturn.ShardScheme) error {
	if !s.HasTasks() {
		return nil
	}
	if r := &s.cfg.Sync[rule]; ss.Shared || ss.Norms && s.policies.axes.Parts > 1 ||
		s.CopyOf(rule).Kind != scheme.Pulled || r.Push == configs.PushDelta {
		return fmt.Errorf("a policy says which samples each worker computes, but scheme %s for %q needs whole pushes; "+
			"set a scheme without copies, norms and grants that pushes gradients, or work.policy: fixed", r.Scheme, r.Match)
	}
	return nil
}

// tasksText describes the model of tasks.
func tasksText(parts int, threadsMove bool) string {
	text := "tasks    a step of n samples costs n/b of an iteration with a batch of b"
	if threadsMove {
		text += "; with p times device.threads it takes 1/p of the time"
	}
	if parts > 1 {
		text += "; messages between workers cost latency, and to merge a part costs what a fold costs"
	}
	return text
}

// beginTask begins a task that the node has ordered.
func (s *Simulation) beginTask(me int32, t core.Task) {
	w := &s.workers[me]
	k := &w.tasks
	*k = tasking{task: t, kept: k.kept, stretch: k.stretch, threadsSum: k.threadsSum, iter: k.iter, isOn: true,
		mustCut: true, next: t.From, limit: t.To}
	if t.To == 0 {
		k.limit = int32(s.workers[t.Owner].batch)
	}
	w.pass.took = 0
	if k.isOwn = t.Owner == me && t.Iter != k.iter; !k.isOwn {
		return
	}
	k.iter, w.pass.iter, k.kept = t.Iter, t.Iter, k.kept[:0]
	if t.Threads > 0 {
		k.stretch, k.threadsSum = float64(s.cfg.Device.Threads)/float64(t.Threads), k.threadsSum+int64(t.Threads)
	}
	s.started(me, t.Iter)
	if s.values != nil {
		s.values.BeginTasks(me)
	}
}

// cancel shortens the task of a worker. The samples of grains that have begun stay.
func (s *Simulation) cancel(me int32, e *core.Effect) {
	k := &s.workers[me].tasks
	if t := e.Task(); !k.isOn || t.Owner != k.task.Owner || t.Iter != k.task.Iter || t.Part != k.task.Part {
		s.Fail("worker %d: samples of task %+v are cancelled while it computes %+v", me, t, k.task)
	}
	k.limit = min(k.limit, e.Dst)
}

// cutGrain begins the next grain of a task.
func (s *Simulation) cutGrain(me int32) {
	w := &s.workers[me]
	k := &w.tasks
	isFirst := k.mustCut
	k.mustCut = false
	if isFirst {
		s.waited(w)
		k.began = s.now
	}
	if k.task.Keep == core.Again {
		s.pushKept(me)
		return
	}
	batch := int32(s.workers[k.task.Owner].batch)
	end := min(batch, k.limit)
	if k.task.Until > 0 && !isFirst && s.now-k.began > int64(k.task.Until) {
		end = k.next
		s.observer.TaskTimedOut(me)
	}
	grain := k.task.Grain
	if grain <= 0 {
		grain = batch
	}
	k.n = max(0, min(grain, end-k.next))
	s.stepWorker(me, core.Input{Kind: core.StepBegun, Msg: wire.Header{Samples: int64(k.next + k.n)}})
	end = min(end, k.limit) // the policy may have given samples away, but none of this grain
	k.isLast = k.next+k.n >= end
	own, injected, late := w.takesGrain(k.iter, int64(k.next), int64(k.n), k.isOwn && isFirst)
	k.sums.Samples += int64(k.n)
	if s.values != nil {
		last := int64(-1)
		if k.isLast {
			last = k.sums.Samples
		}
		loss, correct := s.values.ComputeGrain(me, Grain{Task: k.task, From: k.next, N: k.n, IsFirst: isFirst, Last: last})
		k.sums.Loss, k.sums.Correct = k.sums.Loss+loss, k.sums.Correct+correct
	}
	if k.isLast {
		w.pass.stage, w.pass.own, w.pass.injected, w.pass.late, w.pass.more = 0, own, injected, late, 0
		w.pass.stalled, w.pass.read, w.waitFrom = true, true, s.now
		s.proceed(me)
		return
	}
	k.own += own
	w.pass.busy = true
	w.pass.epoch++
	w.pass.from, w.pass.until = s.now, max(s.now, w.pass.resume)+own+injected+late
	s.q.after(s.now, w.pass.until-s.now, evComputed, me, w.pass.epoch)
}

// grainDone ends a grain that is not the last one.
func (s *Simulation) grainDone(me int32) {
	w := &s.workers[me]
	w.pass.busy = false
	w.pass.took += s.now - w.pass.from
	w.spans.Add(metrics.Compute, time.Duration(s.now-w.pass.from))
	w.waitFrom = s.now
	w.tasks.next += w.tasks.n
	s.cutGrain(me)
}

// takesGrain is how long a grain of n samples from one on computes in the worker's own iteration, in nanoseconds; own, injected and late
// are those of takes. The cost of computing is that of a worker with so many threads; with p times as many it takes 1/p of the time.
func (w *worker) takesGrain(iter, from, n int64, isFirst bool) (own, injected, late int64) {
	share := float64(n) / float64(w.batch)
	if w.tasks.stretch > 0 {
		share *= w.tasks.stretch
	}
	base, pushing, a := w.amounts(iter, from, from+n)
	base, pushing = time.Duration(share*float64(base)), time.Duration(share*float64(pushing))
	if isFirst {
		late = int64(w.slow.Before(iter))
	}
	return int64(base), int64(a.Of(base - pushing)), late
}

// taskDone ends the task of a worker: all its pieces were handed over.
func (s *Simulation) taskDone(me int32) {
	w := &s.workers[me]
	k := &w.tasks
	w.samples += k.taken()
	w.pace.Add(time.Duration(w.pass.took))
	if k.isOwn {
		w.blocked = 0
	}
	k.isOn = false
	if k.task.Keep == core.Kept {
		s.keep(me)
	}
	s.observer.TaskDone(me, k.task)
	s.stepWorker(me, core.Input{Kind: core.TaskDone})
}

// keep keeps the gradients of a task; of a code it keeps their sum, with the header of the worker's own batch.
func (s *Simulation) keep(me int32) {
	k := &s.workers[me].tasks
	isMore := s.policies.code != nil && k.task.Owner != me
	if !isMore {
		k.kept = append(k.kept, keptTask{task: k.task, sums: k.sums})
	}
	if s.values != nil {
		s.values.Keep(me, k.task.Owner, isMore)
	}
}

// pushKept pushes the gradients of a task that was computed before. That takes no time.
func (s *Simulation) pushKept(me int32) {
	w := &s.workers[me]
	k := &w.tasks
	i := slices.IndexFunc(k.kept, func(t keptTask) bool { return t.task.Owner == k.task.Owner && t.task.Iter == k.task.Iter })
	if i < 0 {
		s.Fail("exactly once: worker %d pushes %+v, which it has not kept", me, k.task)
		return
	}
	k.isLast, k.n, k.sums = true, 0, k.kept[i].sums
	if s.values != nil {
		s.values.Restore(me, i)
	}
	w.pass.stage, w.pass.own, w.pass.injected, w.pass.late, w.pass.more = 0, 0, 0, 0, 0
	w.pass.stalled, w.pass.read, w.waitFrom = true, true, s.now
	s.proceed(me)
}

// loseTasks tells the other workers of a loss.
func (s *Simulation) loseTasks(me int32) {
	if !s.HasTasks() {
		return
	}
	s.workers[me].tasks.isOn = false
	for to := range s.workers {
		if int32(to) != me {
			s.q.after(s.now, s.latency, evPeerLost, int32(to), me)
		}
	}
}

// peerLost tells a worker that another one was lost.
func (s *Simulation) peerLost(me, lost int32) {
	if !s.workers[me].dead {
		s.stepWorker(me, core.Input{Kind: core.Arrived, Msg: wire.Header{Kind: wire.Peer, Flags: wire.Gone, Worker: lost}})
	}
}
