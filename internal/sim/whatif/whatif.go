// Package whatif asks, after a run, what it would have been with another scheme or without its slow workers: it
// simulates both with the computing times that the run measured.
package whatif

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"fluentps/internal/configs"
	"fluentps/internal/policy/straggler"
	"fluentps/internal/policy/work"
	"fluentps/internal/show/metrics"
	"fluentps/internal/sim"
	"fluentps/internal/sim/calibrate"
	"fluentps/internal/sim/check"
)

// Candidate is a change of the configuration.
type Candidate struct {
	Name     string
	Settings []string // as those of --set
}

// Candidates are the changes that are tried for so many workers. A change that leaves the configuration as it is, or
// that does not go with it, is left out later.
func Candidates(workers int) []Candidate {
	sync := func(rule string) string { return `sync=[{match: "*", ` + rule + `}]` }
	const fixed = "work={policy: fixed}"
	return []Candidate{
		{"bsp", []string{sync("scheme: bsp"), fixed}},
		{"ssp(3)", []string{sync("scheme: ssp, staleness: 3"), fixed}},
		{"asp", []string{sync("scheme: asp"), fixed}},
		{fmt.Sprintf("drop(%d of %d)", workers-1, workers), []string{sync(fmt.Sprintf("scheme: drop, required: %d", workers-1)), fixed}},
		{"r2sp", []string{sync("scheme: r2sp"), fixed}},
		{"dbs", []string{sync("scheme: bsp"), "work={policy: dbs}"}},
		{"flexrr", []string{sync("scheme: bsp"), "work={policy: flexrr}"}},
		{"epsp", []string{sync("scheme: bsp"), "work={policy: epsp}"}},
	}
}

// Outcome is a simulated run.
type Outcome struct {
	Name         string  `json:"name"`
	Ratio        float64 `json:"ratio"`         // samples per second over those of the simulated run as it was
	StalenessP50 int64   `json:"staleness_p50"` // versions, of the shard that has the largest
	StalenessMax int64   `json:"staleness_max"`
	// With real gradients: whether the target was reached, and when in virtual time.
	Reached *float64 `json:"target_reached_s,omitempty"`
	// Accuracy is that at the end, with real gradients.
	Accuracy *float64 `json:"test_accuracy,omitempty"`
	R2       *float64 `json:"test_r2,omitempty"` // instead of it, if the run predicts numbers
}

// Slow is a worker that costs time.
type Slow struct {
	Worker int     `json:"worker"`
	Cost   float64 `json:"cost"` // share of the time that the run would take less if the worker computed as fast as the others
}

// Answer is what was found.
type Answer struct {
	Sentence   string    `json:"line"`      // Line
	Run        string    `json:"run"`       // the name of what the run did
	Error      float64   `json:"error"`     // by how much the simulated run as it was misses the time of the real one, as a share
	Gradients  bool      `json:"gradients"` // real gradients were computed
	Target     float64   `json:"target,omitempty"`
	Slow       []Slow    `json:"slow,omitempty"` // the worst first
	Candidates []Outcome `json:"candidates"`     // the best first
	Base       Outcome   `json:"base"`           // the run as it was
	Refused    []string  `json:"refused,omitempty"`
	Crowded    bool      `json:"crowded,omitempty"` // the ranks competed for cores: their times are not those of each alone
}

// Question is what to ask.
type Question struct {
	Recording   calibrate.Recording
	Calibration *calibrate.Calibration
	// Load returns the configuration of the run with settings; the error says why they do not go with it.
	Load func(settings []string) (sim.Options, error)
	// Gradients has real gradients computed, up to Target if it is not 0.
	Gradients bool
	Target    float64
	// PushesMax bounds the pushes of one simulated run without gradients.
	PushesMax int
}

