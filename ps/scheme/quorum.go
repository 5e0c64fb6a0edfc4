package scheme

import (
	"fmt"
	"math"
	"time"

	"fluentps/internal/policy/terms"
)

// QuorumParams are the keys of a quorum rule.
type QuorumParams struct {
	Required int64   `yaml:"required" min:"0" idle:"workers: a version waits for the pushes of all" doc:"K, the number of different workers whose pushes of the newest version must have arrived before the grace period begins; 0 is a majority of the workers; with all of them a version waits for each, as under bsp"`
	MAD      float64 `yaml:"mad" min:"0" max:"100" doc:"k in median + k * MAD, the length of the grace period, where MAD is the median of the distances from the median; of how long after the first push of a version the others arrived lately"`
	GraceMax float64 `yaml:"grace_max" min:"0" max:"100" doc:"the longest grace period, in multiples of the time that the round took until K workers had arrived; 0 never waits after the K-th"`
}

// factorsMax limits mad and grace_max, so that no time overflows.
const factorsMax = 100

// Check names the key, the value, the limit and the way out.
func (p *QuorumParams) Check() error {
	switch {
	case p.Required < 0:
		return fmt.Errorf("required: %d is below 0; set the number of workers that begin the grace period, 1 or more, or "+
			"0 for a majority", p.Required)
	case !(p.MAD >= 0 && p.MAD <= factorsMax):
		return fmt.Errorf("mad: %v is not within 0 and %d; 3 is the default, 0 waits as long as the median", p.MAD, factorsMax)
	case !(p.GraceMax >= 0 && p.GraceMax <= factorsMax):
		return fmt.Errorf("grace_max: %v is not within 0 and %d; 1 is the default, 0 never waits after the K-th worker", p.GraceMax, factorsMax)
	}
	return nil
}

// Several implements Several: a version has pushes of K to N workers, and late ones beside them.
func (p *QuorumParams) Several(workers int) (int64, bool) { return p.Of(workers), false }

// Of is K among so many workers: at least 1, at most all.
func (p *QuorumParams) Of(workers int) int64 {
	if p.Required == 0 {
		return int64(workers/2 + 1)
	}
	return min(p.Required, int64(workers))
}

// VersionText says what a version is.
func (p *QuorumParams) VersionText(workers int) string {
	return fmt.Sprintf("one for the pushes of %d to %d workers", p.Of(workers), workers)
}

var quorum = Entry{
	Name: "quorum",
	Rule: "when the pushes of K different workers computed on the newest version have arrived, a grace period " +
		"begins, and also when all that have not arrived say that they wait at another shard or for a change; when it is " +
		"over, or all workers in the run have arrived, everything pushed is one commit of its mean, and the workers that " +
		"waited go on; a push that comes too late counts in the next commit, and its worker goes on at once; nobody waits longer than under bsp",
	Short: "`required` workers and a short grace make a version; late pushes count in the next one",
	Paper: "Decoupled DiLoCo (arXiv 2604.21428), from its abstract: K of N, a grace period, a mean weighed by " +
		"samples, the others merge later; the length of the grace and everything else reconstructed",
	Evidence: "R",
	Use:      "a few workers are slow or fail now and then, and nothing that they compute may be lost",
	Scope:    PerShard,
	Fold:     FoldArrival,
	Weight:   NoWeight,
	Params:   func() Params { return &QuorumParams{MAD: 3, GraceMax: 1} },
	LeadMax:  func(Params) (int64, bool) { return 0, false },
	Whole:    func(Common, Params) bool { return false },
	Says:     Says{Papers: terms.Cite("douillard2026decoupled")},
	New:      newQuorum,
}

func newQuorum(env Env, common Common, params Params) (Scheme, error) {
	p := *params.(*QuorumParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("quorum: %w", err)
	}
	n := max(0, env.Workers)
	l := &rounds{fixed: fixed{math.MaxInt64}, keys: p, quorum: int(p.Of(n)), version: env.Start, arrived: make([]bool, n),
		asked: make([]bool, n), waits: make([]bool, n), since: make([]time.Duration, n), missing: n, first: unknown,
		began: unknown, until: unknown}
	for w := range n {
		l.since[w] = unknown
		if env.Clocks != nil && w < len(env.Clocks) && env.Clocks[w] < 0 {
			l.missing--
		}
	}
	// A delayed pull is answered when its round ends, or as under bsp, when all have finished the iteration before it.
	r := rule{name: "quorum", limit: l, rounds: l, unbounded: true, release: ReleaseLazy}
	return newGate(env, common, FoldArrival, r)
}

