package workernode

import (
	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
)

// The worker's half of saving a version while training runs, and of a pause (resume.go and stop.go of servernode say what both halves
// do).

// Succeed takes over the counters of the worker before a pause.
func (w *Worker) Succeed(old *Worker) {
	w.Counts = old.Counts
}

// Next is the iteration that a finished worker would compute next.
func (w *Worker) Next() int64 { return max(w.replies.next, w.iter+1) }

// noteMarks notes the flags of a reply that the pushes of its iteration must carry, too.
func (w *Worker) noteMarks(m *wire.Header) {
	if m.Flags&wire.Save != 0 {
		w.marks.save = m.Iter
	}
	if m.Flags&wire.Change != 0 {
		w.marks.change = m.Iter
	}
}

// markPushes marks the pushes of an iteration if the reply into it carried the flags Save or Change.
func (w *Worker) markPushes() {
	if w.iter == w.marks.save {
		w.head.Flags |= wire.Save
	}
	if w.iter == w.marks.change {
		w.head.Flags |= wire.Change
	}
}

// AwaitsSave says that a checkpoint will need the worker's own state as it is after an iteration that has begun.
func (w *Worker) AwaitsSave() bool { return w.marks.save >= 0 }

// TakeSave says, once, that a checkpoint needs the worker's own state as it is now: the marked iteration was the last,
// and the worker has begun the exchange of the next one, iter, and has handed nothing over.
func (w *Worker) TakeSave() (iter int64, due bool) {
	if w.marks.save < 0 || w.iter <= w.marks.save || w.state != core.Computing || w.head.Kind != 0 || w.isInExtra() {
		return 0, false
	}
	w.marks.save = -1
	return w.iter, true
}
