package steps

import (
	"fmt"
	"math"

	"fluentps/internal/comm/wire"
	"fluentps/internal/policy/local"
)

// Next is what a worker does next.
type Next uint8

const (
	Await Next = iota // wait for the answers to the last push, and tell Granted
	Step              // take a step
	Push              // push
	Vote              // tell all others Ballot, and then tell Decided what came of it
)

// Next says what the worker does next. granted says that the answers to its last push are there. It begins a round if none is open.
func (w *Worker) Next(granted bool) Next {
	if !w.open && w.needsAnswer() && !granted {
		return Await
	}
	if !w.open {
		w.round, w.open, w.count.Done = w.policy.Round(w.now()), true, 0
	}
	r := &w.round
	full := w.count.Done >= r.Steps
	switch {
	case !w.count.Began: // the first parameters are taken over before anything else
		return Await
	case w.count.Merged, w.entry.Late && !full:
		switch {
		case full:
			return Push
		case r.Votes && w.count.Done > 0 && w.voted != w.count.Done:
			return Vote
		}
		return Step
	case r.Open && full && !granted: // it goes on until the answers are there
		return Step
	case w.entry.Late: // the answers are taken over when the push is made
		if granted {
			return Push
		}
		return Await
	case w.count.Done < r.Ahead:
		return Step
	}
	return Await
}

// needsAnswer says whether the length of a round follows from the answer to the last push. A run that has resumed does not know what the
// budget leaves before that answer.
func (w *Worker) needsAnswer() bool {
	return !w.entry.Runs() || !w.count.Began || w.untold && w.o.Budget > 0
}

// now is what the worker knows of the run.
func (w *Worker) now() local.Now {
	n := local.Now{Step: w.count.Step, Left: -1, Loss: w.told.Loss, Share: w.told.Share}
	if w.o.Budget > 0 {
		left := max(0, w.o.Budget-w.told.Samples)
		n.Left = max(0, (left+w.o.Batch-1)/w.o.Batch-(w.count.Step-w.answered))
	}
	return n
}

// Granted tells the worker of the answer to its last push: its exchange is over, and all of the answer is in global. Where the policy takes
// it over at once, Take of every layer must follow.
func (w *Worker) Granted(p wire.Progress) {
	w.told, w.answered, w.untold = p, w.count.Pushed, false
	clear(w.taken)
}

// TakesNow says whether the answer must be taken over now.
func (w *Worker) TakesNow() bool { return !w.count.Began || !w.entry.Late && !w.count.Merged }

// Take takes over the servers' parameters of a layer. A second call for an answer does nothing.
func (w *Worker) Take(layer int) {
	if w.vec == nil || w.taken[layer] {
		return
	}
	w.taken[layer] = true
	keep := float32(0)
	if w.count.Began && w.entry.Take == local.Mix {
		keep = float32(w.o.Spec.Keep)
	}
	for _, id := range w.o.Layers[layer] {
		p := &w.o.Plan.Pieces[id]
		if w.count.Began && w.o.Fragments != nil && !w.o.Fragments.Due(p.Shard, w.count.Last) {
			continue
		}
		w.takePiece(p.Lo, p.Hi, keep)
	}
}

func (w *Worker) takePiece(lo, hi int, keep float32) {
	w.vec.Arrived(lo, hi)
	w.vec.Mix(lo, hi, keep)
	if w.base == Base {
		w.vec.Copy(Base, Global, lo, hi)
	}
}

// Taken ends the taking over: all layers were taken.
func (w *Worker) Taken() {
	for layer := range w.o.Layers {
		w.Take(layer)
	}
	w.count.Began, w.count.Merged = true, true
	if w.entry.Late { // the first answer; the next is taken over with the next push
		w.count.Merged = false
	}
}

// Last says whether the step that begins is the last of its round for sure, so that a layer can be pushed as soon as it is ready.
func (w *Worker) Last() bool {
	return w.open && w.count.Merged && !w.entry.Late && w.count.Done+1 == w.round.Steps
}

// Begin begins a step.
func (w *Worker) Begin() { w.vec.Begin() }

// Backwarded says that the gradients of all layers are final, which are sums over so many samples: it clips them.
func (w *Worker) Backwarded(samples int64) {
	if w.clip != nil {
		w.clip.vectors(w.vec, samples)
	}
}

// MovesAtEnd says whether Move of any layer must follow Backwarded. Else it may follow as soon as the gradients of the layer are final.
func (w *Worker) MovesAtEnd() bool { return w.clip != nil }

// Clipped is the number of steps whose gradients were clipped; of is the number of all since this process runs.
func (w *Worker) Clipped() (clipped, of int64) { return w.clip.Counts() }

// Move takes the step of one layer, whose gradients are final, along the sum over samples.
func (w *Worker) Move(layer int, samples int64) {
	for _, q := range w.runs[layer] {
		w.vec.Step(q, w.count.Step, samples)
	}
	for _, s := range w.stats[layer] {
		w.vec.Scale(Own, Grads, s.lo, s.hi, 1/float32(samples))
	}
}

