package scheme_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"fluentps/ps/scheme"
	"fluentps/ps/scheme/schemetest"
)

// hindsight is the second implementation of every scheme on the gate. It knows the whole history and nothing else. It
// keeps no queue and no stage; for each event it searches the history for what must happen.
type hindsight struct {
	env     scheme.Env
	twin    twin
	keys    map[string]string
	release string // soft, lazy or block
	commits string // "rank", "close" or "push"
	history []scheme.Event

	// The state after event k is at index k+1; index 0 is the start.
	clock [][]int64
	left  [][]bool
	v     []int64

	answered []int       // results of pullAnsweredAt, or unknown
	folded   map[int]int // vap: for each push, the event at which it is folded
	bound    []int64     // results of dspsBound, or unknown
	stale    []bool      // ringmaster, rennala: per push, it is dropped for its delay
	quorum   *quorumTwin // quorum: its rounds
}

// twin is what hindsight knows of one scheme, beside the keys that several schemes have. Each comment says what nil
// stands for.
type twin struct {
	// The largest lead with which the pull of event a is answered at event k; nil: no bound.
	bound func(h *hindsight, a, k int) int64
	// The pull of event a is answered at once; nil: its lead is within the bound.
	admits func(h *hindsight, a int) bool
	// Event k makes all delayed pulls be judged anew; nil: none does.
	rejudges func(h *hindsight, k int) bool
	// The push of event k comes too late to count; nil: none does.
	late  func(h *hindsight, k int) bool
	why   scheme.Reason                                                        // of such a push; NotDropped: its iteration says it
	moves func(h *hindsight, v int64, k int, clock []int64, left []bool) int64 // v after event k, at least this; nil: no further
	// The decisions by which a push becomes a version, where each is one; nil: at 1/N.
	versionOf func(h *hindsight, k int) []scheme.Decision
	// The folds and commits of event k, instead of all that; nil: as the keys say.
	decides   func(h *hindsight, k int) []scheme.Decision
	commits   string                                      // instead of what the keys say
	play      func(h *hindsight)                          // goes through the history first; may be nil
	publishes func(h *hindsight, k int) []scheme.Decision // versions published at event k; nil: none
}

// twins are the twins of all schemes whose second implementation is hindsight. A new scheme adds its own here, or in
// the file of its paper test.
var twins = map[string]twin{
	"bsp":           {bound: atMost(0)},
	"asp":           {},
	"ssp":           {bound: key("staleness")},
	"bounded_delay": {bound: key("tau")},
	"dssp":          {bound: key("s_l"), admits: (*hindsight).dsspAdmits},
	"pssp":          {bound: (*hindsight).psspBound, admits: (*hindsight).psspAdmits},
	"dsps": {bound: func(h *hindsight, _, k int) int64 { return h.dspsBound(k) },
		rejudges: func(h *hindsight, k int) bool { return h.dspsBound(k) > h.dspsBound(k-1) }},
	"drop":     {bound: atMost(0), late: (*hindsight).dropLate, moves: (*hindsight).dropV, commits: "close"},
	"softsync": {bound: key("staleness"), decides: (*hindsight).several},
	"consgd":   {bound: key("staleness")},
	"dynsgd":   {bound: key("staleness"), versionOf: (*hindsight).dynamic},
	"vap":      {bound: key("staleness"), decides: (*hindsight).foldedByValue, play: (*hindsight).playVAP},
	"essp":     {bound: key("staleness"), publishes: (*hindsight).publishes},

	"ringmaster": {late: (*hindsight).isStale, why: scheme.Stale, play: (*hindsight).playRingmaster},
	"rennala":    {late: (*hindsight).isStale, why: scheme.Stale, play: (*hindsight).playRennala, decides: (*hindsight).newest},
	"ringleader": {bound: key("staleness"), decides: (*hindsight).table},
	"quorum": {bound: (*hindsight).quorumBound, admits: (*hindsight).quorumAdmits, play: (*hindsight).playQuorum,
		rejudges: func(h *hindsight, k int) bool { return h.quorum.ended[k] },
		decides:  func(h *hindsight, k int) []scheme.Decision { return h.quorum.decisions[k] }},
	"coded": {bound: atMost(0), late: func(h *hindsight, k int) bool { return h.history[k].Iter < h.v[k] },
		moves: (*hindsight).codedV, decides: (*hindsight).decoded},
}

