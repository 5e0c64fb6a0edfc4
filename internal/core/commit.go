package core

import (
	"fluentps/internal/comm/wire"
	"fluentps/ps/scheme"
)

// This file obeys the decisions of schemes about pushes: fold, drop and commit.

func (s *Server) drop(sh *ownShard, d scheme.Decision, why scheme.Reason) {
	p := sh.unstage(d.Worker, d.Iter, d.Part)
	sh.count(-p.head.Samples)
	sh.slots.freeSlot(p.slot)
	sh.stats.drop(why)
}

func (s *Server) fold(sh *ownShard, d scheme.Decision, out []Effect) []Effect {
	if s.hasAllUpdates(sh) {
		if d.Src == scheme.SlotPush {
			s.drop(sh, d, scheme.Spent)
		}
		return out
	}
	e := Effect{Kind: Fold, Shard: sh.id, From: d.Src, Into: d.Dst, Scale: d.Scale, Weight: d.Weight}
	if d.Src != scheme.SlotPush {
		return append(out, e)
	}
	p := sh.unstage(d.Worker, d.Iter, d.Part)
	sh.versions.folded++
	sh.versions.saveNext = sh.versions.saveNext || p.head.Flags&wire.Save != 0
	if sh.agreement.leads && sh.agrees {
		sh.agreement.contributors = append(sh.agreement.contributors, d.Worker)
	}
	e.Slot, e.Msg = p.slot, p.head
	sh.tally.folded(&p.head)
	out = append(out, e)
	sh.slots.freeSlot(p.slot) // the driver folds before it gives the slot to the next Stage: it obeys the effects of a shard in order
	return out
}

func (s *Server) commit(sh *ownShard, d scheme.Decision, out []Effect) []Effect {
	if s.hasAllUpdates(sh) {
		return out // all pushes of this commit were dropped
	}
	dst := sh.versions.freeBuf()
	out = append(out, Effect{Kind: Commit, Shard: sh.id, Src: sh.versions.cur, Dst: dst, Iter: sh.versions.version + 1,
		Clock: sh.versions.rateClock(s.workers), Scale: d.Scale,
		Weight: s.weigh(sh, d.Weight, d.Samples, sh.versions.folded), Samples: d.Samples, Before: sh.versions.samples})
	sh.tally.committed()
	if d.Approximate {
		sh.stats.Approximate++
	}
	if d.Unpushed > 0 || s.isApart() {
		sh.versions.accepted += int64(s.workers) // these pushes stand for those of all
	} else {
		sh.versions.accepted += sh.versions.folded
	}
	if sh.whole {
		sh.versions.rated += int64(s.workers)
	} else {
		sh.versions.rated += sh.versions.folded
	}
	sh.versions.folded = 0
	sh.versions.cur = dst
	sh.versions.version++
	if sh.whole && d.Worker == scheme.NoWorker {
		sh.closed = max(sh.closed, d.Iter+1)
	}
	before := sh.versions.samples
	sh.versions.samples += d.Samples
	sh.count(d.Unpushed)
	if s.snapshotEvery > 0 {
		// A commit may pass several marks. It then makes one snapshot, for the last of them.
		if k := sh.versions.samples / s.snapshotEvery; k > before/s.snapshotEvery {
			out = append(out, Effect{Kind: Snapshot, Shard: sh.id, Src: sh.versions.cur, Iter: k - 1, Samples: sh.versions.samples})
		}
	}
	return sh.saveEffect(out)
}
