package scheme

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"fluentps/internal/policy/terms"
)

// PSSPMode says what the probability of a pause depends on.
type PSSPMode string

const (
	PSSPConstant PSSPMode = "constant" // on nothing
	PSSPDynamic  PSSPMode = "dynamic"  // on how far the worker leads
)

// PSSPCentre is the k = i - v, i being the iteration just pushed, at which the probability of mode dynamic is alpha/2.
type PSSPCentre string

const (
	PSSPCentreS  PSSPCentre = "s"
	PSSPCentre2S PSSPCentre = "2s"
)

// PSSPCoin says which shards a coin decides for.
type PSSPCoin string

const (
	PSSPCoinServer PSSPCoin = "server" // all shards of the rule on one server
	PSSPCoinShard  PSSPCoin = "shard"  // one shard
)

// PSSPParams are the keys of a pssp rule.
type PSSPParams struct {
	Staleness        int64      `yaml:"staleness" min:"0" idle:"lead" doc:"s: up to this lead nobody is paused (but see cut_off)"`
	Mode             PSSPMode   `yaml:"mode" values:"constant,dynamic" doc:"constant pauses with the given probability, dynamic with alpha / (1 + e^(centre - k)), where k = i - v and i is the iteration just pushed"`
	Probability      float64    `yaml:"probability" min:"0" max:"1" doc:"c of mode: constant; 1 is ssp, 0 is asp, and 1/c - 1 is the mean number of iterations beyond s before a pause"`
	Alpha            float64    `yaml:"alpha" min:"0" max:"1" doc:"of mode: dynamic; the factor of its formula, 1 as in the released code"`
	Significance     bool       `yaml:"significance" doc:"of mode: dynamic; true multiplies alpha by the significance of the worker's last push, |g|/|w| with 2-norms over the shard, at most 1"`
	Centre           PSSPCentre `yaml:"centre" values:"s,2s" doc:"of mode: dynamic; the k at which the probability is alpha/2"`
	CutOff           bool       `yaml:"cut_off" doc:"of mode: dynamic; false also pauses below s, any worker that leads the slowest"`
	Coin             PSSPCoin   `yaml:"coin" values:"server,shard" doc:"the shards that one coin decides for: server is all shards of the rule on one server, each with its own probability, since one request has one coin; shard is each shard by itself, so a worker is paused more often the more shards there are"`
	PauseOnlyFastest bool       `yaml:"pause_only_fastest" doc:"true pauses only a worker that no other has overtaken; false pauses any worker, which the bound in the mean needs"`
	HardCap          int64      `yaml:"hard_cap" min:"0" idle:"lead" doc:"beyond this lead every pull waits; at least s, or 0 for no cap; with a cap there is a bound on c - v, which fold: rank needs"`
	Recheck          bool       `yaml:"recheck" doc:"true answers a paused pull only when its lead is within s again, which the bound in the mean needs; false is as in the released code: at the step of v that release names, whatever the lead"`
	Release          Release    `yaml:"release" values:"soft,lazy,block" doc:"when a paused pull is answered, if recheck allows it"`
}

// Check names the key, the value, the limit and the way out.
func (p *PSSPParams) Check() error {
	fraction := func(x float64) bool { return x >= 0 && x <= 1 }
	switch {
	case p.Staleness < 0:
		return fmt.Errorf("staleness: %d is below 0, the lead at which the slowest worker still runs; set 0 or more", p.Staleness)
	case p.Staleness > stalenessMax:
		return fmt.Errorf("staleness: %d is above %d, more iterations than any run has; set scheme: asp for no bound", p.Staleness, stalenessMax)
	case p.Mode != PSSPConstant && p.Mode != PSSPDynamic:
		return fmt.Errorf("mode: %q is not one of constant, dynamic; constant is the default", p.Mode)
	case !fraction(p.Probability):
		return fmt.Errorf("probability: %v is not within 0 and 1; set the chance of a pause, such as 0.2 for one in five", p.Probability)
	case !fraction(p.Alpha):
		return fmt.Errorf("alpha: %v is not within 0 and 1; leave it out for 1", p.Alpha)
	case p.Centre != PSSPCentreS && p.Centre != PSSPCentre2S:
		return fmt.Errorf("centre: %q is not one of s, 2s; s is the default", p.Centre)
	case p.Coin != PSSPCoinServer && p.Coin != PSSPCoinShard:
		return fmt.Errorf("coin: %q is not one of server, shard; server is the default", p.Coin)
	case p.HardCap < 0 || p.HardCap > 0 && p.HardCap < p.Staleness:
		return fmt.Errorf("hard_cap: %d is below the staleness, %d; set that or more, or 0 for no cap", p.HardCap, p.Staleness)
	case p.HardCap > stalenessMax:
		return fmt.Errorf("hard_cap: %d is above %d, more iterations than any run has; set 0 for no cap", p.HardCap, stalenessMax)
	case p.Mode == PSSPConstant && (p.Alpha != 1 || p.Significance || p.Centre != PSSPCentreS || !p.CutOff):
		return errors.New("mode: constant has no use for alpha, significance, centre and cut_off; remove them, or set mode: dynamic")
	}
	return p.Release.check()
}

