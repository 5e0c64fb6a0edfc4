package scheme

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"fluentps/internal/policy/terms"
)

// DSSPMode says whether s_u is a bound.
type DSSPMode string

const (
	DSSPBounded DSSPMode = "bounded" // a grant never leads beyond s_u
	DSSPLiteral DSSPMode = "literal" // the published listing: one grant may follow another
)

// DSSPParams are the keys of a dssp rule.
type DSSPParams struct {
	SL      int64    `yaml:"s_l" min:"0" idle:"lead" doc:"lower end of the staleness range: up to this lead nobody waits"`
	SU      int64    `yaml:"s_u" min:"0" idle:"lead" doc:"upper end of the staleness range, at least s_l; with s_u = s_l it is ssp"`
	Mode    DSSPMode `yaml:"mode" values:"bounded,literal" doc:"bounded keeps every running worker within s_u; literal follows the published listing, which renews grants without end, so workers that are always faster hardly ever wait"`
	Release Release  `yaml:"release" values:"soft,lazy,block" doc:"when a delayed pull is answered, once its lead is within s_l again; the listing has soft"`
}

// rangeMax is the largest s_u: the controller predicts s_u - s_l pushes of two workers.
const rangeMax = 1_000_000

// Check names the key, the value, the limit and the way out.
func (p *DSSPParams) Check() error {
	switch {
	case p.SL < 0:
		return fmt.Errorf("s_l: %d is below 0, the lead at which the slowest worker still runs; set 0 or more", p.SL)
	case p.SU < p.SL:
		return fmt.Errorf("s_u: %d is below s_l, which is %d; set s_u to s_l (as ssp) or more", p.SU, p.SL)
	case p.SU > rangeMax:
		return fmt.Errorf("s_u: %d is above %d, which bounds nothing in practice; lower it, or set scheme: asp", p.SU, rangeMax)
	case p.Mode != DSSPBounded && p.Mode != DSSPLiteral:
		return fmt.Errorf("mode: %q is not one of bounded, literal; bounded is the default", p.Mode)
	}
	return p.Release.check()
}

var dssp = Entry{
	Name:  "dssp",
	Short: "ssp whose bound moves between `s_l` and `s_u`, by the measured speed of the workers",
	Rule: "a pull waits until c - v <= s_l, unless the worker is the fastest and its pushes are predicted to meet " +
		"one of the slowest within s_u: then it gets a grant of extra iterations; one commit per push",
	Paper: "DSSP (Zhao, An, Liu, Chen, ICDCS 2019), Algorithms 1 and 2, for mode: literal; bounded, the default, " +
		"is ours: it keeps the premise of Theorem 2",
	Evidence: "P",
	Use:      "workers of constant but uneven speed, when the best staleness is not known in advance",
	Scope:    PerShard,
	Fold:     FoldArrival,
	Params: func() Params {
		return &DSSPParams{SL: 3, SU: 15, Mode: DSSPBounded, Release: ReleaseSoft}
	},
	Bound: "s_u",
	LeadMax: func(p Params) (int64, bool) {
		d := p.(*DSSPParams)
		if d.Mode == DSSPLiteral && d.SU > d.SL {
			return 0, false
		}
		return d.SU, true
	},
	Whole: func(c Common, _ Params) bool { return c.Fold == FoldRank },
	Says:  Says{Papers: terms.Cite("zhao2019dssp")},
	New:   newDSSP,
}

func newDSSP(env Env, common Common, params Params) (Scheme, error) {
	p := params.(*DSSPParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("dssp: %w", err)
	}
	l := &dsspLimit{
		fixed: fixed{p.SL}, upper: p.SU, literal: p.Mode == DSSPLiteral,
		last: make([]pushTimes, env.Workers), grants: make([]int64, env.Workers),
	}
	r := rule{name: "dssp", limit: l, unbounded: l.literal && p.SU > p.SL, release: p.Release, perPush: true}
	return newGate(env, common, FoldArrival, r)
}

// dsspLimit is DSSP's limit: the fixed bound s_l, and grants that its controller gives to the fastest worker.
type dsspLimit struct {
	fixed
	upper   int64 // s_u
	literal bool
	last    []pushTimes
	grants  []int64 // per worker: pulls that are still answered whatever its lead
}

// pushTimes are the times of the last two pushes of a worker.
type pushTimes struct {
	latest, previous time.Duration
	known            uint8 // 0: none, 1: latest only, 2: both
}

func (l *dsspLimit) pushed(ev Event) {
	t := &l.last[ev.Worker]
	t.previous, t.latest = t.latest, ev.At
	t.known = min(t.known+1, 2)
}

func (l *dsspLimit) hasMemory() bool { return true }

func (l *dsspLimit) workerJoined(w int32) { l.last[w], l.grants[w] = pushTimes{}, 0 }

// admit is Algorithm 1 from the push on. The listing answers when the push arrives; here the pull behind it is
// answered.
func (l *dsspLimit) admit(g *gate, w int32, lead int64) bool {
	if !l.literal && lead > l.upper {
		l.grants[w] = 0 // it has skipped iterations; the grant would lead beyond s_u
	}
	if l.grants[w] > 0 {
		l.grants[w]--
		return true
	}
	if lead <= l.s {
		return true
	}
	if !g.fastest(w) {
		return false
	}
	r := l.controller(l.last[w], l.last[g.slowest()])
	if !l.literal {
		r = max(0, min(r, l.upper-lead+1))
	}
	if r == 0 {
		return false
	}
	if l.literal { // the reply that comes with the grant does not use any of it up
		l.grants[w] = r
	} else {
		l.grants[w] = r - 1
	}
	return true
}

// controller is Algorithm 2. Worker p could push now, or after r = 0..s_u-s_l more iterations; controller returns the r
// whose push is predicted closest to a push of the slowest worker. Of equals it returns the smallest, which is the
// least stale. It returns 0 until both intervals are known.
func (l *dsspLimit) controller(p, slow pushTimes) (best int64) {
	if p.known < 2 || slow.known < 2 {
		return 0
	}
	ip, is := p.latest-p.previous, slow.latest-slow.previous
	rMax := l.upper - l.s
	k, closest := int64(0), time.Duration(-1)
	for r := range rMax + 1 {
		away := func(k int64) time.Duration {
			return (slow.latest + time.Duration(k+1)*is - p.latest - time.Duration(r)*ip).Abs()
		}
		// Both predictions only grow with r, so the best k never decreases.
		for k < rMax && away(k+1) <= away(k) {
			k++
		}
		if d := away(k); closest < 0 || d < closest {
			best, closest = r, d
		}
	}
	return best
}

// text lists the grants that are left, such as " grants=w0:3".
func (l *dsspLimit) text(b *strings.Builder) {
	sep := " grants="
	for w, r := range l.grants {
		if r > 0 {
			fmt.Fprintf(b, "%sw%d:%d", sep, w, r)
			sep = ","
		}
	}
}

func (l *dsspLimit) save(b []byte) []byte {
	for w, t := range l.last {
		for _, x := range []int64{int64(t.latest), int64(t.previous), int64(t.known), l.grants[w]} {
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		}
	}
	return b
}

func (l *dsspLimit) load(d *decoder) limit {
	n := *l
	n.last, n.grants = slices.Clone(l.last), slices.Clone(l.grants)
	for w := range n.last {
		n.last[w] = pushTimes{time.Duration(d.natural()), time.Duration(d.natural()), uint8(d.between(0, 2))}
		n.grants[w] = d.natural()
	}
	return &n
}