// atMost is a bound that never changes; key is the bound of an integer key of the scheme, where below 0 means none.
func atMost(s int64) func(*hindsight, int, int) int64 {
	return func(*hindsight, int, int) int64 { return s }
}

func key(name string) func(*hindsight, int, int) int64 {
	return func(h *hindsight, _, _ int) int64 {
		if s := h.number(name); s >= 0 {
			return s
		}
		return boundless
	}
}

const boundless = 1 << 40

// unknown stands for a result that was not searched for yet.
const unknown = -2

func newHindsight(v schemetest.Variant, env scheme.Env, history []scheme.Event) *hindsight {
	h := &hindsight{env: env, twin: twins[v.Entry.Name], keys: map[string]string{}, history: history, release: "soft", commits: "push"}
	for _, d := range scheme.Docs(v.Params) {
		h.keys[d.Key] = d.Default
	}
	if release, ok := h.keys["release"]; ok {
		h.release = release
	}
	if h.twin.bound == nil {
		h.twin.bound = atMost(boundless)
	}
	switch {
	case v.Common.Fold == scheme.FoldRank:
		h.commits = "rank"
	case h.twin.commits != "":
		h.commits = h.twin.commits
	case h.keys["strict"] == "true":
		h.commits = "close"
	}
	h.answered = slices.Repeat([]int{unknown}, len(history))
	h.bound = slices.Repeat([]int64{unknown}, len(history))
	h.scan()
	if h.twin.play != nil {
		h.twin.play(h)
	}
	return h
}

// number is the value of an integer key.
func (h *hindsight) number(key string) (n int64) {
	if _, err := fmt.Sscan(h.keys[key], &n); err != nil {
		panic(fmt.Sprintf("%s: %v", key, err))
	}
	return n
}

func (h *hindsight) scan() {
	clock, left := make([]int64, h.env.Workers), make([]bool, h.env.Workers)
	for w, c := range h.env.Clocks {
		clock[w], left[w] = max(c, 0), c == -1
	}
	v := h.env.Start
	if live := liveClocks(clock, left); len(live) > 0 {
		v = slices.Min(live)
	}
	h.keep(clock, left, v)
	for k, ev := range h.history {
		w, wasLeft := ev.Worker, left[ev.Worker]
		switch ev.Kind {
		case scheme.Pushed:
			if clock[w] = ev.Iter; ev.Part == ev.Parts-1 {
				clock[w]++
			}
		case scheme.Left:
			left[w] = true
		case scheme.Joined:
			left[w], clock[w] = false, max(v, clock[w], ev.Iter)
		}
		if live := liveClocks(clock, left); len(live) > 0 {
			v = max(v, slices.Min(live))
		} else if !wasLeft {
			v = max(v, slices.Max(clock), h.privateEnd(k))
		}
		if h.twin.moves != nil {
			v = h.twin.moves(h, v, k, clock, left)
		}
		h.keep(clock, left, v)
	}
}

func (h *hindsight) keep(clock []int64, left []bool, v int64) {
	h.clock = append(h.clock, slices.Clone(clock))
	h.left = append(h.left, slices.Clone(left))
	h.v = append(h.v, v)
}

func liveClocks(clock []int64, left []bool) (live []int64) {
	for w, c := range clock {
		if !left[w] {
			live = append(live, c)
		}
	}
	return live
}

// decisions lists what must be decided at event k.
func (h *hindsight) decisions(k int) (out []scheme.Decision) {
	ev := h.history[k]
	if ev.Kind == scheme.Pushed && !h.counts(k) {
		out = append(out, scheme.Decision{Kind: scheme.Drop, Worker: ev.Worker, Shard: ev.Shard, Part: ev.Part,
			Iter: ev.Iter, Reason: h.reason(k)})
	}
	switch {
	case h.twin.decides != nil:
		out = append(out, h.twin.decides(h, k)...)
	case h.commits == "push" && ev.Kind == scheme.Pushed && h.counts(k):
		out = append(out, h.mixed(k)...)
	case h.commits == "rank":
		for j := h.v[k]; j < h.v[k+1]; j++ {
			pushes := h.pushesOf(j, k)
			out = append(append(out, h.whole(pushes)...), h.closes(j, k, len(pushes))...)
		}
	case h.commits == "close":
		out = append(out, h.streamed(k)...)
	}
	for a := range k + 1 {
		if h.history[a].Kind == scheme.Wanted && h.pullAnsweredAt(a) == k {
			w := h.history[a].Worker
			out = append(out, scheme.Decision{Kind: scheme.Reply, Worker: w, Shard: ev.Shard,
				Iter: max(h.history[a].Iter, h.clock[k+1][w], h.v[k+1]), Src: scheme.SlotParams})
		}
	}
	if h.twin.publishes != nil {
		out = append(out, h.twin.publishes(h, k)...)
	}
	return out
}

