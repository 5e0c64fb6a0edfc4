package tasks

import (
	"fmt"
	"slices"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// model is a cluster of policies in virtual time: what workernode.Worker, its driver and the servers do with orders, once more
// and as dumbly as possible. A worker is an own task, a list of extra ones and a current step; the servers are one table
// of parts. What takes time is asked of the test, so that a test can draw every delay.
type model struct {
	spec    work.Spec
	batches []int
	ahead   int64                                                  // iterations that a worker may be ahead of the slowest; 0: bsp
	delay   func(what string) time.Duration                        // of a message, a reply, a push, the start of a computation
	cost    func(worker int32, now time.Duration) float64          // nanoseconds per sample
	dropped func() bool                                            // of a lost worker's message or push: it never arrives
	fail    func(format string, args ...any)                       // must not return
	said    func(now time.Duration, from, to int32, m wire.Header) // nil: nobody listens
	worked  func(from, to time.Duration, by int32, t core.Task)    // the same, of a step

	lost func(w int32) // the same, of a worker that is lost

	now     time.Duration
	nexts   []modelEvent
	seq     int
	workers []*modelWorker
	parts   map[modelIter]map[int32][2]int32 // the samples of the parts that have landed
	count   map[modelIter]int32              // the number of parts, from the owner's part
	done    []int64                          // by worker: its iterations that are complete
	out     []bool                           // by worker: the servers know that it has left or was lost
	by      map[modelIter][]int32            // who computed each sample of a complete iteration

	messages, gives, extras, computations int
	threads                               modelThreads
}

// modelThreads are the threads of the workers' kernels: a ledger of who gave one, and to whom it has come.
type modelThreads struct {
	given, come, used []int32 // by worker; used: in its iteration
	moved             int
}

const modelBase = 2 // threads of a worker at first

// hostsOf puts two workers on a host.
func hostsOf(workers int) (hosts []int32) {
	for w := range workers {
		hosts = append(hosts, int32(w/2))
	}
	return hosts
}

type modelEvent struct {
	at  time.Duration
	seq int
	do  func()
}

type modelIter struct {
	owner int32
	iter  int64
}

type modelPart struct {
	modelIter
	part int32
}

type modelPhase uint8

const (
	mWaits modelPhase = iota
	mStarts
	mComputes
	mHandsOver // its part is fixed, and its gradients are being handed over
	mPushes
)

// modelWorker is a worker of the model.
type modelWorker struct {
	me         int32
	policy     core.Work
	phase      modelPhase
	iter       int64 // its own iteration that was started last
	iterations int64 // after these it leaves
	reply      int64 // the replies let it start the iterations before this one
	own, cur   core.Task
	inExtra    bool
	starting   bool
	queue      []core.Task
	next, n    int32
	limit      int32
	owed       int
	left, lost bool
	assigned   map[modelPart]bool
	lastTo     []time.Duration // when the last message to a worker arrives
	cutTo      []bool          // no message to a worker arrives any more
	knowsGone  []bool          // by worker: it was told that the worker is gone
}

func newModel(s work.Spec, batches []int, iterations []int64) *model {
	m := &model{spec: s, batches: batches, parts: map[modelIter]map[int32][2]int32{}, count: map[modelIter]int32{},
		by:   map[modelIter][]int32{},
		done: make([]int64, len(batches)), out: make([]bool, len(batches))}
	m.threads = modelThreads{given: make([]int32, len(batches)), come: make([]int32, len(batches)),
		used: slices.Repeat([]int32{modelBase}, len(batches))}
	for w := range batches {
		e := Env{Me: int32(w), Batches: batches, Threads: modelBase, Hosts: hostsOf(len(batches))}
		m.workers = append(m.workers, &modelWorker{me: int32(w), policy: New(s, e), iter: -1, iterations: iterations[w],
			assigned: map[modelPart]bool{}, lastTo: make([]time.Duration, len(batches)), cutTo: make([]bool, len(batches)),
			knowsGone: make([]bool, len(batches))})
	}
	return m
}

func (m *model) after(d time.Duration, do func()) {
	m.seq++
	m.nexts = append(m.nexts, modelEvent{m.now + d, m.seq, do})
}

// run runs until nothing happens any more, and checks that everything is done then.
func (m *model) run(eventsMax int) {
	for _, w := range m.workers {
		m.after(m.delay("reply"), func() { m.replied(w, 1) })
	}
	for n := 0; len(m.nexts) > 0; n++ {
		if n > eventsMax {
			m.fail("no end after %d events, %d messages: %s", n, m.messages, m)
		}
		first := 0
		for i := range m.nexts {
			if e, f := &m.nexts[i], &m.nexts[first]; e.at < f.at || e.at == f.at && e.seq < f.seq {
				first = i
			}
		}
		e := m.nexts[first]
		m.nexts = slices.Delete(m.nexts, first, first+1)
		m.now = e.at
		e.do()
	}
	for w, k := range m.workers {
		if !k.lost && (!k.left || m.done[w] != k.iterations) {
			m.fail("worker %d waits for ever, with %d of %d iterations complete: %s", w, m.done[w], k.iterations, m)
		}
	}
}

func (m *model) String() (s string) {
	for _, w := range m.workers {
		s += fmt.Sprintf("\nworker %d iteration %d phase %d now %+v queue %+v left %t lost %t, %d complete, reply %d: %v",
			w.me, w.iter, w.phase, w.cur, w.queue, w.left, w.lost, m.done[w.me], w.reply, w.policy)
		if i := (modelIter{w.me, m.done[w.me]}); len(m.parts[i]) > 0 {
			s += fmt.Sprintf("; parts %v of %d of iteration %d have landed", m.parts[i], m.count[i], i.iter)
		}
	}
	return s
}

// tell tells a policy of an event and obeys it.
func (m *model) tell(w *modelWorker, ev core.WorkEvent) {
	ev.At = m.now
	for _, o := range w.policy.Step(ev, nil) {
		switch o.Kind {
		case core.Assign:
			m.assign(w, o.Task)
		case core.CancelWork:
			m.cancel(w, o.Task)
		case core.Divide:
			if t := o.Task; t.Owner != w.me || t.Iter != w.own.Iter || t.Parts <= w.own.Parts || w.inExtra ||
				w.phase != mStarts && w.phase != mComputes {
				m.fail("worker %d divides %+v: %s", w.me, t, m)
			}
			w.own.Parts = o.Task.Parts
		case core.Tell:
			m.send(w, o.To, o.Msg)
		}
	}
	if most := Parts(m.spec, m.batches); int(w.own.Parts) > most {
		m.fail("worker %d: iteration %d has %d parts, at most %d are allowed", w.me, w.own.Iter, w.own.Parts, most)
	}
}

func (m *model) assign(w *modelWorker, t core.Task) {
	name := modelPart{modelIter{t.Owner, t.Iter}, t.Part}
	isOwn := w.starting && t.Owner == w.me
	switch {
	case w.left, t.From < 0, t.To > 0 && t.From >= t.To, int(t.To) > m.batches[t.Owner], t.Owner == w.me &&
		t.Iter != w.iter, isOwn != (t.Part == 0), w.assigned[name]:
		m.fail("worker %d is assigned %+v; twice: %t: %s", w.me, t, w.assigned[name], m)
	}
	w.assigned[name] = true
	if isOwn {
		w.own = t
	} else {
		w.queue = append(w.queue, t)
	}
}

func (m *model) cancel(w *modelWorker, t core.Task) {
	isIt := func(u core.Task) bool { return u.Owner == t.Owner && u.Iter == t.Iter && u.Part == t.Part }
	switch i := slices.IndexFunc(w.queue, isIt); {
	case w.starting && t.Owner == w.me:
		m.fail("worker %d cancels its own task while it starts", w.me)
	case i >= 0 && t.To <= w.queue[i].From:
		w.queue = slices.Delete(w.queue, i, i+1)
		delete(w.assigned, modelPart{modelIter{t.Owner, t.Iter}, t.Part})
	case i >= 0:
		w.queue[i].To = min(w.queue[i].To, t.To)
	case isIt(w.cur) && (w.phase == mStarts || w.phase == mComputes):
		w.limit = min(w.limit, t.To)
	default:
		m.fail("worker %d cancels %+v, which it has not: %s", w.me, t, m)
	}
}

// send sends a message. Those of a pair of workers stay in order.
func (m *model) send(w *modelWorker, to int32, msg wire.Header) {
	if to == w.me || to < 0 || int(to) >= len(m.workers) {
		m.fail("worker %d sends %v to %d", w.me, msg, to)
	}
	msg.Worker = w.me
	if m.said != nil {
		m.said(m.now, w.me, to, msg)
	}
	if msg.Flags != wire.Gone {
		m.messages++
	}
	if msg.Flags == give {
		m.gives++
	}
	isThread := m.spec.Policy == "epsp" && msg.Flags == thread
	if isThread {
		m.threads.moved++
		m.threads.given[w.me]++
	}
	at := max(m.now+m.delay("message"), w.lastTo[to])
	w.lastTo[to] = at
	m.after(at-m.now, func() {
		k := m.workers[to]
		w.cutTo[to] = w.cutTo[to] || w.lost && m.dropped()
		switch {
		case k.lost || w.cutTo[to]:
			return
		case msg.Flags == wire.Gone:
			m.hearGone(k, w.me)
		default:
			if isThread && !k.left {
				m.threads.come[to]++
			}
			m.tell(k, core.WorkEvent{Kind: core.Came, Msg: msg})
		}
		m.advance(k)
	})
}

// advance starts what a waiting worker may start.
func (m *model) advance(w *modelWorker) {
	switch {
	case w.lost || w.left || w.phase != mWaits:
	case len(w.queue) > 0 && w.iter >= 0:
		m.extras++
		w.cur, w.inExtra = w.queue[0], true
		w.queue = w.queue[1:]
		if w.cur.Iter > w.iter || w.knowsGone[w.cur.Owner] {
			m.fail("worker %d computes %+v in its iteration %d; it knows that %v are gone", w.me, w.cur, w.iter, w.knowsGone)
		}
		m.begin(w)
		m.tell(w, core.WorkEvent{Kind: core.Begun, Task: w.cur})
	case w.reply <= w.iter+1: // the gate is closed
	case w.iter+1 < w.iterations:
		w.iter++
		w.inExtra, w.starting = false, true
		w.own = core.Task{Owner: w.me, Parts: 1, Iter: w.iter}
		m.tell(w, core.WorkEvent{Kind: core.Starting, Task: w.own})
		w.starting = false
		w.cur = w.own
		m.useThreads(w)
		m.begin(w)
	case w.owed == 0:
		w.left = true
		m.tell(w, core.WorkEvent{Kind: core.Leaves})
		for to := range m.workers {
			if int32(to) != w.me {
				m.send(w, int32(to), wire.Header{Flags: wire.Gone})
			}
		}
		m.after(m.delay("reply"), func() { m.gone(w.me) })
	}
}

func (m *model) begin(w *modelWorker) {
	m.computations++
	w.phase, w.next, w.n, w.limit = mStarts, w.cur.From, 0, w.cur.To
	if w.limit == 0 {
		w.limit = int32(m.batches[w.cur.Owner])
	}
	m.after(m.delay("start"), func() { m.step(w) })
}

// step begins the next step of a task.
func (m *model) step(w *modelWorker) {
	if w.lost {
		return
	}
	w.phase = mComputes
	grain := w.cur.Grain
	if grain == 0 {
		grain = w.limit
	}
	w.n = max(0, min(grain, w.limit-w.next))
	m.tell(w, core.WorkEvent{Kind: core.Stepped, Task: w.cur, Samples: int64(w.next + w.n)})
	isLast := w.next+w.n >= w.limit
	took := time.Duration(float64(w.n) * m.cost(w.me, m.now) * modelBase / float64(m.threads.used[w.me]))
	if m.worked != nil {
		t := w.cur
		t.From, t.To = w.next, w.next+w.n
		m.worked(m.now, m.now+took, w.me, t)
	}
	if !isLast {
		m.after(took, func() { w.next += w.n; m.step(w) })
		return
	}
	m.after(took/3, func() {
		if w.lost {
			return
		}
		m.fix(w)
		m.after(took-took/3, func() { m.handOver(w) })
	})
}

func (m *model) fix(w *modelWorker) {
	w.phase = mHandsOver
	t := w.cur
	m.tell(w, core.WorkEvent{Kind: core.Fixed, Task: t, Samples: int64(w.next + w.n - t.From)})
	if !w.inExtra {
		w.cur.Parts = w.own.Parts
	}
}

// handOver ends a computation. The push lands later, and before or after the worker knows that it has left.
func (m *model) handOver(w *modelWorker) {
	if w.lost {
		return
	}
	w.phase = mPushes
	t := w.cur
	end := w.next + w.n
	if t.Owner != w.me {
		w.owed++
	}
	m.after(m.delay("push"), func() {
		if w.lost && m.dropped() {
			return
		}
		m.landed(w.me, t, end)
		if t.Owner != w.me {
			m.after(m.delay("reply"), func() { w.owed--; m.advance(w) })
		}
	})
	m.tell(w, core.WorkEvent{Kind: core.Computed, Task: t, Samples: int64(end - t.From)})
	m.after(m.delay("sent"), func() {
		if w.lost {
			return
		}
		w.phase = mWaits
		m.advance(w)
	})
}
