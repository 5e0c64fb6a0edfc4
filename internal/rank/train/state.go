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
	"fluentps/ps/workload/external"
)

// State is the header of a worker's checkpoint file. The vectors follow: the residual of its pushes, if it has one, then
// the vectors of its own optimizer, then what its program keeps, if it does. The samples are a function of the iteration.
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
	// Script is how many bytes the worker's program keeps of its own, as for random numbers: they are in the last vector. 0: there is none.
	Script int64 `json:"script,omitempty"`
	// Learned is what the worker's policy of work has learned; nil: nothing.
	Learned *work.Learned `json:"learned,omitempty"`
}

// Vectors returns how many vectors the file of each worker holds without that of its program, and whether the first one is a residual.
func Vectors(c *configs.Config, p *shard.Plan) (n int, residual bool, err error) {
	if residual = c.Payload.Residual(); residual {
		n++
	}
	if c.Local.IsSet() {
		_, saved := layout.StepVectors(c)
		return n + int(saved), residual, nil
	}
	if slices.ContainsFunc(p.Pieces, func(q shard.Piece) bool { return c.PushesDelta(p, &q) }) {
		update, err := c.Update()
		if err != nil {
			return 0, false, err
		}
		n += update.Rule.State()
	}
	return n, residual, nil
}

// script is what the program of a worker keeps of its own, as it was after an iteration that a checkpoint awaits.
type script struct {
	vector []float32
	bytes  int64
	isKept bool
}

// Save returns the worker's state and its vectors, which are not copied. The worker must be between two iterations. It fails if the
// worker's program does.
func (w *Side) Save() (state State, vectors [][]float32, err error) {
	now, err := w.scriptNow()
	if err != nil {
		return state, nil, err
	}
	state, vectors = w.save(&now)
	return state, vectors, nil
}

func (w *Side) scriptNow() (s script, err error) {
	if c := w.station.Model.Child; c != nil && w.node != nil {
		s.vector, s.bytes, err = c.State()
	}
	return s, err
}

// TakeScript parts the vector that the program keeps, nil if there is none, from the others.
func (s *State) TakeScript(all [][]float32) (others [][]float32, script []float32, err error) {
	if s.Script == 0 {
		return all, nil, nil
	}
	last := len(all) - 1
	if last < 0 || !external.StateFits(all[last], s.Script) {
		return nil, nil, fmt.Errorf("script is %d bytes, which the last vector cannot have", s.Script)
	}
	return all[:last], all[last], nil
}

// resumeScript gives the worker's program what it has kept, and returns the other vectors.
func (w *Side) resumeScript(saved *State, all [][]float32) (others [][]float32, err error) {
	others, mine, err := saved.TakeScript(all)
	if err != nil || mine == nil {
		return others, err
	}
	if w.station.Model.Child == nil {
		return nil, fmt.Errorf("the checkpoint has %d bytes of its program, but this run's model is no program", saved.Script)
	}
	return others, w.station.Model.Child.Restore(mine, saved.Script)
}

// keepScript asks the program for what it keeps, at the end of a pass, if a checkpoint will need it: the next pass has begun when the
// worker's state is copied, except where a worker takes steps before it has the answers to its push: then it is copied between two passes,
// and the program is asked then. It returns false if the run has failed.
func (w *Side) keepScript(iter int64) (ok bool) {
	if w.station.Model.Child == nil || !w.it.isLast {
		return true
	}
	var err error
	if w.arenas.kept, err = w.scriptNow(); err != nil {
		return w.failed(iter, "state for a checkpoint", err)
	}
	w.arenas.kept.isKept = true
	return true
}

func (w *Side) save(of *script) (state State, vectors [][]float32) {
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
	if state.Script = of.bytes; of.bytes > 0 {
		vectors = append(vectors, of.vector)
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
	vectors, err := w.resumeScript(&saved, vectors)
	if err != nil {
		return fmt.Errorf("worker %d: %w", w.me, err)
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

// keepState copies the worker's state for a checkpoint, if the node says that it is due. inPass: the worker computes, and its program
// cannot be asked now.
func (w *Side) keepState(inPass bool) {
	if w.node == nil || w.station.Net.Err() != nil {
		return
	}
	iter, due := w.node.TakeSave()
	if !due {
		return
	}
	s := w.arenas.kept
	w.arenas.kept = script{}
	switch {
	case s.isKept:
		w.writeState(iter, &s)
	case inPass && w.station.Model.Child != nil: // it would wait for itself
		panic(fmt.Sprintf("train: iteration %d, whose begin a checkpoint holds, has begun before the program was asked for its state", iter))
	default:
		w.keepNow(iter)
	}
}

func (w *Side) keepNow(iter int64) {
	s, err := w.scriptNow()
	if err != nil {
		w.station.Net.Fail(fmt.Errorf("rank %d, worker %d: checkpoint before iteration %d: %w", w.station.Me, w.index, iter, err))
		return
	}
	w.writeState(iter, &s)
}

// KeepAll copies the worker's state in a pause, and begins to write it.
func (w *Side) KeepAll() {
	if w.node != nil {
		w.keepNow(w.node.Next())
	}
}

// writeState copies the worker's state before iteration iter, and begins to write it.
func (w *Side) writeState(iter int64, of *script) {
	state, vectors := w.save(of)
	if own := w.deltas.own; own != nil && own.own.Err() != nil { // what could not be copied is in no checkpoint
		w.station.Net.Fail(fmt.Errorf("rank %d, worker %d: checkpoint before iteration %d: %w", w.station.Me, w.index, iter, own.own.Err()))
		return
	}
	state.Next = iter
	w.arenas.savedCopies = station.CopyInto(w.arenas.savedCopies, vectors)
	w.o.Write(wire.FileSaved{Kind: wire.WorkerFile, Index: int32(w.me), Version: iter}, state, w.arenas.savedCopies, func() {})
}