// counts says whether the push at event k adds something.
func (h *hindsight) counts(k int) bool {
	ev := h.history[k]
	return ev.Kind == scheme.Pushed && ev.Samples > 0 && !h.left[k][ev.Worker] &&
		!(h.twin.late != nil && h.twin.late(h, k)) && !h.isRepeated(k)
}

// reason is why the push at event k adds nothing.
func (h *hindsight) reason(k int) scheme.Reason {
	ev := h.history[k]
	switch {
	case ev.Samples == 0:
		return scheme.Empty
	case h.left[k][ev.Worker]:
		return scheme.Gone
	case h.twin.why != scheme.NotDropped:
		return h.twin.why
	case ev.Iter < h.v[k]:
		return scheme.Late
	}
	return scheme.Surplus
}

// pushesOf lists the pushes of iteration j that count and came up to event k, in order of arrival.
func (h *hindsight) pushesOf(j int64, k int) (found []int) {
	for p := range k + 1 {
		if h.history[p].Iter == j && h.counts(p) {
			found = append(found, p)
		}
	}
	return found
}

// whole is one iteration in rank order.
func (h *hindsight) whole(pushes []int) (out []scheme.Decision) {
	slices.SortFunc(pushes, func(a, b int) int { return int(h.history[a].Worker - h.history[b].Worker) })
	sum := int64(0)
	for n, p := range pushes {
		out = append(out, fold(h.history[p], min(1, float64(n))))
		sum += h.history[p].Samples
	}
	if len(pushes) > 0 {
		out = append(out, commit(scheme.NoWorker, h.history[pushes[0]].Iter, 1, sum))
	}
	return out
}

// streamed lists the folds at event k when sums are filled on arrival. Each push is folded at the first event, from its
// arrival on, after or during which its iteration is the oldest open one or closed.
func (h *hindsight) streamed(k int) (out []scheme.Decision) {
	for j := h.v[k]; j <= h.v[k+1]; j++ {
		sum := int64(0)
		pushes := h.pushesOf(j, k)
		for n, p := range pushes {
			sum += h.history[p].Samples
			if j > h.v[k] || p == k {
				out = append(out, fold(h.history[p], min(1, float64(n))))
			}
		}
		if j < h.v[k+1] && len(pushes) > 0 {
			out = append(out, commit(scheme.NoWorker, j, 1, sum))
		}
		if j < h.v[k+1] {
			out = append(out, h.closes(j, k, len(pushes))...)
		}
	}
	return out
}

// closes lists the Close decisions of a shard that agrees with others on contributors, when iteration j closes at event
// k: one for each iteration with a push, and one for the last.
func (h *hindsight) closes(j int64, k, pushes int) []scheme.Decision {
	if h.keys["contributors"] != "step" || pushes == 0 && j != h.v[k+1]-1 {
		return nil
	}
	return []scheme.Decision{{Kind: scheme.Close, Worker: scheme.NoWorker, Shard: schemetest.Shard, Iter: j}}
}

// pullAnsweredAt finds the event at which the pull of event a is answered; -1 if it is not.
func (h *hindsight) pullAnsweredAt(a int) int {
	if h.answered[a] == unknown {
		h.answered[a] = h.searchAnswer(a)
	}
	return h.answered[a]
}

func (h *hindsight) searchAnswer(a int) int {
	w, c := h.history[a].Worker, h.history[a].Iter
	if h.left[a][w] {
		return -1
	}
	atOnce := h.admitted(a)
	if h.release == "block" {
		for b := range a {
			ev := h.history[b]
			if ev.Kind == scheme.Wanted && ev.Iter == c && !h.left[b][ev.Worker] {
				until := h.pullAnsweredAt(b)
				if (until < 0 || until > a) && !h.leftBetween(ev.Worker, b, a) {
					atOnce = false
				}
			}
		}
	}
	if atOnce {
		return a
	}
	for k := a + 1; k < len(h.history) && !h.leftBetween(w, a, k); k++ {
		bound := h.twin.bound(h, a, k)
		switch v := h.v[k+1]; {
		case h.twin.rejudges != nil && h.twin.rejudges(h, k) && c-v <= bound:
			return k
		case h.release == "soft" && v > h.v[a+1] && c-v <= bound:
			return k
		case h.release != "soft" && v >= c:
			return k
		}
	}
	return -1
}

