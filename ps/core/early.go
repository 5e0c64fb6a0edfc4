package core

import (
	"fmt"
	"slices"

	"fluentps/ps/scheme"
)

// A worker may start forward on a layer when that layer's parameters are there, while replies for others are on their
// way, and even pushes of the last iteration that the send policy holds back (as P3 and ByteScheduler do [A]):
//
//	the exchange of iteration i     pushes ──────► replies ──────────► the last one is in: the exchange of i+1 begins
//	iteration i+1                                  Compute ─ forward ─ layer by layer ─ ... ─ Forwarded ─ backward
//
// Compute comes when it is known which iteration is next and that there is one, and layer 0 is readable. Which one: a
// shard whose scheme may send a worker past iterations must have answered; and the lead shard, whose answers say stop.
// All else that belongs to an exchange, such as the clock that the next pushes report, follows when it is over. Forward
// reads every layer, so that it cannot be over before.
//
// Nothing changes under a kernel: a layer is readable when all that is to be written to its parameters before the next
// iteration was written; a version that is published meanwhile stays beside them until the next push was let go.

// early is what a worker knows layer by layer.
type early struct {
	on      bool    // else an iteration starts when the last exchange is over, and all of it was sent
	says    []bool  // per shard: it must have answered before the next iteration starts
	silent  int     // shards that must have and have not
	pieces  []piece // as in the plan
	ofLayer []layer // per layer
	begun   bool    // Compute of the next iteration was given, and the exchange of this one is not over
	started int64   // which iteration that is
}

type piece struct {
	landed bool // it is in the arena, for the reply that is awaited or came last
	flying bool // its gradient was given to the transport, which has not said that it is done with it
}

type layer struct {
	missing int // pieces that are not yet as the next iteration reads them
	flying  int
}

// StartEarly lets the worker start an iteration when its first layer is there. maySkip says of a rule whether its shards
// may send a worker past iterations (MaySkip). It is called before the first input. The driver then asks Readable before
// it reads a layer's parameters, and Writable before it writes its gradients.
func (w *Worker) StartEarly(maySkip func(rule int) bool) {
	w.early.on = true
	for i := range w.plan.Shards {
		w.early.says[i] = i == 0 || maySkip(w.plan.Shards[i].Rule)
	}
}

// MaySkip says whether a shard with these schemes in turn may answer with an iteration beyond the next one: under a scheme
// whose v may pass workers by, and, to be safe, wherever schemes change.
func MaySkip(phases []scheme.Phase) bool {
	return len(phases) > 1 || slices.ContainsFunc(phases, func(ph scheme.Phase) bool {
		e, ok := scheme.Lookup(ph.Scheme)
		return !ok || e.Behind
	})
}

func (w *Worker) makeLayers() {
	w.early.says = make([]bool, len(w.plan.Shards))
	w.early.pieces = make([]piece, len(w.plan.Pieces))
	layers := 1
	for _, p := range w.plan.Pieces {
		layers = max(layers, int(p.Layer)+1)
	}
	w.early.ofLayer = make([]layer, layers)
	w.awaitLayers()
}

// awaitLayers begins an exchange: no layer may be read before it was renewed.
func (w *Worker) awaitLayers() {
	for p := range w.plan.Pieces {
		w.early.pieces[p].landed = false
		w.early.ofLayer[w.plan.Pieces[p].Layer].missing++
	}
	w.early.silent = 0
	for s := range w.shards {
		w.early.silent += w.says(int32(s))
		if w.rests(int32(s)) {
			w.readableCopy(int32(s))
		}
	}
}

// says is 1 where the next iteration does not start before the shard has answered. Before the first any of them may say
// where it is.
func (w *Worker) says(s int32) int {
	if w.early.says[s] || w.first < 0 {
		return 1
	}
	return 0
}

// Readable says whether the parameters of a layer are those that the iteration started last is to read. They stay so
// until PieceReady of its pieces.
func (w *Worker) Readable(l int) bool {
	return w.state == Computing || l >= len(w.early.ofLayer) || w.early.ofLayer[l].missing == 0
}

// Writable says whether backward of the iteration started last may write the gradients of a layer: nothing of its
// last ones is to be sent any more.
func (w *Worker) Writable(l int) bool {
	return w.state == Computing && (l >= len(w.early.ofLayer) || w.early.ofLayer[l].flying == 0)
}

// landedIn notes a piece of a reply.
func (w *Worker) landedIn(id int32) {
	p := &w.plan.Pieces[id]
	w.early.pieces[id].landed = true
	if w.shards[p.Shard].replied {
		w.early.ofLayer[p.Layer].missing--
	}
}

// answered notes the header of a reply: the pieces that are there are those of its version.
func (w *Worker) answered(s int32) {
	w.early.silent -= w.says(s)
	for _, p := range w.plan.Shards[s].Pieces {
		if w.early.pieces[p.ID].landed {
			w.early.ofLayer[p.Layer].missing--
		}
	}
}

// readableCopy notes that a copy will do.
func (w *Worker) readableCopy(s int32) {
	w.early.silent -= w.says(s)
	for _, p := range w.plan.Shards[s].Pieces {
		w.early.ofLayer[p.Layer].missing--
	}
}

func (w *Worker) fly(id int32) {
	w.flying++
	w.early.pieces[id].flying = true
	w.early.ofLayer[w.plan.Pieces[id].Layer].flying++
}

func (w *Worker) flown(id int32) {
	w.flying--
	w.early.pieces[id].flying = false
	w.early.ofLayer[w.plan.Pieces[id].Layer].flying--
}

// mayStart says whether the next iteration may start, though this one's exchange may not be over.
func (w *Worker) mayStart() bool {
	switch {
	case w.early.begun || w.stop || w.hasHelp() && w.first >= 0 || w.state != Pushing && w.state != Waiting:
		return false
	case !w.early.on:
		return w.state == Waiting && w.open == 0 && w.flying == 0
	}
	return w.early.silent == 0 && w.Readable(0)
}

// isIn says whether a shard has said where to go on: by a reply, or because the worker's copy will do.
func (w *Worker) isIn(s int32) bool {
	return w.shards[s].replied || w.rests(s) || w.copies != nil && w.copies[s].settled
}

// beingRead says whether kernels may read a shard's parameters, or may begin to at any time.
func (w *Worker) beingRead(s int32) bool { return w.early.begun && w.isIn(s) }

// checkLayers holds the counts to what they count.
func (w *Worker) checkLayers() error {
	flying, silent := 0, 0
	for s := range int32(len(w.shards)) {
		if !w.isIn(s) {
			silent += w.says(s)
		}
	}
	layers := make([]layer, len(w.early.ofLayer))
	for i := range w.plan.Pieces {
		p, q := &w.plan.Pieces[i], &w.early.pieces[i]
		if q.flying {
			flying++
			layers[p.Layer].flying++
		}
		if sh := &w.shards[p.Shard]; !(sh.replied && q.landed) && (sh.pulled || !w.isIn(p.Shard)) {
			layers[p.Layer].missing++
		}
	}
	if flying != w.flying || silent != w.early.silent || !slices.Equal(layers, w.early.ofLayer) {
		return fmt.Errorf("core: worker %d has %d pieces on the way, by layer %+v, and %d shards are silent; counted %d, %+v, %d", w.me, flying, layers, silent, w.flying, w.early.ofLayer, w.early.silent)
	}
	return nil
}
