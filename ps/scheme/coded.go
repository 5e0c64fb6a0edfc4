package scheme

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"fluentps/internal/policy/terms"
)

// Code decodes the pushes of an iteration that are sums of the gradients of several partitions (work.policy: coded).
type Code interface {
	// Decodes says whether the pushes of these workers, in any order, give the gradient of the whole batch.
	Decodes(arrived []int32) bool
	// Weights are those of these pushes; where they do not decode, those that come nearest to it. 0: the push is not needed.
	Weights(arrived []int32) []float64
	Samples() int64 // of all partitions of an iteration
	// Private says that each worker pushes twice an iteration: first the gradient of samples that no other worker
	// computes, as part 0 of 2, and then its sum of partitions, as part 1. All private parts make the whole gradient
	// with what the others decode to.
	Private() bool
	Deadline() time.Duration // how long after its first push an iteration closes in any case; 0: never
}

// CodedParams are the keys of a coded rule: none, because the policy of the work axis has them.
type CodedParams struct{}

// Check implements Params.
func (p *CodedParams) Check() error { return nil }

var coded = Entry{
	Name: "coded",
	Rule: "gradient coding: pushes are staged until those that have arrived decode to the gradient of the whole " +
		"batch; weighed so, they are one commit; a push of a closed iteration is dropped and its worker continues at v; " +
		"a pull waits until its iteration is open (c - v <= 0); when a deadline has passed, or nobody else can push, " +
		"what has arrived is decoded approximately; with private parts (work.code.alpha) an iteration also waits for " +
		"that of each worker in the run, and adds it whole",
	Short: "pushes of `work: {policy: coded}`: any N - s of them make the whole gradient",
	Paper: "Gradient Coding (Tandon, Lei, Dimakis, Karampatziakis, ICML 2017), released code; the deadline and " +
		"what is done after losses are ours",
	Evidence: "A",
	Use: "with work.policy: coded, which sets it: s workers are slow or lost, and no gradient may be missing; " +
		"each worker computes s+1 times as much",
	Scope:  PerShard,
	Fold:   FoldRank,
	Behind: true,
	Says: Says{Papers: terms.Cite("tandon2017gradient"), Terms: []Term{{If: []terms.Cond{terms.Is("work.policy", "!=", "coded")},
		Why: "{scheme} decodes the pushes of work.policy coded, but that is {work.policy}",
		Out: "set work.policy: coded, or another scheme"}}},
	Weight:  NoWeight,
	Params:  func() Params { return &CodedParams{} },
	LeadMax: func(Params) (int64, bool) { return 0, true },
	Whole:   func(Common, Params) bool { return true },
	New:     newCoded,
}

func newCoded(env Env, common Common, _ Params) (Scheme, error) {
	if common.Fold == FoldArrival {
		return nil, fmt.Errorf("coded: fold: arrival folds a push as it comes, but its weight is known only when enough " +
			"have arrived; use fold: rank")
	}
	c := &decoding{code: env.Code, since: unknown}
	if c.code == nil {
		c.code = uncoded(env.Workers)
	}
	return newGate(env, common, FoldRank, rule{name: "coded", limit: c, coded: c, release: ReleaseSoft, quorum: env.Workers * int(c.parts())})
}

// uncoded is the code of workers that push a partition each. It tells no samples: those of the pushes count.
type uncoded int

func (n uncoded) Decodes(arrived []int32) bool { return len(arrived) == int(n) }
func (n uncoded) Samples() int64               { return 0 }
func (n uncoded) Deadline() time.Duration      { return 0 }
func (n uncoded) Private() bool                { return false }

func (n uncoded) Weights(arrived []int32) []float64 {
	weights := make([]float64, len(arrived))
	for i := range weights {
		weights[i] = 1
	}
	return weights
}

// decoding is the limit of coded, which also decides when an iteration closes, and with which weights. A worker starts the open
// iteration only.
//
// No worker waits for ever, whatever the code: an iteration that is pushed by all workers in the run that may still push it closes, too.
type decoding struct {
	fixed
	code    Code
	since   time.Duration // when the open iteration had its first push, or was opened if that was later; unknown: it has none, or no deadline
	arrived []int32       // scratch
	isExact bool          // the pushes that were folded last give the whole gradient
	private []bool        // scratch, per worker: its private part of the open iteration has arrived
}

