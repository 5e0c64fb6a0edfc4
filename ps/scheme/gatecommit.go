package scheme

import "cmp"

// fold adds a push to the pending sums; the first push after a commit overwrites them.
func (g *gate) fold(p push, out []Decision) []Decision { return g.foldAs(p, 1, out) }

// foldAs adds a push with a weight.
func (g *gate) foldAs(p push, weight float64, out []Decision) []Decision {
	d := Decision{
		Kind: Fold, Worker: p.worker, Shard: g.shard, Part: p.part, Iter: p.iter,
		Dst: SlotPending, Src: SlotPush, Scale: 1, Weight: weight,
	}
	if g.pendingPushes == 0 {
		d.Scale = 0
	}
	g.pendingPushes++
	g.pendingSamples += p.samples
	return append(out, d)
}

// commitIteration commits the pending sums as the version that closes iter. An iteration without contributors makes no
// version.
func (g *gate) commitIteration(iter int64, out []Decision) []Decision {
	if g.pendingPushes == 0 {
		return out
	}
	return g.sayClosed(iter, g.commit(NoWorker, iter, 1, out))
}

func (g *gate) commit(w int32, iter int64, scale float64, out []Decision) []Decision {
	d := Decision{
		Kind: Commit, Worker: w, Shard: g.shard, Iter: iter, Dst: SlotParams, Src: SlotPending,
		Scale: scale, Weight: 1 / float64(g.pendingSamples), Samples: g.pendingSamples,
	}
	if g.coded != nil {
		g.coded.whole(&d)
	}
	g.pendingPushes, g.pendingSamples = 0, 0
	return append(out, d)
}

// commitPushes commits pending pushes whose scale is that of pushes of the average size: where batches differ, they weigh by their samples.
func (g *gate) commitPushes(w int32, iter int64, scale float64, out []Decision) []Decision {
	if g.average > 0 && g.pendingPushes > 0 {
		scale *= float64(g.pendingSamples) / (float64(g.pendingPushes) * g.average)
	}
	return g.commit(w, iter, scale, out)
}

// byRankOrder compares pushes by iteration, part and worker. It stops at the first difference: it runs several times for every push.
func byRankOrder(a, b push) int {
	switch {
	case a.iter != b.iter:
		return cmp.Compare(a.iter, b.iter)
	case a.part != b.part:
		return cmp.Compare(a.part, b.part)
	}
	return cmp.Compare(a.worker, b.worker)
}
