package scheme

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// SoftsyncParams are the keys of a softsync rule.
type SoftsyncParams struct {
	Q         int64   `yaml:"q" min:"1" idle:"pushes" doc:"number of pushes that make a version, of any workers and iterations; 1 commits each push, as asp does"`
	Lambda0   float64 `yaml:"lambda0" min:"0" max:"1" as:"float32" doc:"the weight of a push is lambda0 / tau, where tau is the number of versions made since its worker pulled, at least 1; 0 weighs all pushes alike"`
	Staleness int64   `yaml:"staleness" min:"-1" idle:"lead" doc:"s, the bound on c - v in iterations as in ssp; -1 is no bound, as asp"`
	Release   Release `yaml:"release" values:"soft,lazy,block" doc:"with a bound: when a delayed pull is answered, as in ssp"`
}

// Check names the key, the value, the limit and the way out.
func (p *SoftsyncParams) Check() error {
	switch {
	case p.Q < 1:
		return fmt.Errorf("q: %d is below 1, a version for each push; set the number of pushes that make a version", p.Q)
	case p.Q > math.MaxInt32:
		return fmt.Errorf("q: %d is above %d, more pushes than any run has workers for; lower it", p.Q, math.MaxInt32)
	}
	if !(p.Lambda0 >= 0 && p.Lambda0 <= 1) {
		return fmt.Errorf("lambda0: %v is not within 0 and 1; set 1 to weigh pushes by their staleness alone, 0 to weigh "+
			"all alike, and scale with the learning rate", p.Lambda0)
	}
	if err := checkBoundOrNone(p.Staleness); err != nil {
		return err
	}
	return p.Release.check()
}

// Several implements Several.
func (p *SoftsyncParams) Several(int) (int64, bool) { return p.Q, true }

var softsync = Entry{
	Name: "softsync",
	Rule: "a pull is answered at once, or as in ssp where staleness is set; any q pushes make one commit of their " +
		"mean, each weighed by lambda0 / tau where lambda0 is set",
	Short: "any `q` pushes make one version; nobody waits",
	Paper: "soft synchronization as described in DL4J's guide to distributed training, part 1: W -= 1/q * the sum " +
		"of lambda0/tau * any q updates",
	Evidence: "P",
	Use:      "between asp (q: 1) and synchronous training (q: N): fewer and steadier updates than asp, and nobody waits",
	Scope:    PerShard,
	Fold:     FoldArrival,
	Weight:   "1/q",
	Params:   func() Params { return &SoftsyncParams{Q: 2, Staleness: -1, Release: ReleaseSoft} },
	Bound:    "staleness",
	LeadMax: func(p Params) (int64, bool) {
		s := p.(*SoftsyncParams).Staleness
		return max(s, 0), s >= 0
	},
	Whole:      func(Common, Params) bool { return false },
	NeverWaits: func(p Params) bool { return p.(*SoftsyncParams).Staleness < 0 },
	Says:       Says{Papers: []Paper{}},
	New:        newSoftsync,
}

func newSoftsync(env Env, common Common, params Params) (Scheme, error) {
	p := params.(*SoftsyncParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("softsync: %w", err)
	}
	var m mix
	if p.Lambda0 > 0 {
		m = byStaleness{lambda0: p.Lambda0, version: env.Start}
	}
	r := rule{name: "softsync", mix: m, release: p.Release, perPush: true, pushesPerVersion: p.Q}
	return newGate(env, common, FoldArrival, r.limited(p.Staleness))
}

// commitPending commits all pending pushes at once, each with the weight of one.
func (g *gate) commitPending(w int32, iter int64, out []Decision) []Decision {
	out = g.commitPushes(w, iter, float64(g.pendingPushes)*g.weight, out)
	g.mix.committed(g, &out[len(out)-1])
	return out
}

// byStaleness weighs each push of a version by lambda = lambda0 / tau. The commit is the weighted mean of the pushes,
// with the share sum of lambda / q. For equal batches that is 1/q * the sum of lambda_j * update_j. Being a mean with a
// share, it is also right for statistics, which are values and not steps.
type byStaleness struct {
	plain
	lambda0 float64
	version int64   // commits of the shard so far, in the count that its pushes have in Seen
	shares  float64 // sum of the weights of the pending pushes
	samples float64 // sum of weight times samples of the pending pushes
}

func (m byStaleness) weigh(g *gate, p push, seen int64) float64 {
	if seen > m.version {
		panic(fmt.Sprintf("scheme: shard %d: worker %d's push of iteration %d was computed on version %d, but the newest "+
			"is %d", g.shard, p.worker, p.iter, seen, m.version))
	}
	lambda := m.lambda0 / float64(max(1, m.version-seen))
	m.shares += lambda
	m.samples += lambda * float64(p.samples)
	g.mix = m
	return lambda
}

func (m byStaleness) committed(g *gate, d *Decision) {
	d.Scale, d.Weight = m.shares*g.weight, 1/m.samples
	if g.average > 0 {
		d.Scale = m.samples / g.average * g.weight
	}
	g.mix = byStaleness{lambda0: m.lambda0, version: m.version + 1}
}

func (m byStaleness) text(b *strings.Builder) {
	fmt.Fprintf(b, " version=%d shares=%.6g", m.version, m.shares)
}

func (m byStaleness) save(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(m.version))
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(m.shares))
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(m.samples))
}

func (m byStaleness) load(d *decoder) mix {
	return byStaleness{lambda0: m.lambda0, version: d.natural(), shares: d.fraction(0, math.MaxInt32), samples: d.fraction(0, maxClock)}
}
