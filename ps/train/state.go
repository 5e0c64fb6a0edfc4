package train

import (
	"fmt"
	"slices"

	"fluentps/configs"
	"fluentps/ps/build"
	"fluentps/ps/shard"
)

// State is what the file of a worker holds beside its vectors: the residual of its pushes, if it has one, then the
// vectors of its own optimizer. Its samples are a function of the iteration.
type State struct {
	Next     int64 `json:"next"`
	Residual bool  `json:"residual"`
	Steps    int64 `json:"steps"` // of its own optimizer
}

// Vectors is how many vectors the file of each worker holds, and whether the first of them is a residual.
func Vectors(c *configs.Config, p *shard.Plan) (n int, residual bool, err error) {
	if residual = c.Payload.Residual(); residual {
		n++
	}
	if slices.ContainsFunc(p.Pieces, func(q shard.Piece) bool { return len(c.DeltaRuns(p, &q)) > 0 }) {
		update, err := c.Update()
		if err != nil {
			return 0, false, err
		}
		n += update.Rule.State()
	}
	return n, residual, nil
}

// Save gives what is saved of a worker: vectors in the order of the state, which stay its own.
func (w *Side) Save() (state State, vectors [][]float32) {
	state.Next = w.node.Next()
	if w.enc.residual != nil {
		state.Residual = true
		vectors = append(vectors, w.enc.residual.F32())
	}
	if w.deltas.local != nil {
		of, steps := w.deltas.local.State()
		state.Steps, vectors = steps, append(vectors, of...)
	}
	return state, vectors
}

// Resume puts back what a worker keeps beside the parameters.
func (w *Side) Resume(of State, vectors [][]float32) error {
	if w.node == nil { // a member keeps nothing
		return nil
	}
	var into [][]float32
	if w.enc.residual != nil && of.Residual {
		into = append(into, w.enc.residual.F32())
	}
	if w.deltas.local != nil {
		state, _ := w.deltas.local.State()
		into = append(into, state...)
		w.deltas.local.Resume(of.Steps)
	}
	if len(into) != len(vectors) {
		return fmt.Errorf("worker %d kept %d vectors, and needs %d now; go on with the payload and push of then", w.me, len(vectors), len(into))
	}
	for i, v := range vectors {
		if len(v) != len(into[i]) {
			return fmt.Errorf("worker %d kept a vector of %d elements, and it has %d now", w.me, len(v), len(into[i]))
		}
		copy(into[i], v)
	}
	return nil
}

// Renew makes the node anew after a pause, where the one before stood.
func (w *Side) Renew(start *build.Start) {
	if old := w.node; old != nil {
		w.makeNode(start)
		w.node.Succeed(old)
	}
	w.done = false
}

// Next is the iteration that the worker computes next; 0 of a member.
func (w *Side) Next() int64 {
	if w.node == nil {
		return 0
	}
	return w.node.Next()
}
