package tasks

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/internal/policy/work"
)

// Samples are lent in chunks. The owner of an iteration gives a chunk to a helper, which says when it begins it and when
// it has pushed it. When the owner has computed the rest itself, it recalls what has not begun:
//
//	owner                       helper
//	give(chunk) ──────────────► waits in the queue, or is refused: yours
//	        ◄────────────────── begun, when its computing begins
//	        ◄────────────────── done, when its gradients are being pushed
//	recall(chunk) ────────────► not begun: it forgets the chunk, and answers yours
//	        ◄────────────────── yours: the owner computes the chunk
//	        ◄────────────────── landed, when the helper leaves: the servers have acknowledged all that it has pushed
//
// A helper that has not reached the iteration of a chunk has no parameters for it, and holds it until then. The owner may
// well be first: replies to it and to the helper race with the message.
//
// A recall that crosses begun has no effect: the helper ignores it, and the owner waits for the helper's push. So at any
// time one worker alone may compute a chunk, and it counts once. If a helper is lost, the owner computes all of its chunks
// again, because it does not know which pushes have landed. If it has left, it has said that they have. A push of the
// helper that had landed is the same part of the same iteration, and counts once on the servers. A chunk is computed
// in one step, because nothing takes back what has begun.
const (
	give   uint8 = iota // compute the samples [Samples, Correct) of my iteration Iter; they are its part Part
	begun               // I compute part Part of your iteration Iter
	done                // I push it
	recall              // give part Part back, if you have not begun it
	yours               // I do not compute part Part: it is yours
	landed              // I leave, and all that I have pushed has landed
	firstKind
)

type chunkState uint8

const (
	offered  chunkState = iota // the owner has sent give
	started                    // the helper has begun it
	recalled                   // the owner has sent recall
)

// chunk is a range of samples that its owner has given away. Chunk i is part i+1 of the iteration.
type chunk struct {
	helper   int32
	from, to int32
	state    chunkState
	isPushed bool // the helper pushes it
	isLanded bool // it has landed for sure
	isBack   bool // the owner computes it
}

// lender is the owner's side for its current iteration, and the helper's side for those of others.
type lender struct {
	me, step int32
	coarse   int32 // samples of a step while the worker gives none away
	left     bool  // the worker has left the run

	iter    int64
	begun   int32 // samples [0, begun) of the iteration are computed or being computed
	end     int32 // samples [begun, end) are the worker's own
	isFixed bool  // the worker's own part is computed
	chunks  []chunk

	skips bool              // as in Env
	keeps func(*chunk) bool // a helper keeps this chunk that it has not begun when the owner is done; nil: it returns all

	borrowed []borrowed // chunks of others that the worker has not pushed
	helped   []bool     // per worker: this one has pushed a part for it
	gone     []bool     // per worker: it has left or was lost
}

type borrowed struct {
	owner, part int32
	iter        int64
	from, to    int32
	isHeld      bool // its iteration is a later one
	hasBegun    bool
}

func (b *borrowed) task() core.Task {
	return core.Task{Owner: b.owner, Part: b.part, Iter: b.iter, From: b.from, To: b.to}
}

// newLender makes the lender of a worker. Each step reads the parameters and writes gradients, so a step of few
// samples costs far more than its share of the batch. By default a worker that gives nothing away takes steps of
// twice the size: an eighth of the batch. A quarter would be more than what FlexRR calls behind, and workers that are
// equally fast would help each other.
func newLender(s work.Spec, e Env) lender {
	step := stepOf(s, e.Batches[e.Me])
	coarse := step
	if s.Micro == 0 {
		coarse = max(step, int32(e.Batches[e.Me]/8))
	}
	return lender{me: e.Me, skips: e.Skips, step: step, coarse: coarse, iter: -1, helped: make([]bool, len(e.Batches)),
		gone: make([]bool, len(e.Batches))}
}

// loan is a number of samples for a helper.
type loan struct{ helper, n int32 }

// starting begins the worker's next iteration, of so many samples, of which it lends some at once.
func (l *lender) starting(own core.Task, batch int32, loans []loan, out []core.Order) []core.Order {
	own.Grain = l.coarse
	if len(loans) > 0 || len(l.chunks) > 0 { // it gave samples away in its last iteration
		own.Grain = l.step
	}
	l.iter, l.begun, l.end, l.isFixed, l.chunks = own.Iter, 0, batch, false, l.chunks[:0]
	for _, q := range loans {
		out = append(out, l.cut(q.helper, q.n))
	}
	if len(loans) > 0 {
		own.Parts, own.To = int32(len(loans))+1, l.end
	}
	out = append(out, core.Order{Kind: core.Assign, Task: own})
	for i := range l.borrowed {
		if b := &l.borrowed[i]; b.isHeld && b.iter <= l.iter {
			b.isHeld = false
			out = append(out, core.Order{Kind: core.Assign, Task: b.task()})
		}
	}
	return out
}

