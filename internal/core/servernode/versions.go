package servernode

import (
	"fmt"

	"fluentps/internal/comm/wire"
	"fluentps/internal/core"
	"fluentps/ps/scheme"
)

// versions are the parameter buffers of a shard, and what counts its commits. A version in flight or held is never written to.
type versions struct {
	refs    []int // per buffer: replies in flight, plus 1 while the buffer is held for a checkpoint
	diskBuf int32 // the buffer held for a checkpoint, or -1
	cur     int32 // the buffer of the current version

	version  int64 // commits so far
	rated    int64 // the learning-rate clock times N: a version that is a whole iteration counts N, else each accepted push 1
	accepted int64 // pushes in these commits, and those that coded ones stand for
	samples  int64 // samples in these commits
	folded   int64 // pushes folded since the last commit
	saveNext bool  // a push folded since the last commit carries the Save flag: save the next version
}

// Buffers is the number of parameter buffers of a shard: one for the current version, one for the next, and one for
// each worker's reply in flight. Where versions are saved while training runs there is one more.
func Buffers(workers int, saves bool) int {
	if saves {
		return workers + 3
	}
	return workers + 2
}

// freeBuf finds a buffer for the next version: one that is neither current, nor in flight, nor held for a checkpoint.
// Buffers sees to it that there always is one.
func (v *versions) freeBuf() int32 {
	for b, n := range v.refs {
		if n == 0 && int32(b) != v.cur {
			return int32(b)
		}
	}
	panic(fmt.Sprintf("core: all %d parameter buffers of a shard are in flight", len(v.refs)))
}

// send notes that a reply leaves from the buffer of the current version.
func (v *versions) send() (buf int32) {
	v.refs[v.cur]++
	return v.cur
}

// hold keeps the buffer of the current version unchanged until release.
func (v *versions) hold() int32 {
	if v.diskBuf >= 0 {
		panic(fmt.Sprintf("core: version %d must be saved while buffer %d is still being written", v.version, v.diskBuf))
	}
	v.diskBuf = v.cur
	v.refs[v.diskBuf]++
	return v.diskBuf
}

// release ends hold.
func (v *versions) release() {
	v.refs[v.diskBuf]--
	v.diskBuf = -1
}

// rateClock is the learning-rate clock in iterations: accepted pushes / N, or versions where all advance together. A
// change of the scheme does not move it.
func (v *versions) rateClock(workers int) float64 { return float64(v.rated) / float64(workers) }

// check verifies that the counts of buffers are those of the replies in flight, by buffer, and of the checkpoint.
func (v *versions) check(inFlight []int, workers int) error {
	live, most := 0, workers+1
	if v.diskBuf >= 0 {
		inFlight[v.diskBuf]++
		most++
	}
	for b, n := range inFlight {
		if n != v.refs[b] {
			return fmt.Errorf("buffer %d has %d readers, counted %d", b, n, v.refs[b])
		}
		if n > 0 || int32(b) == v.cur {
			live++
		}
	}
	if live > most {
		return fmt.Errorf("has %d live versions with %d workers; at most %d may be between two commits", live, workers, most)
	}
	return nil
}

// This file obeys the decisions of schemes about pushes: fold, drop and commit.

func (s *Server) drop(sh *ownShard, d scheme.Decision, why scheme.Reason) {
	p := sh.unstage(d.Worker, d.Iter, d.Part)
	sh.count(-p.head.Samples)
	sh.slots.freeSlot(p.slot)
	sh.stats.drop(why)
}

func (s *Server) fold(sh *ownShard, d scheme.Decision, out []core.Effect) []core.Effect {
	if s.hasAllUpdates(sh) {
		if d.Src == scheme.SlotPush {
			s.drop(sh, d, scheme.Spent)
		}
		return out
	}
	e := core.Effect{Kind: core.Fold, Shard: sh.id, From: d.Src, Into: d.Dst, Scale: d.Scale, Weight: d.Weight}
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

func (s *Server) commit(sh *ownShard, d scheme.Decision, out []core.Effect) []core.Effect {
	if s.hasAllUpdates(sh) {
		return out // all pushes of this commit were dropped
	}
	dst := sh.versions.freeBuf()
	out = append(out, core.Effect{Kind: core.Commit, Shard: sh.id, Src: sh.versions.cur, Dst: dst, Iter: sh.versions.version + 1,
		Clock: sh.versions.rateClock(s.workers), Scale: d.Scale,
		Weight: s.weigh(sh, d.Weight, d.Samples, sh.versions.folded), Samples: d.Samples, Before: sh.versions.samples})
	s.hold(sh)
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
			out = append(out, core.Effect{Kind: core.Snapshot, Shard: sh.id, Src: sh.versions.cur, Iter: k - 1, Samples: sh.versions.samples})
		}
	}
	return sh.saveEffect(out)
}