// MoveBy moves the worker's parameters of a layer by the mean of changes that ranks of its team made; Grads has their sum, each weighted by
// its samples, of which there are so many in all.
func (w *Worker) MoveBy(layer int, samples int64) {
	for _, q := range w.runs[layer] {
		w.vec.Add(Own, Grads, q.Lo, q.Hi, 1/float32(samples))
	}
	for _, s := range w.stats[layer] {
		w.vec.Scale(Own, Grads, s.lo, s.hi, 1/float32(samples))
	}
}

// Computed counts the samples of the step that began for the next pushes.
func (w *Worker) Computed(of Sums) {
	w.count.Samples += of.Samples
	for i := range w.count.Since {
		s := &w.count.Since[i]
		s.Samples, s.Correct, s.Loss = s.Samples+of.Samples, s.Correct+of.Correct, s.Loss+of.Loss
	}
}

// Ended ends a step, whose layers were all moved.
func (w *Worker) Ended() {
	w.count.Step++
	w.count.Done++
	if local.Votes(w.policy) {
		w.ballot = local.Observe(w.policy, w.norm())
	}
}

// norm is the norm of the gradients of the last step, summed over its samples; 0 where only steps are counted.
func (w *Worker) norm() float64 {
	var sum float64
	for _, runs := range w.runs {
		for _, q := range runs {
			sum += w.vec.Squares(Grads, q.Lo, q.Hi)
		}
	}
	return math.Sqrt(sum)
}

// Ballot is the worker's vote after its last step, which is the given one of its round.
func (w *Worker) Ballot() (step int64, exchange bool) { return w.count.Done, w.ballot }

// Decided tells what all workers have decided.
func (w *Worker) Decided(exchange bool) {
	if w.voted = w.count.Done; exchange {
		w.round.Steps = w.count.Done
	}
}

// Pushes are the sums that the push of an exchange reports.
func (w *Worker) Pushes(exchange int64) Sums { return w.count.Since[w.fragmentOf(exchange)] }

func (w *Worker) fragmentOf(exchange int64) int64 {
	if w.o.Fragments == nil {
		return 0
	}
	return exchange % w.o.Fragments.N()
}

// Make makes the push of a layer of an exchange. The host can read it when Make returns.
func (w *Worker) Make(layer int, exchange int64) {
	samples := float32(w.Pushes(exchange).Samples)
	weight := float32(1)
	if w.entry.Weigh == local.BySamples {
		weight = samples
	}
	if w.readsGlobal() {
		w.eachPiece(layer, w.count.Last, w.vec.Arrived)
	}
	for _, list := range [][]span{w.stats[layer], w.state[layer]} {
		for _, s := range list {
			w.vec.Scale(Outgoing, Own, s.lo, s.hi, samples)
		}
	}
	for _, q := range w.runs[layer] {
		if w.entry.Take == local.Elastic {
			w.vec.Change(Outgoing, Own, Global, q.Lo, q.Hi, float32(w.o.Spec.Pull))
			w.vec.Change(Own, Own, Outgoing, q.Lo, q.Hi, 1)
			continue
		}
		w.vec.Change(Outgoing, Own, w.base, q.Lo, q.Hi, weight)
		if s := w.o.Spec.Compensate; s > 0 && w.count.Last >= 0 {
			rate := w.o.Update.Rate(float64(w.count.Step - 1))
			if rate > 0 {
				w.vec.Compensate(q.Lo, q.Hi, float32(s/rate), weight)
			}
		}
	}
	w.eachPiece(layer, exchange, w.vec.Leave)
	w.vec.Left()
}

// readsGlobal says whether making or ending a push reads what the servers answered to the last one.
func (w *Worker) readsGlobal() bool {
	return w.entry.Late && (w.entry.Take == local.Elastic || w.count.Last >= 0)
}

// eachPiece calls f with the pieces of a layer that are part of an exchange.
func (w *Worker) eachPiece(layer int, exchange int64, f func(lo, hi int)) {
	for _, id := range w.o.Layers[layer] {
		if p := &w.o.Plan.Pieces[id]; w.o.Fragments == nil || w.o.Fragments.Due(p.Shard, exchange) {
			f(p.Lo, p.Hi)
		}
	}
}

// rebase continues from the servers' parameters after a push. After the first push there is no answer yet, and the worker goes on from
// where it is: what it changes from then on belongs to the next push.
func (w *Worker) rebase() {
	if w.vec == nil {
		return
	}
	if w.count.Last < 0 {
		w.vec.Copy(Base, Own, 0, w.o.Plan.Arena)
		return
	}
	w.vec.Copy(Own, Global, 0, w.o.Plan.Arena)
	w.vec.Copy(Base, Global, 0, w.o.Plan.Arena)
}

// Pushed ends the round: the push of an exchange was made. The samples are those that the worker counts with it.
func (w *Worker) Pushed(exchange int64) (samples int64) {
	if !w.open {
		panic(fmt.Sprintf("steps: a push of exchange %d without a round", exchange))
	}
	if w.entry.Late && w.entry.Take == local.Replace {
		w.rebase()
	}
	if w.o.Fragments == nil || w.fragmentOf(exchange) == 0 {
		w.count.Pushed = w.count.Step
	}
	w.count.Since[w.fragmentOf(exchange)] = Sums{}
	w.count.Last, w.open, w.count.Done, w.count.Merged, w.voted = exchange, false, 0, false, 0
	samples, w.count.Samples = w.count.Samples, 0
	if !w.entry.Runs() {
		w.count.Began = false
	}
	return samples
}
