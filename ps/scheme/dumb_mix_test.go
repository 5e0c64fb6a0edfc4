package scheme_test

import (
	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// mixed lists the decisions by which the push of event k becomes a version, where each push makes one.
func (h *hindsight) mixed(k int) []scheme.Decision {
	if h.twin.versionOf != nil {
		return h.twin.versionOf(h, k)
	}
	ev := h.history[k]
	return []scheme.Decision{fold(ev, 0), commit(ev.Worker, ev.Iter, 1/float64(h.env.Workers), ev.Samples)}
}

// dynamic is dynsgd's: at 1/d, where d counts the commits so far that the worker had not seen, and the push itself.
func (h *hindsight) dynamic(k int) []scheme.Decision {
	if h.keys["versions"] == "multi" {
		return h.multi(k)
	}
	ev := h.history[k]
	d := h.env.Start + 1 - ev.Seen
	for p := range k {
		if h.counts(p) {
			d++
		}
	}
	return []scheme.Decision{fold(ev, 0), commit(ev.Worker, ev.Iter, 1/float64(d), ev.Samples)}
}

// multi plays the versions of dynsgd from the start: which worker computed for which, and how many pushes each has.
func (h *hindsight) multi(k int) (out []scheme.Decision) {
	at := map[int32]int64{}     // the version that a worker computes for
	pushes := map[int64]int64{} // per version
	slot := map[int64]scheme.Slot{0: scheme.SlotMean}
	newest := int64(0)
	retire := func() {
		oldest := newest
		for _, n := range at {
			oldest = min(oldest, n)
		}
		for n := range slot {
			if n < oldest {
				delete(slot, n)
			}
		}
	}
	for e := range k + 1 {
		ev := h.history[e]
		switch ev.Kind {
		case scheme.Left, scheme.Joined:
			if h.left[e][ev.Worker] == (ev.Kind == scheme.Joined) {
				delete(at, ev.Worker)
				retire()
			}
		case scheme.Pushed:
			if !h.counts(e) {
				break
			}
			n, ok := at[ev.Worker]
			if !ok {
				n = newest
			}
			if e == k {
				return intoMean(ev, slot[n], float64(pushes[n]))
			}
			pushes[n]++
		}
		for a := range e + 1 {
			if h.history[a].Kind != scheme.Wanted || h.pullAnsweredAt(a) != e {
				continue
			}
			w := h.history[a].Worker
			if n, ok := at[w]; ok && n == newest && int64(len(slot)) < h.twin.bound(h, a, e)+2 {
				newest++
				slot[newest] = lowestFree(slot)
			}
			at[w] = newest
			retire()
		}
	}
	return nil
}

func lowestFree(slot map[int64]scheme.Slot) scheme.Slot {
	for s := scheme.SlotMean; ; s++ {
		free := true
		for _, other := range slot {
			free = free && other != s
		}
		if free {
			return s
		}
	}
}

// intoMean folds push ev into a mean of d pushes, and commits the change of the mean.
func intoMean(ev scheme.Event, mean scheme.Slot, d float64) (out []scheme.Decision) {
	step := func(dst, src scheme.Slot, scale, weight float64) {
		out = append(out, scheme.Decision{Kind: scheme.Fold, Worker: ev.Worker, Shard: ev.Shard, Iter: ev.Iter, Dst: dst,
			Src: src, Scale: scale, Weight: weight})
	}
	part := 1 / (d + 1)
	if d == 0 {
		step(mean, scheme.SlotPush, 0, part/float64(ev.Samples))
		step(scheme.SlotPending, mean, 0, 1)
	} else {
		step(scheme.SlotPending, mean, 0, -1)
		step(mean, scheme.SlotPush, d*part, part/float64(ev.Samples))
		step(scheme.SlotPending, mean, 1, 1)
	}
	return append(out, scheme.Decision{Kind: scheme.Commit, Worker: ev.Worker, Shard: schemetest.Shard, Iter: ev.Iter,
		Dst: scheme.SlotParams, Src: scheme.SlotPending, Scale: 1, Weight: 1, Samples: ev.Samples})
}