// Ask simulates the run as it was, without each of its slow workers, and with each candidate.
func Ask(q Question) (*Answer, error) {
	cal := q.Calibration
	a := &Answer{Run: NameOf(q.Recording.Options.Config), Gradients: q.Gradients, Target: q.Target}
	a.Error = math.Abs(cal.Simulated.Seconds()/cal.Measured.Seconds() - 1)
	workers := len(q.Recording.Iterations)
	traces := q.Recording.Traces()
	base, err := q.simulate(nil, traces)
	if err != nil {
		return nil, err
	}
	a.Base = base.outcome(a.Run, base)
	if a.Slow, err = q.costs(traces, base); err != nil {
		return nil, err
	}
	for _, c := range Candidates(workers) {
		o, err := q.Load(c.Settings)
		if err != nil {
			a.Refused = append(a.Refused, fmt.Sprintf("%s: %v", c.Name, err))
			continue
		}
		if NameOf(o.Config) == a.Run {
			continue
		}
		r, err := q.simulate(&o, traces)
		if err != nil {
			a.Refused = append(a.Refused, fmt.Sprintf("%s: %v", c.Name, err))
			continue
		}
		a.Candidates = append(a.Candidates, r.outcome(c.Name, base))
	}
	slices.SortStableFunc(a.Candidates, func(x, y Outcome) int { return x.compare(&y, q.Gradients) })
	a.Sentence = a.Line()
	return a, nil
}

// compare puts what reaches the target first, the sooner the better; without a target, what is faster.
func (o *Outcome) compare(p *Outcome, gradients bool) int {
	if gradients {
		at := func(o *Outcome) float64 {
			if o.Reached == nil {
				return math.Inf(1)
			}
			return *o.Reached
		}
		if c := cmp.Compare(at(o), at(p)); c != 0 {
			return c
		}
	}
	return cmp.Compare(p.Ratio, o.Ratio)
}

// run is a simulated run.
type run struct{ summary *metrics.Summary }

func (r run) outcome(name string, base run) Outcome {
	o := Outcome{Name: name, Ratio: float64(r.summary.SamplesPerS) / float64(base.summary.SamplesPerS)}
	for i := range r.summary.PerShard {
		if s := &r.summary.PerShard[i]; s.StalenessP50 > o.StalenessP50 || s.StalenessMax > o.StalenessMax {
			o.StalenessP50, o.StalenessMax = max(o.StalenessP50, s.StalenessP50), max(o.StalenessMax, s.StalenessMax)
		}
	}
	if s := r.summary.TargetReachedS; s != nil {
		at := float64(*s)
		o.Reached = &at
	}
	if s := r.summary.TestAccuracy; s != nil {
		accuracy := float64(*s)
		o.Accuracy = &accuracy
	}
	if s := r.summary.TestR2; s != nil {
		r2 := float64(*s)
		o.R2 = &r2
	}
	return o
}

// simulate simulates with computing times; nil: the configuration of the run.
func (q *Question) simulate(o *sim.Options, traces []straggler.Trace) (run, error) {
	if o == nil {
		own, err := q.Load(nil)
		if err != nil {
			return run{}, err
		}
		o = &own
	}
	cfg := *o.Config
	cfg.Simulate = q.Calibration.Models
	cfg.Simulate.Gradients = q.Gradients
	cfg.Faults = append(slices.Clip(cfg.Faults), configs.Fault{Worker: -1, Slow: q.Calibration.Slow})
	cfg.Checkpoint.Every, cfg.Checkpoint.EveryUpdates = 0, 0
	if q.Gradients {
		cfg.Train.Stop.Target = q.Target
	} else {
		cfg.Train.Stop = configs.Stop{Samples: q.samples(&cfg)}
	}
	o.Config, o.Traces = &cfg, configs.Traces{q.Calibration.Path: traces}
	res, err := check.Run(*o)
	if err != nil {
		return run{}, err
	}
	if !q.Gradients && res.Summary.Finished != metrics.FinishedOK {
		return run{}, fmt.Errorf("the simulated run ended: %s", res.Summary.Finished)
	}
	return run{res.Summary}, nil
}