// hasBorrowed says whether the worker has a chunk of another to compute now.
func (l *lender) hasBorrowed() bool {
	return slices.ContainsFunc(l.borrowed, func(b borrowed) bool { return !b.isHeld })
}

// cut makes a chunk of the last n samples of the worker's own, and the message that gives it to a helper.
func (l *lender) cut(helper, n int32) core.Order {
	c := chunk{helper: helper, from: l.end - n, to: l.end}
	l.chunks = append(l.chunks, c)
	l.end = c.from
	return tell(helper, give, wire.Header{Owner: l.me, Iter: l.iter, Part: int32(len(l.chunks)), Samples: int64(c.from), Correct: int64(c.to)})
}

// unbegun is the number of samples that can be given away. One sample always stays with its owner.
func (l *lender) unbegun() int32 {
	if l.isFixed {
		return 0
	}
	return max(0, l.end-max(1, l.begun))
}

// hasChunkAt says whether a helper has a chunk of the iteration that is not pushed.
func (l *lender) hasChunkAt(helper int32) bool {
	return slices.ContainsFunc(l.chunks, func(c chunk) bool { return c.helper == helper && !c.isPushed && !c.isBack })
}

// lend gives the last n samples of the worker's own to a helper.
func (l *lender) lend(helper, n int32, out []core.Order) []core.Order {
	message := l.cut(helper, n)
	own := core.Task{Owner: l.me, Iter: l.iter, Parts: int32(len(l.chunks)) + 1, To: l.end}
	return append(out, core.Order{Kind: core.Divide, Task: own}, core.Order{Kind: core.CancelWork, Task: own}, message)
}

// tell is a message to another worker.
func tell(to int32, kind uint8, m wire.Header) core.Order {
	m.Flags = kind
	return core.Order{Kind: core.Tell, To: to, Msg: m}
}

// follow follows an event, before the policy does.
func (l *lender) follow(ev core.WorkEvent, out []core.Order) []core.Order {
	switch ev.Kind {
	case core.Stepped:
		if l.isOwn(&ev.Task) {
			l.begun = int32(ev.Samples)
		}
	case core.Fixed:
		if l.isOwn(&ev.Task) {
			l.isFixed = true
			return l.recallAll(out)
		}
	case core.Begun:
		if b := l.find(ev.Task.Owner, ev.Task.Iter, ev.Task.Part); b >= 0 {
			l.borrowed[b].hasBegun = true
			return append(out, l.answer(&ev.Task, begun))
		}
	case core.Computed:
		if b := l.find(ev.Task.Owner, ev.Task.Iter, ev.Task.Part); b >= 0 {
			l.borrowed = slices.Delete(l.borrowed, b, b+1)
			l.helped[ev.Task.Owner] = true
			return append(out, l.answer(&ev.Task, done))
		}
	case core.Came:
		return l.came(&ev.Msg, out)
	case core.Gone:
		return l.workerGone(ev.Task.Owner, out)
	case core.Leaves:
		return l.leaves(out)
	}
	return out
}

// leaves gives back what the worker holds, and tells the owners of what it has pushed that this has landed.
func (l *lender) leaves(out []core.Order) []core.Order {
	l.left = true
	for i := range l.borrowed {
		t := l.borrowed[i].task()
		out = append(out, l.answer(&t, yours))
	}
	l.borrowed = l.borrowed[:0]
	for to, helped := range l.helped {
		if helped && !l.gone[to] {
			out = append(out, tell(int32(to), landed, wire.Header{Owner: int32(to)}))
		}
	}
	return out
}

// isOwn says whether a task is the first part of the worker's current iteration.
func (l *lender) isOwn(t *core.Task) bool { return t.Owner == l.me && t.Part == 0 && t.Iter == l.iter }

func (l *lender) answer(t *core.Task, kind uint8) core.Order {
	return tell(t.Owner, kind, wire.Header{Owner: t.Owner, Iter: t.Iter, Part: t.Part})
}

func (l *lender) find(owner int32, iter int64, part int32) int {
	return slices.IndexFunc(l.borrowed, func(b borrowed) bool { return b.owner == owner && b.iter == iter && b.part == part })
}

