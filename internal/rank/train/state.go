package train

import (
	"fmt"
	"slices"

	"fluentps/internal/comm/wire"
	"fluentps/internal/configs"
	"fluentps/internal/core/shard"
	"fluentps/internal/core/steps"
	"fluentps/internal/plan/build"
	"fluentps/internal/plan/layout"
	"fluentps/internal/policy/payload"
	"fluentps/internal/policy/work"
	"fluentps/internal/rank/station"
)

// State is the header of a worker's checkpoint file. The vectors follow: the residual of its pushes, if it has one, then
// the vectors of its own optimizer. The samples are a function of the iteration.
type State struct {
	Next     int64 `json:"next"`
	Residual bool  `json:"residual"`
	Steps    int64 `json:"steps"` // of the worker's own optimizer
	// Own is how far the worker is with steps of its own; nil: every step is an exchange.
	Own *steps.Count `json:"own,omitempty"`
	// Thresholds are by piece what the codec of pushes remembers. A run whose pieces have another number forgets them.
	Thresholds []payload.Memory `json:"thresholds,omitempty"`
	// Tallies are what the ranks of the worker's team measured under their present plan and under the one before, two
	// for each rank; nil: batches never change.
	Tallies []work.Tally `json:"tallies,omitempty"`
	// Learned is what the worker's policy of work has learned; nil: nothing.
	Learned *work.Learned `json:"learned,omitempty"`
}

// Vectors returns how many vectors the file of each worker holds, and whether the first one is a residual.
func Vectors(c *configs.Config, p *shard.Plan) (n int, residual bool, err error) {
	if residual = c.Payload.Residual(); residual {
		n++
	}
	if c.Local.IsSet() {
		_, saved := layout.StepVectors(c)
		return n + int(saved), residual, nil
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

// Save returns the worker's state and its vectors, which are not copied.
func (w *Side) Save() (state State, vectors [][]float32) {
	state.Next = w.node.Next()
	if w.enc.residual != nil {
		state.Residual = true
		vectors = append(vectors, w.enc.residual.F32())
	}
	state.Thresholds = slices.Clone(w.enc.memory)
	w.dealing.save(&state)
	state.Learned = work.NewLearned(w.station.Config.Work.Policy, len(w.station.Roles.Workers), w.node.Learned())
	if w.deltas.local != nil {
		optimizer, steps := w.deltas.local.State()
		state.Steps, vectors = steps, append(vectors, optimizer...)
	}
	if own := w.deltas.own; own != nil {
		count, steps, more := own.own.Save()
		state.Own, state.Steps, vectors = &count, steps, append(vectors, more...)
	}
	return state, vectors
}

// Resume restores the worker's state beside the parameters. dealt is the assignment of batches; nil: they never change.
func (w *Side) Resume(saved State, vectors [][]float32, dealt *work.Assignment) error {
	w.dealing.resume(dealt, saved.Tallies)
	if w.node == nil { // a member keeps nothing
		return nil
	}
	w.node.DealUntil(w.dealing.until())
	if err := w.node.Recall(saved.Learned.Of(w.station.Config.Work.Policy, len(w.station.Roles.Workers))); err != nil {
		return fmt.Errorf("worker %d: %w", w.me, err)
	}
	if len(saved.Thresholds) == len(w.enc.memory) {
		copy(w.enc.memory, saved.Thresholds)
	}
	var into [][]float32
	if w.enc.residual != nil && saved.Residual {
		into = append(into, w.enc.residual.F32())
	}
	if w.deltas.local != nil {
		state, _ := w.deltas.local.State()
		into = append(into, state...)
		w.deltas.local.Resume(saved.Steps)
	}
	if own := w.deltas.own; own != nil && saved.Own == nil {
		own.own.StartAt(saved.Next)
	} else if own != nil {
		_, _, more := own.own.Save()
		into = append(into, more...)
		if err := own.own.Resume(saved.Own, saved.Steps); err != nil {
			return fmt.Errorf("worker %d: %w; resume with the local section of the checkpoint", w.me, err)
		}
	}
	if len(into) != len(vectors) {
		return fmt.Errorf("worker %d saved %d vectors and needs %d now; resume with the local section, the payload and "+
			"the push of the checkpoint", w.me, len(vectors), len(into))
	}
	for i, v := range vectors {
		if len(v) != len(into[i]) {
			return fmt.Errorf("worker %d saved a vector of %d elements, and it has %d now", w.me, len(v), len(into[i]))
		}
		copy(into[i], v)
	}
	if own := w.deltas.own; own != nil && saved.Own != nil {
		own.own.Restored()
	}
	return nil
}

// Renew replaces the node after a pause, at the clock of the old one.
func (w *Side) Renew(start *build.Start) {
	if old := w.node; old != nil {
		w.makeNode(start)
		w.node.Succeed(old)
		if err := w.node.Recall(old.Learned()); err != nil {
			panic(fmt.Sprintf("train: worker %d: a policy cannot read its own memory: %v", w.me, err))
		}
	}
	w.dealing.renew()
	w.done = false
}

// Next is the next iteration of the worker; 0 for a member.
func (w *Side) Next() int64 {
	if w.node == nil {
		return 0
	}
	return w.node.Next()
}

// keepState copies the worker's state for a checkpoint, if the node says that it is due.
func (w *Side) keepState() {
	if w.node == nil || w.station.Net.Err() != nil {
		return
	}
	if iter, due := w.node.TakeSave(); due {
		w.writeState(iter)
	}
}

// KeepAll copies the worker's state in a pause, and begins to write it.
func (w *Side) KeepAll() {
	if w.node != nil {
		w.writeState(w.node.Next())
	}
}

// writeState copies the worker's state before iteration iter, and begins to write it.
func (w *Side) writeState(iter int64) {
	state, vectors := w.Save()
	if own := w.deltas.own; own != nil && own.own.Err() != nil { // what could not be copied is in no checkpoint
		w.station.Net.Fail(fmt.Errorf("rank %d, worker %d: checkpoint before iteration %d: %w", w.station.Me, w.index, iter, own.own.Err()))
		return
	}
	state.Next = iter
	w.arenas.savedCopies = station.CopyInto(w.arenas.savedCopies, vectors)
	w.o.Write(wire.FileSaved{Kind: wire.WorkerFile, Index: int32(w.me), Version: iter}, state, w.arenas.savedCopies, func() {})
}
