// Package straggler makes workers slow to order, for experiments. It is pure: a spec, a seed and a worker give the same slowness in every
// run, on MPI ranks and in the simulator.
//
// An injector says what an iteration of a worker takes beyond its own computing. It never makes an iteration shorter, because a real
// run can only sleep. What it adds is a function of (seed, place in the list of faults, worker, iteration), and of the iteration's own
// computing time where the spec has a factor.
package straggler

import (
	"fmt"
	"time"
)

// Spec is the slowness of `faults: [{worker: 3, slow: {...}}]`. Times and factors are those of one iteration. Package configs checks it.
type Spec struct {
	Kind      string        `yaml:"kind" values:"@stragglers" doc:"how the slowness varies from iteration to iteration; constant: not at all; fluentps and dbs: the injectors of these papers; trace: each iteration takes at least as long as it took in a real run"`
	Factor    float64       `yaml:"factor,omitempty" above:"1" when:"kind=constant,exponential,normal,lognormal,two_state" doc:"multiplies the time of computing, on average; or sleep"`
	Sleep     time.Duration `yaml:"sleep,omitempty" above:"0" when:"kind=constant,exponential,normal,lognormal,two_state,fluentps" doc:"time added to each iteration, on average; or factor"`
	Spread    float64       `yaml:"spread" above:"0" max:"10" when:"kind=normal,lognormal,fluentps" doc:"normal, fluentps: standard deviation of the slowness, as a share of its mean; what would be negative is 0. lognormal: standard deviation of its logarithm"`
	Draws     int64         `yaml:"draws,omitempty" min:"0" max:"1000" when:"kind=exponential,normal,lognormal" doc:"draws of an iteration: each of so many equal parts of its batch is slowed by a draw of its own; 0: one"`
	Enter     float64       `yaml:"enter" above:"0" max:"1" when:"kind=two_state" doc:"probability per iteration that a slow phase begins; outside of it nothing is added"`
	Leave     float64       `yaml:"leave" above:"0" max:"1" when:"kind=two_state" doc:"probability per iteration that a slow phase ends"`
	Chance    float64       `yaml:"chance" above:"0" max:"1" when:"kind=dbs" doc:"probability per epoch that some slow epochs begin"`
	SleepMin  time.Duration `yaml:"sleep_min" min:"0" when:"kind=dbs" doc:"least time that is added to a slow epoch, spread over its iterations"`
	SleepMax  time.Duration `yaml:"sleep_max" above:"0" when:"kind=dbs" doc:"most time that is added to a slow epoch"`
	EpochsMin int64         `yaml:"epochs_min" min:"1" max:"1e9" when:"kind=dbs" doc:"fewest slow epochs in a row"`
	EpochsMax int64         `yaml:"epochs_max" min:"1" max:"1e9" when:"kind=dbs" doc:"most slow epochs in a row"`
	Every     int           `yaml:"every" min:"1" max:"1e9" when:"kind=fluentps" doc:"only workers whose index is a multiple of this are slowed"`
	Path      string        `yaml:"path,required" form:"path" when:"kind=trace" doc:"iterations.csv of a run folder; the times of its iterations without injected slowness are used in order, and again from the second one on"`
	From      int64         `yaml:"from" min:"0" doc:"first iteration that is slowed"`
	Until     int64         `yaml:"until" min:"0" doc:"first iteration that is no longer slowed; 0: to the end"`
}

// Defaults returns the defaults of the keys that have one. The numbers of dbs are those of its authors' disturbance test [A].
func Defaults() Spec {
	return Spec{Kind: "constant", Spread: 0.1, Enter: 0.01, Leave: 0.1,
		Chance: 0.1, SleepMin: 5 * time.Second, SleepMax: 10 * time.Second, EpochsMin: 4, EpochsMax: 20, Every: 2}
}

// Env is the worker that is slowed.
type Env struct {
	Seed     uint64 // of the run
	Place    int    // of the spec in the list of faults: equal specs draw apart
	Worker   int    // index among the ranks that compute
	PerEpoch int64  // iterations of an epoch, at least 1; dbs needs it
	Trace    Trace  // of this worker; only trace needs it, and it is not empty there
}

// Amount is what an iteration takes beyond its own computing: what is missing until it has computed for Least, then Times multiples
// of both together, and Sleep.
type Amount struct {
	Times float64
	Sleep time.Duration
	Least time.Duration
}

// Of returns the time that is added to an iteration whose own computing takes own.
func (a Amount) Of(own time.Duration) time.Duration {
	missing := max(0, a.Least-own)
	d := a.Sleep + missing
	if a.Times > 0 {
		d += time.Duration(float64(a.Times * float64(own+missing)))
	}
	return d
}

// Part returns what a part of an iteration takes that is share of its samples.
func (a Amount) Part(share float64) Amount {
	a.Sleep, a.Least = time.Duration(share*float64(a.Sleep)), time.Duration(share*float64(a.Least))
	return a
}

// parted is an injector that draws for parts of an iteration, independently. Part 0 is what Draw returns.
type parted interface {
	drawPart(iter, part int64) Amount
}

// Injector is the slowness of one worker by one spec. Draw returns what iteration iter takes beyond its computing; equal arguments give
// equal amounts, in whatever order they come. It is cheap in order of iterations.
type Injector interface{ Draw(iter int64) Amount }

// New makes the injector of a worker, nil if the spec does not slow it. It fails for a kind that is not in the table.
func New(s Spec, e Env) (Injector, error) {
	entry, ok := All.Lookup(s.Kind)
	if !ok {
		return nil, fmt.Errorf("straggler: no kind %q; there are: %v", s.Kind, All.Names())
	}
	if s.Kind == "fluentps" && e.Worker%s.Every != 0 {
		return nil, nil
	}
	return &bounded{Injector: entry.make(s, e), from: s.From, until: s.Until, draws: max(1, s.Draws)}, nil
}

// bounded is an injector from an iteration on, until another.
type bounded struct {
	Injector
	from, until int64 // until 0: to the end
	draws       int64 // of an iteration
}

func (b *bounded) Draw(iter int64) Amount {
	if !b.has(iter) {
		return Amount{}
	}
	return b.Injector.Draw(iter)
}

// at is what an iteration takes in part k of so many equal ones.
func (b *bounded) at(iter, k, parts int64) Amount {
	p, ok := b.Injector.(parted)
	if !ok || b.draws == 1 || !b.has(iter) {
		return b.Draw(iter)
	}
	return p.drawPart(iter, k*b.draws/parts)
}

func (b *bounded) has(iter int64) bool { return iter >= b.from && (b.until == 0 || iter < b.until) }

// unit is what one part of a random slowness is: so many multiples of the computing, or a time.
func (s *Spec) unit() Amount {
	if s.Sleep > 0 {
		return Amount{Sleep: s.Sleep}
	}
	return Amount{Times: s.Factor - 1}
}

// scaled returns x such units; negative parts are none.
func (a Amount) scaled(x float64) Amount {
	x = max(0, x)
	return Amount{Times: float64(a.Times * x), Sleep: time.Duration(min(float64(float64(a.Sleep)*x), sleepMost))}
}

// sleepMost bounds what a draw may add, so that no sum of times overflows: 3 years.
const sleepMost = float64(100_000_000 * time.Second)