// recallAll asks for the chunks that no helper has begun: the worker has nothing else to compute.
func (l *lender) recallAll(out []core.Order) []core.Order {
	for i := range l.chunks {
		if c := &l.chunks[i]; c.state == offered && !c.isPushed && !c.isBack && (l.keeps == nil || !l.keeps(c)) {
			c.state = recalled
			out = append(out, tell(c.helper, recall, wire.Header{Owner: l.me, Iter: l.iter, Part: int32(i) + 1}))
		}
	}
	return out
}

// came handles a message about a chunk. A message about an earlier iteration is late: that iteration is complete.
func (l *lender) came(m *wire.Header, out []core.Order) []core.Order {
	switch m.Flags {
	case give:
		if l.gone[m.Owner] { // nobody waits for it
			return out
		}
		t := core.Task{Owner: m.Owner, Iter: m.Iter, Part: m.Part, From: int32(m.Samples), To: int32(m.Correct)}
		if l.left { // the owner hears of that, and takes the chunk back
			return out
		}
		if l.skips && t.Iter > l.iter { // the worker may wait for that very iteration
			return append(out, l.answer(&t, yours))
		}
		b := borrowed{owner: t.Owner, part: t.Part, iter: t.Iter, from: t.From, to: t.To, isHeld: t.Iter > l.iter}
		if l.borrowed = append(l.borrowed, b); b.isHeld {
			return out
		}
		return append(out, core.Order{Kind: core.Assign, Task: t})
	case recall:
		b := l.find(m.Owner, m.Iter, m.Part)
		if b < 0 || l.borrowed[b].hasBegun {
			return out
		}
		t := l.borrowed[b].task()
		return append(l.forgetBorrowed(b, out), l.answer(&t, yours))
	case landed:
		for i := range l.chunks {
			if c := &l.chunks[i]; c.helper == m.Worker && c.isPushed {
				c.isLanded = true
			}
		}
	case begun, done, yours:
		if m.Owner != l.me || m.Iter != l.iter || m.Part < 1 || int(m.Part) > len(l.chunks) {
			return out
		}
		c := &l.chunks[m.Part-1]
		switch {
		case c.isBack || c.isPushed:
		case m.Flags == begun:
			c.state = started
		case m.Flags == done:
			c.isPushed = true
		default:
			return l.takeBack(int(m.Part)-1, out)
		}
	}
	return out
}

// takeBack makes the worker compute a chunk itself.
func (l *lender) takeBack(i int, out []core.Order) []core.Order {
	c := &l.chunks[i]
	c.isBack = true
	return append(out, core.Order{Kind: core.Assign, Task: core.Task{Owner: l.me, Iter: l.iter, Part: int32(i) + 1, From: c.from, To: c.to}})
}

// forgetBorrowed drops a chunk that the worker has not begun.
func (l *lender) forgetBorrowed(b int, out []core.Order) []core.Order {
	t, isHeld := l.borrowed[b].task(), l.borrowed[b].isHeld
	if l.borrowed = slices.Delete(l.borrowed, b, b+1); isHeld {
		return out
	}
	t.To = t.From
	return append(out, core.Order{Kind: core.CancelWork, Task: t})
}

// workerGone takes back what a worker has got that has left or was lost.
func (l *lender) workerGone(w int32, out []core.Order) []core.Order {
	if l.gone[w] = true; l.left {
		return out
	}
	for i := range l.chunks {
		if c := &l.chunks[i]; c.helper == w && !c.isBack && !c.isLanded {
			out = l.takeBack(i, out)
		}
	}
	for i := len(l.borrowed) - 1; i >= 0; i-- { // nobody waits for them
		if b := l.borrowed[i]; b.owner == w && !b.hasBegun {
			out = l.forgetBorrowed(i, out)
		}
	}
	return out
}

// String says who has the chunks of the worker's iteration that were not pushed; "" if none has.
func (l *lender) String() string {
	var parts []string
	for i := range l.chunks {
		if c := &l.chunks[i]; !c.isPushed && !c.isBack {
			parts = append(parts,
				fmt.Sprintf("worker %d has samples %d to %d of its iteration %d (%s)", c.helper, c.from, c.to-1, l.iter,
					[...]string{"not begun", "begun", "recalled"}[c.state]))
		}
	}
	return strings.Join(parts, "; ")
}

// progress is how far a worker is in its iteration.
type progress struct {
	known bool
	iter  int64
	share float64       // of its own part that is begun
	usual time.Duration // of its iterations so far
	at    time.Duration
}