// rounds is the limit of quorum. A round begins when a version is made, and ends with the next one. Pushes are folded
// as they come. A worker has arrived when its push has landed that was computed on the version of the round; until the
// round ends it waits. Any other push is late: it is folded all the same, and its worker goes on at once.
//
// The grace period begins when min(K, workers in the run) have arrived, each counted once. It also begins when all the
// others wait elsewhere: at another shard, for a change of scheme or for their batches. Then they wait for the slowest worker,
// which alone comes again and again. This server cannot see that. So when a worker arrives again, and all that have not
// arrived are ahead of v, the shard asks these; it asks each once in a round. A worker says so when it waits, and takes it back
// when it goes on. A worker at v waits nowhere, so it is not asked but awaited.
//
// The length of the grace is median + mad * MAD of the lags, at most grace_max times the time from the beginning of the
// round to now. The lag of a push is the time from the landing of the first push of its version to its own. So the first
// has 0, and the grace is about as long as the pushes of one version usually spread. A straggler's lag is far from the
// median: a window in which most pushes are in step yields a short grace, whatever the straggler does. Late pushes have
// lags, too; otherwise a short grace would hide the evidence against it. Before there are as
// many lags as workers, the grace is the longest.
// The window is the last lagsPerWorker lags for each worker. Of an even number, the median is the lower one in the middle.
//
// Quorum cannot stop a run, alone or beside other schemes: a pull of a worker with the smallest clock is answered at
// once, so the slowest worker waits nowhere, and the others wait for it at most as under bsp.
type rounds struct {
	fixed
	keys    QuorumParams
	quorum  int
	version int64 // commits of the shard so far, in the count that its pushes have in Seen

	arrived   []bool // per worker: it has arrived in this round
	arrivals  int    // number of these
	missing   int    // workers in the run that have not arrived
	asked     []bool // per worker: it was asked in this round whether it waits elsewhere
	waits     []bool // per worker: it was asked, says that it does, and has not pushed since; it has not arrived and is in the run
	waiting   int    // number of these
	twice     bool   // a worker has arrived twice in this round
	began     time.Duration
	first     time.Duration   // landing of the first push of the version; unknown: none yet
	until     time.Duration   // end of the grace period; unknown: it has not begun
	since     []time.Duration // per worker: first of the version that it computes on
	lags      []time.Duration // a ring; at most lagsPerWorker times the number of workers, at least lagsMin
	oldestLag int             // index of the oldest, where the ring is full
	sorted    []time.Duration // scratch
}

const (
	lagsPerWorker = 4
	lagsMin       = 16
)

func (l *rounds) window() int { return max(lagsMin, lagsPerWorker*len(l.arrived)) }

// admit answers a pull at once unless its worker has arrived. The slowest worker never waits.
func (l *rounds) admit(_ *gate, w int32, lead int64) bool { return !l.arrived[w] || lead <= 0 }

// pushed notes an arrival, or a late push.
func (l *rounds) pushed(ev Event) {
	w := ev.Worker
	l.goesOn(w)
	l.asked[w] = false
	switch {
	case ev.Seen < l.version: // late
		l.noteLag(w, ev.At)
		return
	case ev.Seen > l.version:
		panic(fmt.Sprintf("scheme: %v: it was computed on version %d, but the newest is %d", ev, ev.Seen, l.version))
	case l.arrived[w]:
		l.twice = true
		return
	}
	if l.first == unknown {
		l.first = ev.At
		for k, at := range l.since {
			if at == unknown {
				l.since[k] = ev.At
			}
		}
	}
	l.since[w] = l.first
	l.noteLag(w, ev.At)
	l.arrived[w] = true
	l.arrivals++
	l.missing--
}

