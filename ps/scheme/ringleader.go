package scheme

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"fluentps/internal/policy/terms"
)

// RingleaderParams are the keys of a ringleader rule.
type RingleaderParams struct {
	Staleness int64   `yaml:"staleness" min:"-1" idle:"lead" doc:"s, the bound on c - v in iterations as in ssp, so that a fast worker does not add ever more gradients to one step; -1 is no bound, as in the paper"`
	Release   Release `yaml:"release" values:"soft,lazy,block" doc:"with a bound: when a delayed pull is answered, as in ssp"`
}

// Check names the key, the value, the limit and the way out.
func (p *RingleaderParams) Check() error {
	if err := checkBoundOrNone(p.Staleness); err != nil {
		return err
	}
	return p.Release.check()
}

// Several implements Several: a version has at least one push of each worker.
func (p *RingleaderParams) Several(workers int) (int64, bool) { return int64(workers), false }

// VersionText says what a version is.
func (p *RingleaderParams) VersionText(int) string { return "one when every worker has pushed" }

var ringleader = Entry{
	Name: "ringleader",
	Rule: "a pull is answered at once, or as in ssp where staleness is set; the shard keeps, per worker, the mean " +
		"of its pushes since the last commit; when every worker in the run has one, the mean of these means is one " +
		"commit, and the table is empty",
	Short: "a step with the mean over workers of each one's mean; nobody waits, nothing is dropped",
	Paper: "Ringleader ASGD (arXiv 2509.22860): the step and the bound of 2n-2 on delays are its own; one step of " +
		"each full table is our reading, which keeps delays at 1 or less",
	Evidence: "R",
	Use: "each worker has data of its own kind, so that all must weigh alike, and speeds differ; a version waits " +
		"for the slowest worker, its workers wait for nobody",
	Scope:  PerShard,
	Fold:   FoldArrival,
	Weight: NoWeight,
	Params: func() Params { return &RingleaderParams{Staleness: -1, Release: ReleaseSoft} },
	Bound:  "staleness",
	LeadMax: func(p Params) (int64, bool) {
		s := p.(*RingleaderParams).Staleness
		return max(s, 0), s >= 0
	},
	Means: func(_ Params, workers int) int { return workers },
	Whole: func(Common, Params) bool { return false },
	Says:  Says{Papers: terms.Cite("maranjyan2025ringleader"), Traits: []terms.Trait{terms.Alike}},
	New:   newRingleader,

	NeverWaits: func(p Params) bool { return p.(*RingleaderParams).Staleness < 0 },
}

// tableMax limits the accumulators of ringleader, one per worker, to what a Slot can name.
const tableMax = math.MaxInt16 - int(SlotMean)

func newRingleader(env Env, common Common, params Params) (Scheme, error) {
	p := params.(*RingleaderParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("ringleader: %w", err)
	}
	if env.Workers > tableMax {
		return nil, fmt.Errorf("ringleader: %d workers, but it keeps a mean of a shard's size for each, and at most %d; "+
			"take fewer workers, or rennala, which keeps none", env.Workers, tableMax)
	}
	r := rule{name: "ringleader", release: p.Release, perPush: true, mix: &table{samples: make([]int64, env.Workers)}}.limited(p.Staleness)
	common, err := common.resolve("ringleader", FoldArrival)
	if err == nil {
		err = r.checkWhole(common, "commits a mean of the means of its workers")
	}
	if err != nil {
		return nil, err
	}
	return newGate(env, common, FoldArrival, r)
}

// table is the mix of ringleader. The accumulator of worker w, SlotMean + w, holds the sum of w's pushes since the last
// commit. With S_w samples in it, and n workers that have one, a commit is
//
//	pending = sum over w of 1/(n S_w) * (SlotMean + w), in the order of ranks
//
// The table is full when every worker in the run has a push in it. A worker that has left counts with what it pushed,
// and nobody waits for it.
//
// Delays are at most 1: from a reply with version k on, the first commit may do with what its worker pushed before; the
// second needs the push that this reply led to.
type table struct {
	plain
	samples []int64 // per worker: S_w; 0: it has no push in the table
	present int     // workers in the run that have a push in the table
}

func (m *table) pushed(g *gate, p push, _ int64, out []Decision) []Decision {
	d := Decision{Kind: Fold, Worker: p.worker, Shard: g.shard, Iter: p.iter, Dst: SlotMean + Slot(p.worker),
		Src: SlotPush, Scale: 1, Weight: 1}
	if m.samples[p.worker] == 0 {
		d.Scale = 0
		m.present++
	}
	m.samples[p.worker] += p.samples
	return m.commitFull(g, p.worker, p.iter, append(out, d))
}

func (m *table) forget(g *gate, w int32) {
	switch {
	case m.samples[w] == 0:
	case g.left[w]:
		m.present--
	default:
		m.present++
	}
}

func (m *table) settle(g *gate, out []Decision) []Decision {
	return m.commitFull(g, NoWorker, g.v, out)
}

// commitFull commits the table if it is full. When nobody is left, it commits what there is.
func (m *table) commitFull(g *gate, w int32, iter int64, out []Decision) []Decision {
	if m.present < g.live {
		return out
	}
	n, sum := 0, int64(0)
	for _, s := range m.samples {
		if s > 0 {
			n, sum = n+1, sum+s
		}
	}
	if n == 0 {
		return out
	}
	scale := 0.0
	for k, s := range m.samples {
		if s > 0 {
			out = append(out, Decision{Kind: Fold, Worker: int32(k), Shard: g.shard, Iter: iter, Dst: SlotPending,
				Src: SlotMean + Slot(k), Scale: scale, Weight: 1 / (float64(n) * float64(s))})
			scale = 1
		}
	}
	clear(m.samples)
	m.present = 0
	return append(out, Decision{Kind: Commit, Worker: w, Shard: g.shard, Iter: iter, Dst: SlotParams, Src: SlotPending,
		Scale: 1, Weight: 1, Samples: sum})
}

// text shows the samples of each worker in the table, such as table=32,0,64.
func (m *table) text(b *strings.Builder) {
	head := " table="
	for _, s := range m.samples {
		fmt.Fprintf(b, "%s%d", head, s)
		head = ","
	}
}

func (m *table) save(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, uint64(m.present))
	for _, s := range m.samples {
		b = binary.LittleEndian.AppendUint64(b, uint64(s))
	}
	return b
}

func (m *table) load(d *decoder) mix {
	n := &table{present: int(d.between(0, int64(len(m.samples)))), samples: make([]int64, len(m.samples))}
	for w := range n.samples {
		n.samples[w] = d.natural()
	}
	return n
}

// broken names the first invariant that a decoded state violates.
func (m *table) broken(g *gate) string {
	present, some := 0, false
	for w, s := range m.samples {
		some = some || s > 0
		if s > 0 && !g.left[w] {
			present++
		}
	}
	switch {
	case present != m.present:
		return "a table with another number of workers in the run than it says"
	case some && present == g.live:
		return "a full table that should be committed"
	}
	return ""
}
