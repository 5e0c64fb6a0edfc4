package core

import (
	"fluentps/comm/wire"
	"fluentps/ps/scheme"
)

// This file obeys the decisions of schemes about pushes: fold, drop and commit.

func (s *Server) drop(sh *ownShard, d scheme.Decision, why scheme.Reason) {
	p := sh.unstage(d.Worker, d.Iter, d.Part)
	sh.count(-p.head.Samples)
	sh.freeSlot(p.slot)
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
	sh.folded++
	sh.saveNext = sh.saveNext || p.head.Flags&wire.Save != 0
	if sh.agreement.leads && sh.agrees {
		sh.agreement.contributors = append(sh.agreement.contributors, d.Worker)
	}
	e.Slot, e.Msg = p.slot, p.head
	sh.tally.folded(&p.head)
	out = append(out, e)
	sh.freeSlot(p.slot) // the driver folds before it gives the slot to the next Stage: it obeys the effects of a shard in order
	return out
}

func (s *Server) commit(sh *ownShard, d scheme.Decision, out []Effect) []Effect {
	if s.hasAllUpdates(sh) {
		return out // all pushes of this commit were dropped
	}
	dst := sh.freeBuf()
	out = append(out, Effect{Kind: Commit, Shard: sh.id, Src: sh.cur, Dst: dst, Iter: sh.version + 1,
		Clock: sh.rateClock(s.workers), Scale: d.Scale, Weight: s.weigh(sh, d.Weight, d.Samples, sh.folded), Samples: d.Samples, Before: sh.samples})
	sh.tally.committed()
	if d.Approximate {
		sh.stats.Approximate++
	}
	if d.Unpushed > 0 || s.isApart() {
		sh.accepted += int64(s.workers) // these pushes stand for those of all
	} else {
		sh.accepted += sh.folded
	}
	if sh.whole {
		sh.rated += int64(s.workers)
	} else {
		sh.rated += sh.folded
	}
	sh.folded = 0
	sh.cur = dst
	sh.version++
	if sh.whole && d.Worker == scheme.NoWorker {
		sh.closed = max(sh.closed, d.Iter+1)
	}
	before := sh.samples
	sh.samples += d.Samples
	sh.count(d.Unpushed)
	if s.snapshotEvery > 0 {
		// A commit may pass several marks. It then makes one snapshot, for the last of them.
		if k := sh.samples / s.snapshotEvery; k > before/s.snapshotEvery {
			out = append(out, Effect{Kind: Snapshot, Shard: sh.id, Src: sh.cur, Iter: k - 1, Samples: sh.samples})
		}
	}
	return sh.saveEffect(out)
}