var pssp = Entry{
	Name:  "pssp",
	Short: "ssp with a coin: beyond the bound some pulls pass, the others wait",
	Rule: "a pull with c - v <= s is answered at once; beyond s a coin of the server, one for each request of a " +
		"worker, lets it through or delays it until c - v <= s; one commit per push",
	Paper: "FluentPS (Yao, Wu, Wang, IEEE Cluster 2019), PSSP: constant and dynamic as in the released servers; " +
		"significance is reconstructed, hard_cap, recheck and coin: shard are ours. Its authors push updates: " +
		"examples/fashion-softmax-fluentps.yaml",
	Evidence: "C",
	Use: "as ssp with fewer delayed pulls; with pause_only_fastest: false and recheck: true the lead has a " +
		"bound in the mean, s + 1/c - 1, otherwise none",
	Scope:      PerShard,
	Fold:       FoldArrival,
	NeedsNorms: func(p Params) bool { return p.(*PSSPParams).Significance },
	Params: func() Params {
		return &PSSPParams{Staleness: 3, Mode: PSSPConstant, Probability: 0.5, Alpha: 1, Centre: PSSPCentreS,
			CutOff: true, Coin: PSSPCoinServer, PauseOnlyFastest: true, Recheck: true, Release: ReleaseSoft}
	},
	Bound:   "staleness",
	LeadMax: func(p Params) (int64, bool) { return p.(*PSSPParams).HardCap, p.(*PSSPParams).HardCap > 0 },
	Whole:   func(c Common, _ Params) bool { return c.Fold == FoldRank },
	Says:    Says{Papers: terms.Cite("yao2019fluentps")},
	New:     newPSSP,
}

func newPSSP(env Env, common Common, params Params) (Scheme, error) {
	p := *params.(*PSSPParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("pssp: %w", err)
	}
	l := &psspLimit{fixed: fixed{p.Staleness}, keys: p, coins: env.coins(), significances: slices.Repeat([]float64{1}, env.Workers)}
	if p.Coin == PSSPCoinShard {
		l.coins = l.coins.with(int64(env.Shards[0]))
	}
	r := rule{name: "pssp", limit: l, unbounded: p.HardCap == 0, release: p.Release, perPush: true}
	return newGate(env, common, FoldArrival, r)
}

// psspLimit is PSSP's limit: beyond the fixed bound s a pull is delayed with some probability.
type psspLimit struct {
	fixed
	keys  PSSPParams
	coins coins // of the server and the rule, and with coin: shard of the shard
	// Per worker: the significance of its last push, within 0 and 1; 1 before its first push, and without the key.
	significances []float64
}

// bound is the limit for a paused pull: s, or with recheck: false no more than its key and the cap.
func (l *psspLimit) bound(int64) int64 {
	switch {
	case l.keys.Recheck:
		return l.s
	case l.keys.HardCap > 0:
		return l.keys.HardCap
	}
	return math.MaxInt64
}

// pushed stores the significance SF = |g|/|w| of the worker's last push. That alpha comes from such a function of
// Gaia's kind is recalled from FluentPS. How it is normalised was not found: the limit of 1 is ours.
func (l *psspLimit) pushed(ev Event) {
	if l.keys.Significance {
		l.significances[ev.Worker] = significance(float64(ev.Norm2), float64(ev.NormW))
	}
}

// hasMemory: coins need no memory, since a resumed run tosses the same ones.
func (l *psspLimit) hasMemory() bool { return l.keys.Significance }

func (l *psspLimit) workerJoined(w int32) { l.significances[w] = 1 }

// significance is g/w, limited to 1. It is 1 where g/w is NaN: no worker should run away from such a push.
func significance(g, w float64) float64 {
	switch sf := g / w; {
	case g == 0:
		return 0
	case sf < 1:
		return sf
	}
	return 1
}

func (l *psspLimit) admit(g *gate, w int32, lead int64) bool {
	k := lead - 1 // i - v, i = c-1 being the iteration just pushed
	least := l.s
	if !l.keys.CutOff {
		least = 0
	}
	if k < least {
		return true
	}
	switch {
	case l.keys.HardCap > 0 && lead > l.keys.HardCap:
		return false
	case l.keys.PauseOnlyFastest && !g.fastest(w):
		return true
	}
	return l.coins.toss(w, g.v+lead) >= l.significances[w]*l.keys.pause(k)
}

// pause is the probability of a pause at k = i - v, after a push of significance 1.
func (p *PSSPParams) pause(k int64) float64 {
	if p.Mode == PSSPConstant {
		return p.Probability
	}
	centre := p.Staleness
	if p.Centre == PSSPCentre2S {
		centre *= 2
	}
	return p.Alpha / (1 + math.Exp(float64(centre-k)))
}

func (l *psspLimit) save(b []byte) []byte {
	if l.keys.Significance {
		for _, x := range l.significances {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
	}
	return b
}

func (l *psspLimit) load(d *decoder) limit {
	n := *l
	n.significances = slices.Clone(l.significances)
	if l.keys.Significance {
		for w := range n.significances {
			n.significances[w] = d.fraction(0, 1)
		}
	}
	return &n
}
