package runtime

import (
	"slices"

	"fluentps/ps/core"
	"fluentps/ps/link"
)

// Checkpoints while training goes on, where versions are no cuts: all workers stop after the iteration that they are in, as
// at the end of training (ps/core/pause.go), everything is kept (keep.go), and new nodes go on while it is written. That
// costs the wait for the slowest worker's iteration, the copying of all but parameters, and a pull of these.

// pauses says whether the run makes its checkpoints so.
func (r *rank) pauses() bool {
	return r.cfg.Checkpoint.Periodic() && r.dir != "" && r.reduce == nil && !r.cfg.InStep()
}

// goesOn is called by all ranks when their nodes are done. It says whether that was a pause, and then training has begun
// again.
func (r *rank) goesOn() (bool, error) {
	if !r.pauses() {
		return false, nil
	}
	next := int64(0)
	if w := r.worker; w != nil && w.node != nil {
		next = w.node.Next()
	}
	all, err := link.Gather(r.net, next)
	if err != nil {
		return false, err
	}
	var on struct {
		Again  bool
		Starts []int64 // by worker: the iteration that it computes next
	}
	if l := r.lead; l != nil {
		on.Again = l.snapshots.goesOn(r.server.node.Spent())
		for _, rank := range r.roles.Workers {
			on.Starts = append(on.Starts, all[rank])
		}
	}
	if err := link.Spread(r.net, &on); err != nil || !on.Again {
		return false, err
	}
	q := &origin{starts: on.Starts}
	r.keepAll(q)
	if err := r.alignClocks(q); err != nil {
		return false, err
	}
	if err := r.renew(q); err != nil {
		return false, err
	}
	if err := r.t.Barrier(); err != nil { // a worker's first pull must find the new node
		return false, err
	}
	if l := r.lead; l != nil {
		l.snapshots.paused = r.now() - l.snapshots.pausedAt
	}
	r.beginWorker(r.t.Now())
	return true, nil
}

// keepAll keeps what this rank saves, and begins to write it.
func (r *rank) keepAll(q *origin) {
	if r.lead != nil {
		r.lead.snapshots.named(slices.Clone(q.starts))
	}
	if s := r.server; s != nil && len(s.node.Shards()) > 0 {
		for _, id := range s.node.Shards() {
			s.keepShard(id, s.node.Hold(id))
			q.server.Shards = append(q.server.Shards, s.version.states[id])
		}
		s.writeVersion(s.node.Shard(s.node.Shards()[0]).Version)
	}
	if w := r.worker; w != nil && w.node != nil {
		w.writeState(w.node.Next())
	}
}

// renew makes the nodes anew, where the others stood.
func (r *rank) renew(q *origin) error {
	if s := r.server; s != nil {
		old, saved := s.node, map[int32]core.Saved{}
		for _, sh := range q.server.Shards {
			saved[sh.ID] = sh.Node
		}
		if err := s.makeNode(q); err != nil {
			return err
		}
		s.node.Resume(q.starts, saved)
		s.node.Succeed(old)
		s.done = false
	}
	if w := r.worker; w != nil {
		if old := w.node; old != nil {
			w.makeNode(q)
			w.node.Succeed(old)
		}
		w.done = false
	}
	if l := r.lead; l != nil {
		l.snapshots.goOn = false
		if l.ended { // it was too late for the old node
			r.stopNow()
		}
	}
	return nil
}
