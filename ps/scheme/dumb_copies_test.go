package scheme_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// publishes lists what essp must publish at event k: if v moves, v to every worker that was answered before event k,
// has not left since, and is not answered now.
func (h *hindsight) publishes(k int) (out []scheme.Decision) {
	if h.v[k] == h.v[k+1] {
		return nil
	}
	for w := range int32(h.env.Workers) {
		subscribed := false
		for a := range k + 1 {
			if ev := h.history[a]; ev.Kind != scheme.Wanted || ev.Worker != w {
				continue
			}
			at := h.pullAnsweredAt(a)
			if at == k {
				subscribed = false
				break
			}
			if at >= 0 && at < k && !h.leftBetween(w, at, k) {
				subscribed = true
			}
		}
		if subscribed {
			out = append(out, scheme.Decision{Kind: scheme.Publish, Worker: w, Shard: schemetest.Shard, Iter: h.v[k+1], Src: scheme.SlotParams})
		}
	}
	return out
}

// TestHindsightOfPublishing compares essp with hindsight where workers subscribe.
func TestHindsightOfPublishing(t *testing.T) {
	for _, staleness := range []int64{0, 1, 3} {
		v := setting(t, "essp", "fold=arrival")
		v.Params = &scheme.ESSPParams{Staleness: staleness}
		rapid.Check(t, func(rt *rapid.T) {
			env := schemetest.DrawEnv(rt)
			var history []scheme.Event
			var answers [][]scheme.Decision
			d := schemetest.Driver{Env: env, Subscribed: true, Bound: staleness, See: func(ev scheme.Event, decisions []scheme.Decision) {
				history = append(history, ev)
				answers = append(answers, decisions)
			}}
			d.Run(rt, v.New(env))
			h := newHindsight(v, env, history)
			for k, got := range answers {
				if want := h.decisions(k); !slices.Equal(got, want) {
					rt.Fatalf("event %d, %v: decided\n%v\nwith hindsight\n%v", k, history[k], got, want)
				}
			}
		})
	}
}
