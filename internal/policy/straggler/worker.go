package straggler

import (
	"fmt"
	"time"
)

// Worker is all slowness of one worker. The zero value is none.
type Worker struct {
	within []Injector // of an iteration
	after  []Injector // of an update, before the next iteration
	parts  int64      // equal parts of an iteration within each of which no spec draws twice; below 2: an iteration has one draw
}

// partsMax is the largest number of such parts, since each costs a draw.
const partsMax = 10_000

// Add adds a spec. It fails for a kind that is not in the table.
func (w *Worker) Add(s Spec, e Env) error {
	i, err := New(s, e)
	if err != nil || i == nil {
		return err
	}
	if entry, _ := All.Lookup(s.Kind); entry.After {
		w.after = append(w.after, i)
		return nil
	}
	w.within = append(w.within, i)
	if d, parts := i.(*bounded).draws, max(1, w.parts); d > 1 {
		if w.parts = parts / gcd(parts, d) * d; w.parts > partsMax {
			return fmt.Errorf("straggler: worker %d has slowness with %d draws of an iteration beside others with %d parts "+
				"of it: %d parts in all, must be at most %d; let one number divide the other", e.Worker, d, parts, w.parts, partsMax)
		}
	}
	return nil
}

func gcd(a, b int64) int64 {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// None reports whether nothing slows the worker.
func (w *Worker) None() bool { return len(w.within)+len(w.after) == 0 }

// Within returns what iteration iter takes beyond its computing, of all specs together: factors multiply each other, and sleeps are added.
func (w *Worker) Within(iter int64) Amount { return w.Part(iter, 0, 1, 1) }

// Part is Within for the samples [from, to) of a batch. The parts of an iteration add up to the whole. What is behind the batch's end
// belongs to other workers, and goes on in the same way.
func (w *Worker) Part(iter, from, to, batch int64) (all Amount) {
	if from >= to {
		return Amount{}
	}
	share := float64(to-from) / float64(batch)
	if w.parts < 2 {
		all = w.at(iter, 0)
		if share == 1 {
			return all
		}
		return all.Part(share)
	}
	var sleep float64
	for k := from * w.parts / batch; k*batch < to*w.parts; k++ {
		of := float64(min((k+1)*batch, to*w.parts)-max(k*batch, from*w.parts)) / float64(batch*w.parts) // of the batch
		a := w.at(iter, k)
		all.Times += float64(a.Times*of) / share
		sleep += float64(float64(a.Sleep) * of)
		all.Least = a.Least // of the whole iteration
	}
	all.Sleep, all.Least = time.Duration(sleep), time.Duration(share*float64(all.Least))
	return all
}

// at combines the specs in a part of an iteration.
func (w *Worker) at(iter, k int64) (all Amount) {
	for _, i := range w.within {
		a := i.(*bounded).at(iter, k, max(1, w.parts))
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