// parts is the number of pushes of a worker in an iteration.
func (c *decoding) parts() int32 {
	if c != nil && c.code.Private() {
		return 2
	}
	return 1
}

// isPrivate says whether a push is a private part.
func (c *decoding) isPrivate(p push) bool { return p.part < c.parts()-1 }

// hasStaged says whether the same push of a worker is staged.
func (g *gate) hasStaged(ev Event) bool {
	return slices.ContainsFunc(g.staged, func(p push) bool { return p.worker == ev.Worker && p.iter == ev.Iter && p.part == ev.Part })
}

// closes says whether the open iteration closes though workers may still push it.
func (c *decoding) closes(g *gate) bool {
	if c == nil || g.atV == 0 {
		return false
	}
	if c.since != unknown && g.now >= c.since+c.code.Deadline() {
		return true
	}
	c.arrived, c.private = c.arrived[:0], slices.Grow(c.private[:0], len(g.clock))[:len(g.clock)]
	clear(c.private)
	for _, p := range g.staged {
		switch {
		case p.iter != g.v:
		case c.isPrivate(p):
			c.private[p.worker] = true
		default:
			c.arrived = append(c.arrived, p.worker)
		}
	}
	if c.parts() > 1 {
		for w, clock := range g.clock {
			if !g.left[w] && clock <= g.v && !c.private[w] {
				return false // its private part may still come
			}
		}
	}
	return c.code.Decodes(c.arrived)
}

// waits asks for an alarm when the open iteration has its first push.
func (c *decoding) waits(g *gate, out []Decision) []Decision {
	if c == nil || c.since != unknown || g.atV == 0 || c.code.Deadline() == 0 {
		return out
	}
	c.since = g.now
	return append(out, Decision{Kind: WakeAt, Worker: NoWorker, Shard: g.shard, At: c.since + c.code.Deadline()})
}

// fold folds the pushes of one iteration, the private parts whole and the others with their weights, and drops those
// that are not needed. Private parts are first in the list.
func (c *decoding) fold(g *gate, pushes []push, out []Decision) []Decision {
	c.arrived, c.since = c.arrived[:0], unknown
	alone := 0
	for ; alone < len(pushes) && c.isPrivate(pushes[alone]); alone++ {
		out = g.fold(pushes[alone], out)
	}
	pushes = pushes[alone:]
	for _, p := range pushes {
		c.arrived = append(c.arrived, p.worker)
	}
	c.isExact = c.code.Decodes(c.arrived) && (c.parts() == 1 || alone == len(g.clock))
	for i, weight := range c.code.Weights(c.arrived) {
		if p := pushes[i]; weight != 0 {
			out = g.foldAs(p, weight, out)
		} else {
			out = append(out, Decision{Kind: Drop, Worker: p.worker, Shard: g.shard, Part: p.part, Iter: p.iter, Src: SlotPush, Reason: Surplus})
		}
	}
	return out
}

// whole counts the samples of all partitions in a commit, also of those whose workers have not pushed, and says
// whether it has all of the gradient.
func (c *decoding) whole(d *Decision) {
	d.Approximate = !c.isExact
	if n := c.code.Samples(); n > 0 {
		d.Unpushed = n - d.Samples
		d.Samples, d.Weight = n, 1/float64(n)
	}
}

func (c *decoding) text(b *strings.Builder) {
	if c.since != unknown {
		fmt.Fprintf(b, " until=%v", c.since+c.code.Deadline())
	}
}

func (c *decoding) save(b []byte) []byte { return binary.LittleEndian.AppendUint64(b, uint64(c.since)) }

func (c *decoding) load(d *decoder) limit {
	return &decoding{code: c.code, since: time.Duration(d.between(int64(unknown), maxClock))}
}

// broken names the first invariant that a decoded state violates.
func (c *decoding) broken(g *gate) string {
	switch {
	case (c.since != unknown) != (g.atV > 0 && c.code.Deadline() > 0):
		return "a deadline without a push, or a push without a deadline"
	case c.since == unknown && c.closes(g):
		return "an iteration that should be closed"
	}
	return ""
}