// elsewhere notes that a worker waits elsewhere, or goes on there. An answer in another round than the question is outdated.
func (l *rounds) elsewhere(ev Event) {
	w := ev.Worker
	switch {
	case ev.Kind == WaitedElsewhere:
		l.goesOn(w)
	case ev.Seen == l.version && l.asked[w] && !l.arrived[w] && !l.waits[w]:
		l.waits[w] = true
		l.waiting++
	}
}

func (l *rounds) goesOn(w int32) {
	if l.waits[w] {
		l.waits[w] = false
		l.waiting--
	}
}

func (l *rounds) noteLag(w int32, at time.Duration) {
	switch lag := at - l.since[w]; {
	case l.since[w] == unknown:
	case len(l.lags) < l.window():
		l.lags = append(l.lags, max(0, lag))
	default:
		l.lags[l.oldestLag] = max(0, lag)
		l.oldestLag = (l.oldestLag + 1) % len(l.lags)
	}
}

// replied notes on which version the worker computes.
func (l *rounds) replied(w int32, at time.Duration) {
	l.since[w] = l.first
	if l.began == unknown {
		l.began = at
	}
}

func (l *rounds) workerLeft(w int32) {
	l.since[w] = unknown
	l.goesOn(w)
	l.asked[w] = false
	if !l.arrived[w] {
		l.missing--
	}
}

func (l *rounds) workerJoined(w int32) {
	l.since[w] = l.first
	if !l.arrived[w] {
		l.missing++
	}
}

func (l *rounds) hasMemory() bool { return true }

// settle ends the round if it is time, or begins the grace period. It runs when v has moved as far as it can, and before
// any reply.
func (l *rounds) settle(g *gate, out []Decision) ([]Decision, bool) {
	switch {
	case g.live == 0:
		out = l.end(g, out)
		l.began = unknown
		return out, true
	case l.arrivals == 0:
		return out, false
	case l.missing == 0 || l.until != unknown && g.now >= l.until:
		return l.end(g, out), true
	case l.until != unknown:
		return out, false
	case l.arrivals < min(l.quorum, g.live) && l.waiting < l.missing:
		return l.ask(g, out), false
	}
	grace := l.grace(g.now)
	if grace == 0 {
		return l.end(g, out), true
	}
	l.until = g.now + grace
	return append(out, Decision{Kind: WakeAt, Worker: NoWorker, Shard: g.shard, At: l.until}), false
}

// ask asks the workers that have not arrived whether they wait elsewhere, if only that can keep them from it.
func (l *rounds) ask(g *gate, out []Decision) []Decision {
	if !l.twice {
		return out
	}
	awaited := func(w int) bool { return !l.arrived[w] && !g.left[w] }
	for w := range l.arrived {
		if awaited(w) && g.clock[w] <= g.v {
			return out
		}
	}
	for w := range l.arrived {
		if awaited(w) && !l.asked[w] {
			l.asked[w] = true
			out = append(out, Decision{Kind: AskElsewhere, Worker: int32(w), Shard: g.shard, Iter: l.version})
		}
	}
	return out
}

// end ends the round. Where nothing was pushed but pushes without samples, it makes no version.
func (l *rounds) end(g *gate, out []Decision) []Decision {
	if g.pendingPushes > 0 {
		out = g.commit(NoWorker, g.v, 1, out)
		l.version++
		l.first = unknown
	}
	clear(l.arrived)
	clear(l.asked)
	clear(l.waits)
	l.arrivals, l.missing, l.waiting, l.twice = 0, g.live, 0, false
	l.began, l.until = g.now, unknown
	return out
}

// grace is the length of a grace period that begins now.
func (l *rounds) grace(now time.Duration) time.Duration {
	most := 0.0
	if l.began != unknown {
		most = l.keys.GraceMax * float64(max(0, now-l.began))
	}
	if len(l.lags) < len(l.arrived) {
		return time.Duration(most)
	}
	l.sorted = append(l.sorted[:0], l.lags...)
	m := median(l.sorted)
	for i, x := range l.sorted {
		l.sorted[i] = max(x-m, m-x)
	}
	return time.Duration(min(most, float64(m)+l.keys.MAD*float64(median(l.sorted))))
}
