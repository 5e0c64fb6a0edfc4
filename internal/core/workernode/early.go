package workernode

import (
	"fmt"
	"slices"

	"fluentps/internal/core"
)

// A worker may start forward on a layer when that layer's parameters are there. Replies for other layers may still be
// in flight, and the send policy may still hold pushes of the last iteration (as P3 and ByteScheduler do [A]):
//
//	the exchange of iteration i     pushes ──────► replies ──────────► the last one is in: the exchange of i+1 begins
//	iteration i+1                                  Compute ─ forward ─ layer by layer ─ ... ─ Forwarded ─ backward
//
// Compute is given when layer 0 is readable and the worker knows that there is a next iteration and which one. For that
// knowledge it must have the answers of shards whose scheme may send a worker past iterations, and the answer of the
// lead shard, which says stop. All else that belongs to an exchange, such as the clock that the next pushes report,
// follows when the exchange is over. Forward reads every layer, so it cannot end before the exchange does.
//
// Nothing changes under a kernel. A layer is readable when all writes to its parameters before the next iteration are
// done. A version that is published meanwhile stays beside the parameters until the next push was released.

// early is the worker's progress layer by layer.
type early struct {
	on          bool    // iterations may start early; else one starts when the last exchange is over and all of it was sent
	mustAnswer  []bool  // per shard: it must answer before the next iteration starts
	unanswered  int     // shards that must answer and have not
	pieces      []piece // indexed as in the plan
	layers      []layer
	nextStarted bool  // Compute of the next iteration was given, and the exchange of the current one is not over
	nextIter    int64 // the iteration that was started last
}

type piece struct {
	landed   bool // the piece is in the arena, for the current reply or the last one
	inFlight bool // the transport is sending its gradient: SendPiece was given, PieceSent has not arrived
}

type layer struct {
	missing  int // pieces that the next iteration cannot read yet
	inFlight int
}

// StartEarly lets the worker start an iteration when its first layer is there. maySkip says of a rule whether its
// shards may send a worker past iterations (MaySkip). StartEarly must be called before the first input. The driver must
// then ask Readable before it reads a layer's parameters, and Writable before it writes its gradients.
func (w *Worker) StartEarly(maySkip func(rule int) bool) {
	w.early.on = true
	for i := range w.plan.Shards {
		w.early.mustAnswer[i] = i == 0 || maySkip(w.plan.Shards[i].Rule)
	}
}

func (w *Worker) makeLayers() {
	w.early.mustAnswer = make([]bool, len(w.plan.Shards))
	w.early.pieces = make([]piece, len(w.plan.Pieces))
	layers := 1
	for _, p := range w.plan.Pieces {
		layers = max(layers, int(p.Layer)+1)
	}
	w.early.layers = make([]layer, layers)
	w.awaitLayers()
}

// awaitLayers begins an exchange: from now on each layer is readable only after it was refreshed.
func (w *Worker) awaitLayers() {
	for p := range w.plan.Pieces {
		w.early.pieces[p].landed = false
		w.early.layers[w.plan.Pieces[p].Layer].missing++
	}
	w.early.unanswered = 0
	for s := range w.shards {
		w.early.unanswered += w.answersDue(int32(s))
		if w.isResting(int32(s)) {
			w.noteCopyReady(int32(s))
		}
	}
}

// answersDue is 1 where the shard must answer before the next iteration starts, else 0. Before the worker's first
// iteration every shard must answer, since any of them may say where the worker starts.
func (w *Worker) answersDue(s int32) int {
	if w.early.mustAnswer[s] || w.first < 0 {
		return 1
	}
	return 0
}

// Readable says whether the parameters of a layer are those that the iteration started last must read. They stay so
// until PieceReady of the layer's pieces.
func (w *Worker) Readable(l int) bool {
	return w.state == core.Computing || l >= len(w.early.layers) || w.early.layers[l].missing == 0
}

// Writable says whether backward of the iteration started last may write the gradients of a layer: all of the layer's
// previous gradients were sent.
func (w *Worker) Writable(l int) bool {
	return w.state == core.Computing && (l >= len(w.early.layers) || w.early.layers[l].inFlight == 0)
}

// noteLanded notes a piece of a reply.
func (w *Worker) noteLanded(id int32) {
	p := &w.plan.Pieces[id]
	w.early.pieces[id].landed = true
	if w.shards[p.Shard].replied {
		w.early.layers[p.Layer].missing--
	}
}

// noteReply notes the header of a reply: the pieces that have landed belong to its version.
func (w *Worker) noteReply(s int32) {
	w.early.unanswered -= w.answersDue(s)
	for _, p := range w.plan.Shards[s].Pieces {
		if w.early.pieces[p.ID].landed {
			w.early.layers[p.Layer].missing--
		}
	}
}

// noteCopyReady notes that the worker's copy of a shard is good enough for the next iteration.
func (w *Worker) noteCopyReady(s int32) {
	w.early.unanswered -= w.answersDue(s)
	for _, p := range w.plan.Shards[s].Pieces {
		w.early.layers[p.Layer].missing--
	}
}

func (w *Worker) noteSending(id int32) {
	w.sending.inFlight++
	w.early.pieces[id].inFlight = true
	w.early.layers[w.plan.Pieces[id].Layer].inFlight++
}

func (w *Worker) noteSent(id int32) {
	w.sending.inFlight--
	w.early.pieces[id].inFlight = false
	w.early.layers[w.plan.Pieces[id].Layer].inFlight--
}

// mayStart says whether the next iteration may start, even if the current exchange is not over.
func (w *Worker) mayStart() bool {
	switch {
	case w.early.nextStarted || w.replies.stop || w.lacksBatch() || w.hasExtra() && w.first >= 0 || w.state != core.Pushing &&
		w.state != core.Waiting:
		return false
	case !w.early.on:
		return w.state == core.Waiting && w.replies.open == 0 && w.sending.inFlight == 0
	}
	return w.early.unanswered == 0 && w.Readable(0)
}

// hasAnswered says whether the worker knows from a shard where to continue: from a reply, or because its copy is good
// enough.
func (w *Worker) hasAnswered(s int32) bool {
	return w.shards[s].replied || w.isResting(s) || w.copies != nil && w.copies[s].settled
}

// beingRead says whether kernels may read a shard's parameters now, or begin to at any time.
func (w *Worker) beingRead(s int32) bool { return w.early.nextStarted && w.hasAnswered(s) }

// checkLayers verifies the counters.
func (w *Worker) checkLayers() error {
	flying, silent := 0, 0
	for s := range int32(len(w.shards)) {
		if !w.hasAnswered(s) {
			silent += w.answersDue(s)
		}
	}
	layers := make([]layer, len(w.early.layers))
	for i := range w.plan.Pieces {
		p, q := &w.plan.Pieces[i], &w.early.pieces[i]
		if q.inFlight {
			flying++
			layers[p.Layer].inFlight++
		}
		if sh := &w.shards[p.Shard]; !(sh.replied && q.landed) && (sh.pulled || !w.hasAnswered(p.Shard)) {
			layers[p.Layer].missing++
		}
	}
	if flying != w.sending.inFlight || silent != w.early.unanswered || !slices.Equal(layers, w.early.layers) {
		return fmt.Errorf("core: worker %d has %d pieces in flight, by layer %+v, and %d shards have not answered; "+
			"counted %d, %+v, %d", w.me, flying, layers, silent, w.sending.inFlight, w.early.layers, w.early.unanswered)
	}
	return nil
}
