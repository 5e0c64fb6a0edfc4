package scheme

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"fluentps/internal/policy/terms"
)

// RingmasterParams are the keys of a ringmaster rule.
type RingmasterParams struct {
	DelayThreshold int64 `yaml:"delay_threshold" min:"0" doc:"R: a push whose delay, the number of versions made since its worker pulled, is R or more is dropped; 0 is twice the number of workers; with a very large one nothing is dropped, as under asp"`
}

// Check names the key, the value, the limit and the way out.
func (p *RingmasterParams) Check() error {
	if p.DelayThreshold < 0 {
		return fmt.Errorf("delay_threshold: %d is below 0; set the delay from which on a push is dropped, 1 or more, or "+
			"0 for twice the number of workers", p.DelayThreshold)
	}
	return nil
}

var ringmaster = Entry{
	Name: "ringmaster",
	Rule: "asp with one condition: a push of delay d, the versions made since its worker pulled, is applied if d " +
		"< R, and dropped otherwise; a pull is answered at once either way; one commit per push",
	Short: "asp without the pushes whose delay is `delay_threshold` or more",
	Paper: "Ringmaster ASGD (ICML 2025, arXiv 2501.16168), its algorithm without stops; R = max(1, " +
		"ceil(sigma^2/eps)) there; the default of R is ours",
	Evidence: "P",
	Use:      "a few workers are far slower than the others, and their stale gradients do harm; what they compute is wasted",
	Scope:    PerShard,
	Fold:     FoldArrival,
	Params:   func() Params { return &RingmasterParams{} },
	LeadMax:  func(Params) (int64, bool) { return 0, false },
	Whole:    func(Common, Params) bool { return false },
	Says:     Says{Papers: terms.Cite("maranjyan2025ringmaster")},
	New:      newRingmaster,

	DropsStale: true,
	NeverWaits: func(Params) bool { return true },
}

func newRingmaster(env Env, common Common, params Params) (Scheme, error) {
	p := params.(*RingmasterParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("ringmaster: %w", err)
	}
	delays := p.DelayThreshold
	if delays == 0 {
		delays = 2 * int64(env.Workers)
	}
	r := rule{name: "ringmaster", limit: fixed{math.MaxInt64}, unbounded: true, release: ReleaseSoft, perPush: true,
		mix: fresh{delays: delays, version: env.Start}}
	return newGate(env, common, FoldArrival, r)
}

// fresh lets a push in if fewer than delays versions were made since its worker pulled. What it lets in is committed
// as without it, push by push or several together.
type fresh struct {
	plain
	delays  int64 // R; at least 1, so that a push of the newest version always counts, and the run goes on
	version int64 // commits of the shard so far, in the count that its pushes have in Seen
}

func (m fresh) stale(g *gate, ev Event) bool {
	if ev.Seen > m.version {
		g.bug(ev, fmt.Sprintf("it was computed on version %d, but the newest is %d", ev.Seen, m.version))
	}
	return m.version-ev.Seen >= m.delays
}

func (m fresh) pushed(g *gate, p push, seen int64, out []Decision) []Decision {
	m.committed(g, nil)
	return m.plain.pushed(g, p, seen, out)
}

func (m fresh) committed(g *gate, _ *Decision) {
	m.version++
	g.mix = m
}

func (m fresh) text(b *strings.Builder) { fmt.Fprintf(b, " version=%d", m.version) }
func (m fresh) save(b []byte) []byte    { return binary.LittleEndian.AppendUint64(b, uint64(m.version)) }
func (m fresh) load(d *decoder) mix     { return fresh{delays: m.delays, version: d.natural()} }
