package scheme

import (
	"fmt"
	"math"
	"time"

	"fluentps/internal/policy/terms"
)

// VAPParams are the keys of a vap rule.
type VAPParams struct {
	V0        float64 `yaml:"v0" min:"0" doc:"the bound in the first iteration, v0/sqrt(t) in iteration t = v+1; in units of weight times the largest element of a pushed mean; times the learning rate it is the change of a parameter"`
	Strict    bool    `yaml:"strict" doc:"true keeps the bound for every worker, and all other rules must never make a worker wait (asp, softsync, vap); false commits the pushes of the slowest worker at once, and goes with any rule"`
	Staleness int64   `yaml:"staleness" min:"-1" idle:"lead" doc:"with strict: false, s, a bound on c - v in iterations as in ssp with a soft barrier (ClockVAP); -1 is no bound"`
	Release   Release `yaml:"release" values:"soft,lazy" doc:"when a push that must wait is committed and the pull behind it is answered: soft once the push fits, lazy once no update of its worker is in transit"`
}

// Check names the key, the value, the limit and the way out.
func (p *VAPParams) Check() error {
	switch {
	case !(p.V0 >= 0 && p.V0 <= math.MaxFloat64):
		return fmt.Errorf("v0: %v is not a finite number of 0 or more; 0 lets each worker have one update in transit", p.V0)
	case checkBoundOrNone(p.Staleness) != nil:
		return checkBoundOrNone(p.Staleness)
	case p.Staleness >= 0 && p.Strict:
		return fmt.Errorf("staleness: %d makes fast workers wait for slow ones, whose pushes strict: true may hold back "+
			"until the fast ones go on; set strict: false too, or -1 for none", p.Staleness)
	case p.Release == ReleaseBlock:
		return fmt.Errorf("release: block keeps the workers of an iteration together, but under vap no pull waits for an " +
			"iteration; use soft or lazy")
	case p.Release != ReleaseSoft && p.Release != ReleaseLazy:
		return fmt.Errorf("release: %q is not one of soft, lazy; soft is the default", p.Release)
	}
	return nil
}

var vap = Entry{
	Name: "vap",
	Rule: "a push is committed at once if no update of its worker is in transit (committed, but not sent to " +
		"every worker that computes), or if the largest elements of these updates and of the push add up to at most " +
		"v0/sqrt(t); otherwise the push waits, and so does the pull behind it; one commit per push",
	Short: "bounds the size of the updates in transit, not the lead in iterations",
	Paper: "value-bounded asynchronous parallel (VAP), the ideal model of the ESSP paper (Dai et al., AAAI " +
		"2015), from its abstract and a summary: the condition is reconstructed; strict, release and the norm are ours; " +
		"with staleness ClockVAP, from a header of an older Petuum",
	Evidence:   "R",
	Use:        "when staleness must be bounded by the size of the missing updates rather than by iterations; beside ssp in experiments",
	Scope:      PerShard,
	Fold:       FoldArrival,
	NeedsNorms: func(Params) bool { return true },
	OwnUpdate:  true,
	NeverWaits: func(p Params) bool { return p.(*VAPParams).Staleness < 0 },
	Alone:      func(p Params) bool { return p.(*VAPParams).Strict },
	Params:     func() Params { return &VAPParams{V0: 1, Strict: true, Staleness: -1, Release: ReleaseSoft} },
	LeadMax: func(p Params) (int64, bool) {
		s := p.(*VAPParams).Staleness
		return max(s, 0), s >= 0
	},
	Whole: func(Common, Params) bool { return false },
	Says:  Says{Papers: terms.Cite("dai2015essp")},
	New:   newVAP,
}

func newVAP(env Env, common Common, params Params) (Scheme, error) {
	p := *params.(*VAPParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("vap: %w", err)
	}
	n := env.Workers
	l := &transit{keys: p, reads: make([]int64, n), next: make([]int32, n+1), prev: make([]int32, n+1),
		updates: make([][]update, n), hasHeld: make([]bool, n), held: make([]heldPush, 0, n)}
	for w := range l.reads {
		l.reads[w] = idle
	}
	l.next[n], l.prev[n] = int32(n), int32(n)
	r := rule{name: "vap", release: ReleaseSoft, perPush: true}.limited(p.Staleness)
	l.fixed = r.limit.(fixed)
	r.limit, r.transit = l, l
	s, err := newGate(env, common, FoldArrival, r)
	if err == nil {
		l.weight = s.(*gate).weight
	}
	return s, err
}

