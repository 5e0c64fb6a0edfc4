package scheme

import (
	"fmt"
	"slices"
	"strings"

	"fluentps/internal/policy/terms"
)

// ESSPParams are the keys of an essp rule.
type ESSPParams struct {
	Staleness int64 `yaml:"staleness" min:"0" idle:"lead" doc:"s: a worker starts iteration c on a copy of clock c - s or newer; 0 reads what bsp reads"`
}

// Check names the key, the value, the limit and the way out.
func (p *ESSPParams) Check() error {
	if p.Staleness > keptMax {
		return fmt.Errorf("staleness: %d is above %d, and a worker keeps its last s+1 pushes; lower it, or set scheme: "+
			"ssp with push: delta and cache: true", p.Staleness, keptMax)
	}
	ssp := SSPParams{Staleness: p.Staleness, Release: ReleaseSoft}
	return ssp.Check()
}

// keptMax is more than any memory holds, and small enough that its product with a shard's bytes does not overflow.
const keptMax = 1_000_000

var essp = Entry{
	Name: "essp",
	Rule: "the bound of ssp, but a worker pulls once and then subscribes: whenever v advances, the current " +
		"version is published to every worker; a worker starts c on its copy, with its own updates added, once the copy " +
		"has clock >= c - s; one commit per push",
	Short:    "ssp whose servers publish each version to all workers, which do not ask",
	Paper:    "ESSP (AAAI 2015) as SSPPush in Petuum Bösen's code; whole shards in place of its dirty rows",
	Evidence: "C",
	Use: "as ssp, where waiting for replies costs more than sending a version to each worker at each step of v, " +
		"and s+2 copies of the parameters fit on a worker",
	Scope: PerShard,
	Fold:  FoldArrival,
	Push:  "delta",
	// As for ssp.
	Weight:  DeltaWhole,
	Copies:  func(Params) Copies { return Published },
	Params:  func() Params { return &ESSPParams{Staleness: 3} },
	Bound:   "staleness",
	LeadMax: func(p Params) (int64, bool) { return p.(*ESSPParams).Staleness, true },
	Whole:   func(Common, Params) bool { return false },
	Says:    Says{Papers: terms.Cite("dai2015essp")},
	New:     newESSP,
}

func newESSP(env Env, common Common, params Params) (Scheme, error) {
	p := params.(*ESSPParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("essp: %w", err)
	}
	if common.Fold == FoldRank {
		return nil, fmt.Errorf("essp: fold: rank delays pushes until their iteration closes, and a published version " +
			"must contain every push that has landed; use fold: arrival")
	}
	g, err := newGate(env, common, FoldArrival, rule{name: "essp", limit: fixed{p.Staleness}, release: ReleaseSoft, perPush: true})
	if err != nil {
		return nil, err
	}
	return &publisher{gate: g.(*gate), subscribed: make([]bool, env.Workers)}, nil
}

// publisher is a gate that publishes each step of v. A worker subscribes by its first pull, which the gate delays as
// ssp does. The subscription starts with the reply and ends when the worker leaves. publisher does not know whether a
// worker waits for a version.
type publisher struct {
	*gate
	subscribed []bool
}

// Step implements Scheme.
func (p *publisher) Step(ev Event, out []Decision) []Decision {
	v, from := p.v, len(out)
	out = p.gate.Step(ev, out)
	if ev.Kind == Left {
		p.subscribed[ev.Worker] = false
	}
	decided := out[from:]
	if p.v > v {
		for w, ok := range p.subscribed {
			if ok && !answers(decided, int32(w)) {
				out = append(out, Decision{Kind: Publish, Worker: int32(w), Shard: p.shard, Iter: p.v, Src: SlotParams})
			}
		}
	}
	for _, d := range decided {
		if d.Kind == Reply {
			p.subscribed[d.Worker] = true
		}
	}
	return out
}

// answers says whether the decisions answer a pull of the worker.
func answers(decided []Decision, w int32) bool {
	return slices.ContainsFunc(decided, func(d Decision) bool { return d.Kind == Reply && d.Worker == w })
}

// String is the line of the gate and the subscribers, such as " subscribed=w0,w2".
func (p *publisher) String() string {
	var names []string
	for w, ok := range p.subscribed {
		if ok {
			names = append(names, fmt.Sprintf("w%d", w))
		}
	}
	if len(names) == 0 {
		return p.gate.String()
	}
	return p.gate.String() + " subscribed=" + strings.Join(names, ",")
}

// MarshalBinary saves the gate, and then the subscribers, one byte per worker.
func (p *publisher) MarshalBinary() ([]byte, error) {
	b, err := p.gate.MarshalBinary()
	for _, ok := range p.subscribed {
		b = append(b, 0)
		if ok {
			b[len(b)-1] = 1
		}
	}
	return b, err
}

// UnmarshalBinary restores what MarshalBinary saved; on an error the state is unchanged.
func (p *publisher) UnmarshalBinary(data []byte) error {
	n := len(data) - len(p.subscribed)
	if n < 0 {
		return fmt.Errorf("%s: saved state is damaged: too short", p.name)
	}
	if slices.ContainsFunc(data[n:], func(b byte) bool { return b > 1 }) {
		return fmt.Errorf("%s: saved state is damaged: a subscription is neither 0 nor 1", p.name)
	}
	g := *p.gate
	if err := g.UnmarshalBinary(data[:n]); err != nil {
		return err
	}
	for w, b := range data[n:] {
		if b == 1 && g.left[w] {
			return fmt.Errorf("%s: saved state is damaged: worker %d has left and is subscribed", p.name, w)
		}
	}
	*p.gate = g
	for w, b := range data[n:] {
		p.subscribed[w] = b == 1
	}
	return nil
}