// admitted is the pull condition at the pull of event a.
func (h *hindsight) admitted(a int) bool {
	if h.twin.admits != nil {
		return h.twin.admits(h, a)
	}
	return h.lead(a) <= h.twin.bound(h, a, a)
}

// lead is c - v of the pull of event a.
func (h *hindsight) lead(a int) int64 { return h.history[a].Iter - h.v[a+1] }

// fastest says whether nobody in the run has a larger clock than w after event k.
func (h *hindsight) fastest(w int32, k int) bool {
	return h.clock[k+1][w] == slices.Max(liveClocks(h.clock[k+1], h.left[k+1]))
}

// cameAt is the event at which worker w came last, up to event k; -1: it was there from the start, or has not come yet.
func (h *hindsight) cameAt(w int32, k int) int {
	for ; k >= 0; k-- {
		if ev := h.history[k]; ev.Worker == w && ev.Kind == scheme.Joined && h.left[k][w] {
			return k
		}
	}
	return -1
}

func (h *hindsight) leftBetween(w int32, a, b int) bool {
	for k := a; k <= b; k++ {
		if h.history[k].Kind == scheme.Left && h.history[k].Worker == w {
			return true
		}
	}
	return false
}

func fold(ev scheme.Event, scale float64) scheme.Decision {
	return scheme.Decision{Kind: scheme.Fold, Worker: ev.Worker, Shard: ev.Shard, Part: ev.Part, Iter: ev.Iter,
		Dst: scheme.SlotPending, Scale: scale, Weight: 1}
}

func commit(w int32, iter int64, scale float64, samples int64) scheme.Decision {
	return scheme.Decision{Kind: scheme.Commit, Worker: w, Shard: schemetest.Shard, Iter: iter,
		Dst: scheme.SlotParams, Src: scheme.SlotPending, Scale: scale, Weight: 1 / float64(samples), Samples: samples}
}

// mergedCloses leaves out each Close of an iteration without a push that another Close follows: the later one covers it.
func mergedCloses(decisions []scheme.Decision) (out []scheme.Decision) {
	isClose := func(d scheme.Decision) bool { return d.Kind == scheme.Close }
	for i, d := range decisions {
		committed := i > 0 && decisions[i-1].Kind == scheme.Commit
		if !isClose(d) || committed || !slices.ContainsFunc(decisions[i+1:], isClose) {
			out = append(out, d)
		}
	}
	return out
}

// TestHindsight compares each setting of each scheme with hindsight on random histories, decision by decision.
func TestHindsight(t *testing.T) {
	for _, e := range scheme.All {
		for _, v := range schemetest.Variants(e) {
			if v.Grants() {
				continue // its twin is in dumb_r2sp_test.go
			}
			if _, ok := twins[e.Name]; !ok {
				t.Fatalf("%s has no twin: add it to twins, in the file of its paper test", e.Name)
			}
			t.Run(e.Name+" "+v.String(), func(t *testing.T) {
				rapid.Check(t, func(rt *rapid.T) {
					env := schemetest.DrawEnv(rt)
					if e.WorkPolicy() != "" {
						env.Code = drawCode(t, rt, env.Workers)
					}
					history, answers := recordNorms(rt, env, v.New(env), false, v.DrawNorms(rt))
					h := newHindsight(v, env, history)
					for k, got := range answers {
						if want := h.decisions(k); !slices.Equal(mergedCloses(got), want) {
							rt.Fatalf("event %d, %v: decided\n%v\nwith hindsight\n%v", k, history[k], got, want)
						}
					}
				})
			})
		}
	}
}

// record runs s and returns its events and what it decided at each.
func record(t *rapid.T, env scheme.Env, s scheme.Scheme, plain bool) (history []scheme.Event, answers [][]scheme.Decision) {
	return recordNorms(t, env, s, plain, nil)
}

// recordNorms is record with pushes whose norms are filled in.
func recordNorms(t *rapid.T, env scheme.Env, s scheme.Scheme, plain bool,
	norms func(*scheme.Event)) (history []scheme.Event, answers [][]scheme.Decision) {
	d := schemetest.Driver{Env: env, Plain: plain, Norms: norms, See: func(ev scheme.Event, decisions []scheme.Decision) {
		history = append(history, ev)
		answers = append(answers, decisions)
	}}
	d.Run(t, s)
	return history, answers
}
