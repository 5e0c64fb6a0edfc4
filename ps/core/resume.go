package core

import (
	"fmt"
	"slices"

	"fluentps/comm/wire"
	"fluentps/ps/scheme"
)

// Saved is what a checkpoint keeps of a shard beside its vectors and the clocks of its workers. It is taken at a cut:
// nothing is staged, and whoever goes on from it makes the scheme anew, by the constructor that a change of schemes uses.
type Saved struct {
	Version  int64  `json:"version"`
	Rated    int64  `json:"rated"` // the learning-rate clock times N
	Accepted int64  `json:"accepted"`
	Samples  int64  `json:"samples"`
	Closed   int64  `json:"closed"`           // v, where a scheme closes iterations without all workers
	Until    int64  `json:"until"`            // where the next scheme takes over; 0: none does
	Memory   []byte `json:"memory,omitempty"` // of the scheme, where clocks and version do not tell all
}

// Saved gives what there is to save of one of this server's shards. It panics where pushes are staged or folded and not
// committed: that is no cut.
func (s *Server) Saved(id int32) Saved {
	sh := s.shards[id]
	if sh.stagedN != 0 || sh.folded != 0 {
		panic(fmt.Sprintf("core: shard %d cannot be saved with %d pushes staged and %d folded: %v", id, sh.stagedN, sh.folded, sh.scheme))
	}
	return sh.saved()
}

func (sh *ownShard) saved() Saved {
	q := Saved{Version: sh.version, Rated: sh.rated, Accepted: sh.accepted, Samples: sh.samples, Closed: sh.closed}
	if sh.cut.at != never {
		q.Until = sh.cut.at
	}
	if l, learns := sh.scheme.(scheme.Learning); learns {
		q.Memory = l.Memory()
	}
	return q
}

// Resume puts the server where a checkpoint was made, before its first input: each worker at its clock, which is the
// iteration that it computes next, and each shard with what was saved of it. A budget that is used up already lets
// nobody start an iteration.
func (s *Server) Resume(clocks []int64, saved map[int32]Saved) {
	s.furthest = max(0, slices.Max(clocks))
	for _, id := range s.order {
		sh, q := s.shards[id], saved[id]
		sh.version, sh.rated, sh.accepted, sh.samples, sh.taken = q.Version, q.Rated, q.Accepted, q.Samples, q.Samples
		copy(sh.clock, clocks)
		copy(sh.reached, clocks)
		sh.lowest()
		sh.closed = sh.low
	}
	if lead := s.shards[0]; lead != nil && s.spent(lead) {
		s.stopped()
	}
}

// Next is the iteration that the worker computes next, when it has finished.
func (w *Worker) Next() int64 { return max(w.next, w.iter+1) }

// Behind says whether a shard with these schemes in turn may close iterations that a worker has not pushed. Such workers
// take up where the others are.
func Behind(phases []scheme.Phase) bool {
	return slices.ContainsFunc(phases, func(ph scheme.Phase) bool {
		e, ok := scheme.Lookup(ph.Scheme)
		return ok && e.Behind
	})
}

// PhaseAt is the index of the scheme that a shard has when its workers are at these clocks, and the clocks that this one
// is told: who has passed its end is gone for it.
func PhaseAt(phases []scheme.Phase, clocks []int64) (k int, told []int64) {
	if clocks == nil {
		return 0, nil // the beginning
	}
	v := int64(gone)
	for _, c := range clocks {
		if c >= 0 {
			v = min(v, c)
		}
	}
	for phases[k].Until > 0 && v >= phases[k].Until && v < gone {
		k++
	}
	told = slices.Clone(clocks)
	for w, c := range told {
		if until := phases[k].Until; until > 0 && c >= until {
			told[w] = -1
		}
	}
	return k, told
}

// Saving a version while training goes on, where all shards are in step (scheme.Entry.InStep). The lead shard's server is told
// SaveSoon, and marks the replies that let workers into the first iteration i that none has been let into. A worker
// marks its pushes of i, to all servers, so that every server knows, before it can commit them, that the version which
// closes i is to be saved; and a worker saves what it keeps when the exchange of i+1 begins, by when nothing of i is on
// its way, and before it hands anything over (TakeSave):
//
//	lead shard                    worker                          any shard
//	SaveSoon
//	Reply into i, with Save ────► Push of i, with Save ─────────► all are in: Commit, Save of version i+1
//	                              ... the exchange of i+1: TakeSave
//
// Nobody waits, and no message is added.

// saveSoon marks the next iteration that none was let into, nor begins with: a worker that never sees the mark would not save what
// it keeps. Where the run ends before it there is no such version.
func (s *Server) saveSoon() {
	if lead := s.shards[0]; lead != nil && !s.stop {
		s.saveInto = max(lead.letInto, s.furthest) + 1
	}
}

// saveEffect saves the version that was just committed, if a push in it asks for that.
func (sh *ownShard) saveEffect(out []Effect) []Effect {
	if !sh.saving {
		return out
	}
	sh.saving = false
	return append(out, Effect{Kind: Save, Shard: sh.id, Src: sh.hold(), Iter: sh.version})
}

// hold keeps the current version in its buffer, as it is, until Written.
func (sh *ownShard) hold() int32 {
	if sh.disk >= 0 {
		panic(fmt.Sprintf("core: shard %d: version %d is to be saved, and buffer %d is still written", sh.id, sh.version, sh.disk))
	}
	sh.disk = sh.cur
	sh.refs[sh.disk]++
	return sh.disk
}

func (s *Server) written(in Input) {
	sh := s.shards[in.Shard]
	s.must(sh.disk >= 0, in)
	sh.refs[sh.disk]--
	sh.disk = -1
}

// Hold is what a driver calls in a pause, in place of the effect Save: the current version of the shard stays as it is
// until Written, in the buffer that is returned.
func (s *Server) Hold(id int32) int32 { return s.shards[id].hold() }

// mark marks the pushes of an iteration, if its reply asked for that.
func (w *Worker) mark() {
	if w.iter == w.marks {
		w.head.Flags |= wire.Save
	}
}

// TakeSave says, once, that a checkpoint needs what the worker keeps, as it is when it has begun the exchange of an
// iteration, which it names, and has not handed anything over: the marked one was the last.
func (w *Worker) TakeSave() (iter int64, due bool) {
	if w.marks < 0 || w.iter <= w.marks || w.state != Computing || w.head.Kind != 0 || w.isHelping() {
		return 0, false
	}
	w.marks = -1
	return w.iter, true
}