// transit is vap's limit. An update of worker p is in transit while some worker computes on a version without it. The
// replies tell this: a worker reads the version of its last reply from that reply until its next push has landed. A
// worker that waits does not count, since its reply is yet to come and will contain everything. So an update that is no
// longer in transit never is again, and the updates in transit are the newest of their worker.
//
// The condition cannot stop the run. On one shard: while any worker computes, a push will arrive; once none does,
// nothing is in transit and every push fits. Over several shards, a worker that computes for one of them may wait at
// another:
//
//   - strict: true, where other rules make no worker wait. Suppose that every worker waits, and let b(p) be the time at which p
//     began its last iteration. If a push of p is held at some shard, the cause is an older update of p that some q has not seen,
//     although q was answered there after b(q). That update was committed before p was answered there, thus before b(p). So
//     b(q) < b(p), and q waits too, for a worker with a smaller b still. There are finitely many workers: a contradiction.
//   - strict: false, where other rules may make a worker wait for slower ones. The slowest worker waits nowhere: no rule makes
//     it wait, and here its push fits.
type transit struct {
	fixed   // the bound on c - v, of a worker whose push was committed
	keys    VAPParams
	weight  float64 // share of a push: its update is weight times its mean, times the learning rate
	version int64   // commits so far
	reads   []int64 // per worker: the version that it computes on, idle if it does not compute
	// The workers that compute, as a ring through len(reads), in the order of their replies, thus by ascending version.
	next, prev []int32
	updates    [][]update // per worker: its updates that may be in transit, oldest first; at most transitMax
	held       []heldPush // landed pushes that wait, in order of arrival; at most one per worker
	hasHeld    []bool     // per worker: it has a push in held
	// Number of pushes in held that do not fit, as judged since the oldest version read, or v, last changed.
	judged   int
	judgedAt [2]int64 // that version and that v
}

// update is a push that was committed.
type update struct {
	version int64   // the first version that contains it
	norm    float64 // the largest element of its mean; +Inf where that is NaN
}

// heldPush is a push whose slot is still taken.
type heldPush struct {
	push
	norm   float64
	waited bool // it did not fit when it landed
}

const (
	idle       = -1   // in reads: computes on no version
	noKey      = -1   // key of a pull that waits only until its worker's push is committed
	transitMax = 1024 // updates of one worker in transit; its next push then waits as if it did not fit
)

// holds says whether a push of w waits; false without a transit.
func (l *transit) holds(w int32) bool { return l != nil && l.hasHeld[w] }

// hold adds a push that has landed.
func (l *transit) hold(p push, norm float32) {
	h := heldPush{push: p, norm: float64(norm)}
	if h.norm != h.norm {
		h.norm = math.Inf(1)
	}
	l.held = append(l.held, h)
	l.hasHeld[p.worker] = true
}

// pushed notes that the worker reads no parameters of this shard until its next reply.
func (l *transit) pushed(ev Event) { l.stop(ev.Worker) }

// workerLeft and workerJoined note that the worker computes on no version.
func (l *transit) workerLeft(w int32)   { l.stop(w) }
func (l *transit) workerJoined(w int32) { l.stop(w) }

// replied notes that the worker computes on the current version from now on.
func (l *transit) replied(w int32, _ time.Duration) {
	l.stop(w)
	ring := int32(len(l.reads))
	last := l.prev[ring]
	l.next[last], l.prev[w], l.next[w], l.prev[ring] = w, last, ring, w
	l.reads[w] = l.version
}

func (l *transit) stop(w int32) {
	if l.reads[w] == idle {
		return
	}
	l.next[l.prev[w]], l.prev[l.next[w]] = l.next[w], l.prev[w]
	l.reads[w] = idle
}

// oldest is the oldest version that a worker computes on: updates up to it are no longer in transit.
func (l *transit) oldest() int64 {
	if first := l.next[len(l.reads)]; int(first) < len(l.reads) {
		return l.reads[first]
	}
	return math.MaxInt64
}

// admitPushes folds and commits the pushes that fit, each as a version, and says whether there were any. It runs when v
// has moved as far as it can, and before any reply. A push that it commits never makes room for another one.
func (l *transit) admitPushes(g *gate, out []Decision) ([]Decision, bool) {
	now := [2]int64{l.oldest(), g.v}
	if now[0] != l.judgedAt[0] || now[1] != l.judgedAt[1] && !l.keys.Strict {
		l.judged = 0 // otherwise at most v has moved, which only leaves less room
	}
	kept := l.held[:l.judged]
	before := len(l.held)
	for _, h := range l.held[l.judged:] {
		if !l.fits(g, h) {
			h.waited = true
			kept = append(kept, h)
			continue
		}
		l.version++
		l.updates[h.worker] = append(l.updates[h.worker], update{l.version, h.norm})
		l.hasHeld[h.worker] = false
		out = g.fold(h.push, out)
		out = g.commitPushes(h.worker, h.iter, g.weight, out)
	}
	l.held, l.judged, l.judgedAt = kept, len(kept), now
	return out, len(kept) < before
}

// fits is the condition on one push.
func (l *transit) fits(g *gate, h heldPush) bool {
	now := l.inTransit(h.worker)
	switch {
	case len(now) == 0 || !l.keys.Strict && g.clock[h.worker] <= g.v:
		return true
	case h.waited && l.keys.Release == ReleaseLazy || len(now) >= transitMax:
		return false
	}
	sum := 0.0
	for _, u := range now {
		sum += u.norm
	}
	return l.weight*(sum+h.norm) <= l.keys.V0/math.Sqrt(float64(g.v+1))
}

// inTransit lists the updates of w that are in transit, and forgets older ones.
func (l *transit) inTransit(w int32) []update {
	oldest, k := l.oldest(), 0
	for k < len(l.updates[w]) && l.updates[w][k].version <= oldest {
		k++
	}
	l.updates[w] = append(l.updates[w][:0], l.updates[w][k:]...)
	return l.updates[w]
}
