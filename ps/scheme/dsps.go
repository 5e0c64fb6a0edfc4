package scheme

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"fluentps/internal/policy/terms"
)

// DSPSParams are the keys of a dsps rule.
type DSPSParams struct {
	SMin      int64   `yaml:"s_min" min:"0" idle:"lead" doc:"the bound on c - v among workers of equal speed"`
	SMax      int64   `yaml:"s_max" min:"0" idle:"lead" doc:"the bound where one worker is at least twice as slow as another, the weak threshold w of the original; at least s_min"`
	Window    int64   `yaml:"window" min:"1" doc:"iterations of v between two measurements of the speeds"`
	Smoothing float64 `yaml:"smoothing" min:"0.01" max:"1" doc:"share of the newest iteration in the moving average of a worker's iteration time; 1 ignores all earlier ones"`
	Release   Release `yaml:"release" values:"soft,lazy,block" doc:"when a delayed pull is answered; when the bound rises, all delayed pulls are judged anew"`
}

// Check names the key, the value, the limit and the way out.
func (p *DSPSParams) Check() error {
	switch {
	case p.SMin < 0:
		return fmt.Errorf("s_min: %d is below 0, the bound at which the slowest worker still runs; set 0 or more", p.SMin)
	case p.SMax < p.SMin:
		return fmt.Errorf("s_max: %d is below s_min, which is %d; set s_max to s_min (as ssp) or more", p.SMax, p.SMin)
	case p.SMax > stalenessMax:
		return fmt.Errorf("s_max: %d is above %d, more iterations than any run has; set scheme: asp for no bound", p.SMax, stalenessMax)
	case p.Window < 1:
		return fmt.Errorf("window: %d is below 1, a measurement in each iteration; set 1 or more", p.Window)
	case !(p.Smoothing >= 0.01 && p.Smoothing <= 1):
		return fmt.Errorf("smoothing: %v is not within 0.01 and 1; 0.2 is the default, 1 takes the newest iteration alone", p.Smoothing)
	}
	return p.Release.check()
}

var dsps = Entry{
	Name:  "dsps",
	Short: "ssp whose bound moves between `s_min` and `s_max`, by how uneven the workers are",
	Rule: "as ssp, with a bound that each shard sets anew every few iterations, from s_min where all workers are " +
		"equally fast to s_max where one is twice as slow as another; one commit per push",
	Paper: "our stand-in: FluentPS (Yao, Wu, Wang, IEEE Cluster 2019) names DSPS as SSP with a changing bound; the " +
		"formula of its likely source (Zhang et al., Sensors 17(10):2172, 2017) was not found",
	Evidence: "X",
	Use:      "where it is not known in advance whether, or when, a worker becomes slow",
	Scope:    PerShard,
	Fold:     FoldArrival,
	Params: func() Params {
		return &DSPSParams{SMin: 1, SMax: 8, Window: 10, Smoothing: 0.2, Release: ReleaseSoft}
	},
	Bound:   "s_max",
	LeadMax: func(p Params) (int64, bool) { return p.(*DSPSParams).SMax, true },
	Whole:   func(c Common, _ Params) bool { return c.Fold == FoldRank },
	Says:    Says{Papers: terms.Cite("yao2019fluentps")},
	New:     newDSPS,
}

func newDSPS(env Env, common Common, params Params) (Scheme, error) {
	p := *params.(*DSPSParams)
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("dsps: %w", err)
	}
	l := &dspsLimit{keys: p, pace: make([]pace, env.Workers)}
	for w := range l.pace {
		l.workerJoined(int32(w))
	}
	l.setAlpha(0)
	r := rule{name: "dsps", limit: l, release: p.Release, perPush: true}
	return newGate(env, common, FoldArrival, r)
}

// dspsLimit is dsps' limit: a bound that moves between s_min and s_max with the unevenness of the workers.
type dspsLimit struct {
	fixed // the current bound, within s_min and s_max
	keys  DSPSParams
	alpha float64 // 0: all workers are equally fast; 1: one takes twice as long as another, or more
	pace  []pace
}

// pace is the measured iteration time of a worker: from the reply that lets it compute to its push. So waits for other
// workers do not count; the time that a reply is in flight does.
type pace struct {
	since time.Duration // when it was last answered; -1: it is not computing, as far as this shard knows
	mean  float64       // moving average in nanoseconds; -1: none yet
}

func (l *dspsLimit) admit(_ *gate, _ int32, lead int64) bool { return lead <= l.s }

func (l *dspsLimit) replied(w int32, at time.Duration) { l.pace[w].since = at }

func (l *dspsLimit) pushed(ev Event) {
	p := &l.pace[ev.Worker]
	if p.since < 0 {
		return
	}
	x := float64(ev.At - p.since)
	if p.mean < 0 {
		p.mean = x
	} else {
		p.mean += l.keys.Smoothing * (x - p.mean)
	}
	p.since = -1
}

func (l *dspsLimit) workerLeft(w int32) { l.pace[w].since = -1 }

func (l *dspsLimit) hasMemory() bool { return true }

func (l *dspsLimit) workerJoined(w int32) { l.pace[w] = pace{since: -1, mean: -1} }

// vMoved sets the bound when v enters another window, if the pace of every worker in the run is known.
func (l *dspsLimit) vMoved(g *gate, old int64) (rose bool) {
	if g.live == 0 || g.v/l.keys.Window == old/l.keys.Window {
		return false
	}
	least, most := math.Inf(1), 0.0
	for w, p := range l.pace {
		if g.left[w] {
			continue
		}
		if p.mean < 0 {
			return false
		}
		least, most = min(least, p.mean), max(most, p.mean)
	}
	before := l.s
	switch {
	case least == most:
		l.setAlpha(0)
	case least == 0:
		l.setAlpha(1)
	default:
		l.setAlpha(min(most/least-1, 1))
	}
	return l.s > before
}

func (l *dspsLimit) setAlpha(alpha float64) {
	l.alpha = alpha
	l.s = l.keys.SMin + int64(math.Round(alpha*float64(l.keys.SMax-l.keys.SMin)))
}

// text shows the current bound.
func (l *dspsLimit) text(b *strings.Builder) { fmt.Fprintf(b, " s=%d", l.s) }

// save leaves the bound out: it follows from alpha, also if the run resumes with other keys.
func (l *dspsLimit) save(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, math.Float64bits(l.alpha))
	for _, p := range l.pace {
		b = binary.LittleEndian.AppendUint64(b, uint64(p.since))
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(p.mean))
	}
	return b
}

func (l *dspsLimit) load(d *decoder) limit {
	n := *l
	n.pace = slices.Clone(l.pace)
	n.setAlpha(d.fraction(0, 1))
	for w := range n.pace {
		n.pace[w] = pace{time.Duration(d.between(-1, maxClock)), d.fraction(-1, maxClock)}
	}
	return &n
}
