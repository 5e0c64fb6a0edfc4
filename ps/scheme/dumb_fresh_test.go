package scheme_test

import (
	"slices"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// delays goes through the history and finds, push by push, whether it is stale: computed most versions or more before the
// newest. perVersion fresh pushes make a version.
func (h *hindsight) delays(most, perVersion int64) {
	version, pending := h.env.Start, int64(0)
	h.stale = make([]bool, len(h.history))
	for k, ev := range h.history {
		switch {
		case ev.Kind == scheme.Left && !h.left[k][ev.Worker] && !slices.Contains(h.left[k+1], false) && pending > 0:
			version, pending = version+1, 0
		case ev.Kind != scheme.Pushed || ev.Samples == 0 || h.left[k][ev.Worker]:
		case version-ev.Seen >= most:
			h.stale[k] = true
		default:
			if pending++; pending == perVersion {
				version, pending = version+1, 0
			}
		}
	}
}

func (h *hindsight) playRingmaster() {
	most := h.number("delay_threshold")
	if most == 0 {
		most = 2 * int64(h.env.Workers)
	}
	h.delays(most, 1)
}

// perVersion is B of rennala.
func (h *hindsight) perVersion() int64 {
	if b := h.number("pushes"); b > 0 {
		return b
	}
	return int64(h.env.Workers)
}

func (h *hindsight) playRennala() { h.delays(1, h.perVersion()) }

func (h *hindsight) isStale(k int) bool { return h.stale[k] }

// newest lists the decisions of rennala at event k: of all pushes that count, each B make a version, and the rest does when
// nobody is left.
func (h *hindsight) newest(k int) (out []scheme.Decision) {
	var since []scheme.Event // pushes since the last commit
	for p := range k + 1 {
		ev, sum := h.history[p], int64(0)
		out = nil
		if h.counts(p) {
			out = append(out, fold(ev, float64(min(1, len(since)))))
			since = append(since, ev)
		}
		for _, s := range since {
			sum += s.Samples
		}
		lastLeft := ev.Kind == scheme.Left && !h.left[p][ev.Worker] && !slices.Contains(h.left[p+1], false)
		switch full := int64(len(since)) == h.perVersion(); {
		case full:
			out = append(out, commit(ev.Worker, ev.Iter, float64(h.perVersion())*(1/float64(h.perVersion())), sum))
			since = nil
		case lastLeft && len(since) > 0:
			out = append(out, commit(scheme.NoWorker, h.v[p], float64(len(since))*(1/float64(h.perVersion())), sum))
			since = nil
		}
	}
	return out
}

// table lists the decisions of ringleader at event k: it adds up who has pushed how many samples since the last commit, and
// commits when nobody in the run has none.
func (h *hindsight) table(k int) (out []scheme.Decision) {
	samples := map[int32]int64{}
	for p := range k + 1 {
		ev := h.history[p]
		out = nil
		if h.counts(p) {
			d := fold(ev, float64(min(1, samples[ev.Worker])))
			d.Dst = scheme.SlotMean + scheme.Slot(ev.Worker)
			out = append(out, d)
			samples[ev.Worker] += ev.Samples
		}
		w, iter := ev.Worker, ev.Iter
		switch {
		case ev.Kind == scheme.Left && !h.left[p][w]:
			w, iter = scheme.NoWorker, h.v[p]
		case !h.counts(p):
			continue
		}
		full, sum := len(samples) > 0, int64(0)
		for rank, gone := range h.left[p+1] {
			full = full && (gone || samples[int32(rank)] > 0)
			sum += samples[int32(rank)]
		}
		if !full {
			continue
		}
		scale := 0.0
		for rank := range int32(h.env.Workers) {
			if samples[rank] > 0 {
				out = append(out, scheme.Decision{Kind: scheme.Fold, Worker: rank, Shard: schemetest.Shard, Iter: iter,
					Dst: scheme.SlotPending, Src: scheme.SlotMean + scheme.Slot(rank),
					Scale: scale, Weight: 1 / (float64(len(samples)) * float64(samples[rank]))})
				scale = 1
			}
		}
		out = append(out, scheme.Decision{Kind: scheme.Commit, Worker: w, Shard: schemetest.Shard, Iter: iter,
			Dst: scheme.SlotParams, Src: scheme.SlotPending, Scale: 1, Weight: 1, Samples: sum})
		clear(samples)
	}
	return out
}
