package servernode

import (
	"fmt"
	"math"
	"slices"

	"fluentps/internal/core"
	"fluentps/ps/scheme"
)

// Saved is what a checkpoint holds of a shard beside its vectors and the clocks of its workers. It is taken at a cut,
// so nothing is staged. A resumed run makes the scheme anew, by the constructor that a change of schemes uses.
type Saved struct {
	Version  int64  `json:"version"`
	Rated    int64  `json:"rated"` // the learning-rate clock times N
	Accepted int64  `json:"accepted"`
	Samples  int64  `json:"samples"`
	Closed   int64  `json:"closed"`           // v, where a scheme closes iterations without all workers
	Until    int64  `json:"until"`            // the clock at which the next scheme takes over; 0: none follows
	Memory   []byte `json:"memory,omitempty"` // the scheme's memory, where clocks and version do not determine its state
	// Changes of the scheme at announced clocks, and the clock of the last one. Where the run has such changes, the lead
	// shard counts them, too.
	Changes int64 `json:"changes,omitempty"`
	Began   int64 `json:"began,omitempty"`
	// Loss is the mean training loss of the version, where workers take steps of their own; 0: unknown.
	Loss float64 `json:"loss,omitempty"`
}

// ChangesAt is the number of changes at announced clocks when the workers resume at these clocks. A shard passes a
// change when all workers in the run have reached it. If the last worker to leave had not, the shard is one change
// ahead of shards that heard the workers leave in another order. Then the change is undone: a straggler is looked for
// again.
func (q *Saved) ChangesAt(clocks []int64) int64 {
	if q.Changes > 0 && slices.Min(clocks) < q.Began {
		return q.Changes - 1
	}
	return q.Changes
}

// Settle undoes a change that does not count when the workers resume at these clocks.
func (q *Saved) Settle(clocks []int64) {
	if n := q.ChangesAt(clocks); n != q.Changes {
		q.Changes, q.Began, q.Memory = n, slices.Min(clocks), nil // the memory is that of the scheme which is undone
	}
}

// Saved returns the state to save of one of this server's shards. It panics where a push is staged, or folded and not
// committed: the shard is not at a cut then.
func (s *Server) Saved(id int32) Saved {
	sh := s.shards[id]
	if sh.slots.staged != 0 || sh.versions.folded != 0 {
		panic(fmt.Sprintf("core: shard %d cannot be saved with %d pushes staged and %d folded: %v", id, sh.slots.staged,
			sh.versions.folded, sh.scheme))
	}
	return sh.saved()
}

func (sh *ownShard) saved() Saved {
	q := Saved{Version: sh.versions.version, Rated: sh.versions.rated, Accepted: sh.versions.accepted,
		Samples: sh.versions.samples, Closed: sh.closed}
	if q.Changes, q.Began = sh.cut.changes, sh.cut.began; sh.cut.at != never && !sh.cut.awaits { // what was announced is forgotten
		q.Until = sh.cut.at
	}
	if sh.tally != nil && !math.IsNaN(sh.tally.loss) && !math.IsInf(sh.tally.loss, 0) {
		q.Loss = sh.tally.loss
	}
	if l, learns := sh.scheme.(scheme.Learning); learns {
		q.Memory = l.Memory()
	}
	return q
}

// Resume puts the server, before its first input, where a checkpoint was made: each worker at its clock, which is the
// iteration that it computes next, and each shard at what was saved of it. If the budget is used up already, no worker
// may start an iteration.
func (s *Server) Resume(clocks []int64, saved map[int32]Saved) {
	s.members.firstIterMax = max(0, slices.Max(s.locally.ClocksOf(0, clocks)))
	for _, id := range s.owned {
		sh, q := s.shards[id], saved[id]
		sh.versions.version, sh.versions.rated, sh.versions.accepted, sh.versions.samples, sh.samplesTaken = q.Version,
			q.Rated, q.Accepted, q.Samples, q.Samples
		own := s.locally.ClocksOf(id, clocks)
		for w, c := range own {
			sh.peers[w].clock, sh.peers[w].reached = c, c
		}
		if sh.tally != nil && q.Loss > 0 {
			sh.tally.loss = q.Loss
		}
		sh.lowest()
		sh.closed = sh.low
		sh.cut.changes, sh.cut.began = q.ChangesAt(own), min(q.Began, sh.low)
	}
	s.watch.resume(s.shards[0], s.workers)
	if lead := s.shards[0]; lead != nil && s.isSpent(lead) {
		s.stopWorkers()
	}
}

// Saving a version while training runs, where all shards are in step (scheme.Entry.InStep). The lead shard's server is
// told SaveSoon. It marks the replies that let workers into iteration i, the first that no worker was let into. A
// worker marks its pushes of i, to all servers. So every server knows, before it can commit these pushes, that the
// version which closes i must be saved. The worker saves its own state when the exchange of i+1 begins and before it
// hands anything over (TakeSave); by then nothing of i is in flight:
//
//	lead shard                    worker                          any shard
//	SaveSoon
//	Reply into i, with Save ────► Push of i, with Save ─────────► all are in: Commit, Save of version i+1
//	                              ... the exchange of i+1: TakeSave
//
// Nobody waits, and no message is added.

// saveSoon marks the next iteration that no worker was let into and that none starts with: a worker that never sees the
// mark would not save its own state. If the run ends before that iteration, no version is saved.
func (s *Server) saveSoon() {
	if lead := s.shards[0]; lead != nil && !s.halt.stopping {
		s.saveIter = max(lead.letInto, s.members.firstIterMax) + 1
	}
}

// saveEffect saves the version that was just committed, if one of its pushes carries the Save flag.
func (sh *ownShard) saveEffect(out []core.Effect) []core.Effect {
	if !sh.versions.saveNext {
		return out
	}
	sh.versions.saveNext = false
	return append(out, core.Effect{Kind: core.Save, Shard: sh.id, Src: sh.versions.hold(), Iter: sh.versions.version})
}

func (s *Server) written(in core.Input) {
	sh := s.shards[in.Shard]
	s.must(sh.versions.diskBuf >= 0, in)
	sh.versions.release()
}

// Hold replaces the effect Save in a pause. It keeps the current version of the shard unchanged until Written, and
// returns the version's buffer.
func (s *Server) Hold(id int32) int32 { return s.shards[id].versions.hold() }