// samples is the budget of a simulated run: that of the real one, or less.
func (q *Question) samples(cfg *configs.Config) int64 {
	s := q.Recording.Summary
	pushes := s.Iterations * int64(s.Workers) * int64(max(1, len(q.Recording.Options.Plan.Shards)))
	if most := int64(q.PushesMax); pushes > most && most > 0 {
		return max(int64(s.Workers*cfg.Train.BatchPerWorker), int64(float64(s.Samples)*float64(most)/float64(pushes)))
	}
	return s.Samples
}

// A worker is slow if it computes slowMin times as long as the lower median of all workers, and is worth a word if it
// costs costMin of the time. At most slowShown are looked at.
const (
	slowMin   = 1.1
	costMin   = 0.02
	slowShown = 3
)

// costs simulates the run without each of its slowest workers: each gets the computing times of the median worker. It
// says nothing with gradients: then base ends at the target.
func (q *Question) costs(traces []straggler.Trace, base run) (all []Slow, err error) {
	if q.Gradients {
		return nil, nil
	}
	means := make([]float64, len(traces))
	order := make([]int, len(traces))
	for w, of := range q.Recording.Iterations {
		order[w] = w
		for i := range of {
			means[w] += of[i].Compute.Seconds() / float64(len(of)) // injected slowness included
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(means[a], means[b]) })
	median := order[(len(order)-1)/2]
	for k := len(order) - 1; k >= max(0, len(order)-slowShown) && means[order[k]] >= slowMin*means[median]; k-- {
		w := order[k]
		o, err := q.Load(nil)
		if err != nil {
			return nil, err
		}
		cfg := *o.Config
		cfg.Faults = asFast(cfg.Faults, w, median)
		o.Config = &cfg
		swapped := slices.Clone(traces)
		swapped[w] = traces[median]
		models := q.Calibration.Models
		calibration := *q.Calibration
		calibration.Models = sameModel(models, w, median)
		p := *q
		p.Calibration = &calibration
		r, err := p.simulate(&o, swapped)
		if err != nil {
			return nil, err
		}
		if cost := 1 - float64(base.summary.SamplesPerS)/float64(r.summary.SamplesPerS); cost >= costMin {
			all = append(all, Slow{Worker: w, Cost: cost})
		}
	}
	slices.SortStableFunc(all, func(a, b Slow) int { return cmp.Compare(b.Cost, a.Cost) })
	return all, nil
}

// asFast gives worker w the faults of worker as.
func asFast(faults []configs.Fault, w, as int) (all []configs.Fault) {
	for _, f := range faults {
		if f.Worker != w {
			all = append(all, f)
		}
		if f.Worker == as {
			f.Worker = w
			all = append(all, f)
		}
	}
	return all
}

// sameModel gives worker w the factors of worker as.
func sameModel(m configs.Simulate, w, as int) configs.Simulate {
	m.PerWorker, m.FixedPerWorker = slices.Clone(m.PerWorker), slices.Clone(m.FixedPerWorker)
	for _, of := range [][]float64{m.PerWorker, m.FixedPerWorker} {
		if len(of) > max(w, as) {
			of[w] = of[as]
		}
	}
	return m
}

// NameOf names what a configuration does.
func NameOf(c *configs.Config) string {
	var name string
	for i := range c.Sync {
		text := c.Sync[i].Schemes()
		if bound := c.Sync[i].BoundKey(); bound != "" {
			if v := configs.Values(c)[fmt.Sprintf("sync[%d].%s", i, bound)]; v != "" {
				text += "(" + v + ")"
			}
		}
		if i > 0 {
			text = " and " + text
		}
		name += text
	}
	if c.Work.Policy != work.Fixed {
		if name == "bsp" {
			return c.Work.Policy
		}
		name += " with " + c.Work.Policy
	}
	if c.Local.IsSet() {
		name += " with " + c.Local.Policy
	}
	return name
}
