package straggler

import "time"

// Worker is all slowness of one worker. The zero value is none.
type Worker struct {
	within []Injector // of an iteration
	after  []Injector // of an update, before the next iteration
}

// Add adds a spec. It fails for a kind that is not in the table.
func (w *Worker) Add(s Spec, e Env) error {
	i, err := New(s, e)
	if err != nil || i == nil {
		return err
	}
	if entry, _ := Lookup(s.Kind); entry.After {
		w.after = append(w.after, i)
	} else {
		w.within = append(w.within, i)
	}
	return nil
}

// None reports whether nothing slows the worker.
func (w *Worker) None() bool { return len(w.within)+len(w.after) == 0 }

// Within returns what iteration iter takes beyond its computing, of all specs together: factors multiply each other, and sleeps are added.
func (w *Worker) Within(iter int64) (all Amount) {
	for _, i := range w.within {
		a := i.Draw(iter)
		all = Amount{Times: all.Times + a.Times + float64(all.Times*a.Times), Sleep: all.Sleep + a.Sleep, Least: max(all.Least, a.Least)}
	}
	return all
}

// Before returns how long the worker sleeps before iteration iter, after the update that the iteration before made.
func (w *Worker) Before(iter int64) (sum time.Duration) {
	if iter == 0 {
		return 0
	}
	for _, i := range w.after {
		sum += i.Draw(iter - 1).Sleep
	}
	return sum
}

// Recorded returns the iteration of a real run that iteration iter replays; ok is false if it replays none.
func (w *Worker) Recorded(iter int64) (r Recorded, ok bool) {
	for _, i := range w.within {
		if b, is := i.(*bounded); is && b.has(iter) {
			if t, is := b.Injector.(replay); is {
				return t.trace.At(iter), true
			}
		}
	}
	return Recorded{}, false
}
