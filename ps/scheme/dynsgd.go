package scheme

import (
	"encoding/binary"
	"fmt"
	"strings"

	"fluentps/internal/policy/terms"
)

// DynSGDParams are the keys of a dynsgd rule.
type DynSGDParams struct {
	Versions  string  `yaml:"versions" values:"single,multi" doc:"single weighs a push by 1/d, where d - 1 pushes were committed since its worker pulled; multi keeps the mean of the pushes of each version, so that each of its d pushes weighs 1/d in the end"`
	Staleness int64   `yaml:"staleness" min:"-1" idle:"lead" doc:"s, the bound on c - v in iterations as in ssp; 0 is as bsp, -1 is no bound, as asp (single only)"`
	Release   Release `yaml:"release" values:"soft,lazy,block" doc:"with a bound: when a delayed pull is answered, as in ssp"`
}

// meansStalenessMax limits the accumulators of versions: multi, of which there are s+2, to what a Slot can name.
const meansStalenessMax = 100

// Check names the key, the value, the limit and the way out.
func (p *DynSGDParams) Check() error {
	if err := checkBoundOrNone(p.Staleness); err != nil {
		return err
	}
	switch p.Versions {
	case "single":
	case "multi":
		if p.Staleness < 0 || p.Staleness > meansStalenessMax {
			return fmt.Errorf("staleness: %d, but versions: multi keeps s+2 means of a shard's size; set 0 to %d, or "+
				"versions: single", p.Staleness, meansStalenessMax)
		}
	default:
		return fmt.Errorf("versions: %q is not one of single, multi; single is the default", p.Versions)
	}
	return p.Release.check()
}

var dynsgd = Entry{
	Name: "dynsgd",
	Rule: "pulls as in ssp; a push is the delta of a local step, and is added with the weight 1/d, where d is its " +
		"delay: one more than the pushes committed since its worker pulled, or the number of pushes of the same version; one commit per push",
	Short: "workers push local steps, and the server divides each by its delay",
	Paper: "DynSGD (Jiang, Cui, Zhang, Yu, SIGMOD 2017): versions: single as in a distributed-Keras library of " +
		"others; multi, the server of the paper, recalled",
	Evidence: "M",
	Use: "workers of uneven speed without tuning the weight of their pushes: the later an update arrives, the " +
		"less it moves the parameters",
	Scope:  PerShard,
	Push:   "delta",
	Fold:   FoldArrival,
	Weight: "1",
	Params: func() Params { return &DynSGDParams{Versions: "single", Staleness: 3, Release: ReleaseSoft} },
	Bound:  "staleness",
	LeadMax: func(p Params) (int64, bool) {
		s := p.(*DynSGDParams).Staleness
		return max(s, 0), s >= 0
	},
	Means: func(p Params, _ int) int {
		if q := p.(*DynSGDParams); q.Versions == "multi" {
			return int(q.Staleness) + 2
		}
		return 0
	},
	Whole:      func(Common, Params) bool { return false },
	NeverWaits: func(p Params) bool { return p.(*DynSGDParams).Staleness < 0 },
	Says:       Says{Papers: terms.Cite("jiang2017heterogeneity")},
	New:        newDynSGD,
}

func newDynSGD(env Env, common Common, params Params) (Scheme, error) {
	p := params.(*DynSGDParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("dynsgd: %w", err)
	}
	if common.Fold == FoldRank {
		return nil, fmt.Errorf("dynsgd: fold: rank commits an iteration as a whole, but dynsgd weighs each push by its delay; use fold: arrival")
	}
	if common.Weight == 0 {
		common.Weight = 1
	}
	r := rule{name: "dynsgd", release: p.Release, perPush: true, mix: byDelay{version: env.Start}}
	if p.Versions == "multi" {
		r.mix = newByVersion(env.Workers, int(p.Staleness)+2)
	}
	return newGate(env, common, FoldArrival, r.limited(p.Staleness))
}

// byDelay is the single-version form: W += u/d, d = version - version pulled + 1.
type byDelay struct {
	plain
	version int64 // commits of the shard so far, in the count that its pushes have in Seen
}

func (m byDelay) pushed(g *gate, p push, seen int64, out []Decision) []Decision {
	d := m.version - seen + 1
	if d < 1 {
		panic(fmt.Sprintf("scheme: shard %d: worker %d's push of iteration %d was computed on version %d, but the newest "+
			"is %d", g.shard, p.worker, p.iter, seen, m.version))
	}
	g.mix = byDelay{version: m.version + 1}
	return g.commitPushes(p.worker, p.iter, g.weight/float64(d), g.fold(p, out))
}

func (m byDelay) text(b *strings.Builder) { fmt.Fprintf(b, " version=%d", m.version) }
func (m byDelay) save(b []byte) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(m.version))
}
func (m byDelay) load(d *decoder) mix { return byDelay{version: d.natural()} }
