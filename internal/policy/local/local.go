// Package local says what a worker does between two exchanges with its servers: how many steps of its own it takes on parameters of its
// own, when it takes over what the servers answer, and how. It is pure: a policy is told how far the run is, and answers with the next
// round. Every worker has a policy of its own; the runtime and the simulator drive the same ones.
//
// A round is the steps between two pushes. The worker's node counts rounds: its clock, and the staleness of schemes, count exchanges.
// train.optimizer and train.schedule step on gradients, on the worker, and count its steps. local.outer is what the servers do with what
// arrives, and counts exchanges.
package local

import (
	"fmt"
	"math"
)

// Spec is `local: {...}`. Package configs checks it.
type Spec struct {
	Policy     string  `yaml:"policy" values:"@locals" doc:"what a worker does between two exchanges: none: every step is an exchange of gradients; with any other policy it takes steps of its own with train.optimizer"`
	Steps      int64   `yaml:"steps" min:"0" max:"1e9" doc:"steps of a worker between two exchanges; hpsgd, 0: as many as an exchange takes; async_local: those of the fastest worker"`
	HostSteps  int64   `yaml:"host_steps" min:"1" max:"1e9" doc:"with cluster.hierarchy: node: steps of a rank between two averagings of the parameters within its host; steps is a multiple of it"`
	Period     Period  `yaml:"period"`
	Switch     int64   `yaml:"switch" min:"1" max:"1e15" when:"policy=post_local" doc:"steps in which every step is an exchange, before the period begins"`
	Fragments  int64   `yaml:"fragments" min:"1" max:"1024" when:"policy=streaming_diloco" doc:"parts of the parameters, each of which is exchanged in every steps steps, in turn; a shard is in one of them"`
	Delay      int64   `yaml:"delay" min:"0" max:"1e9" when:"policy=streaming_diloco" doc:"steps that a worker goes on before it takes over the answer of an exchange; at most steps / fragments"`
	Keep       float64 `yaml:"keep" min:"0" below:"1" when:"policy=streaming_diloco" as:"float32" doc:"share of its own parameters that a worker keeps when it takes over an answer"`
	Pull       float64 `yaml:"pull" above:"0" max:"1" when:"policy=easgd" as:"float32" doc:"share of the distance between worker and servers that both move in an exchange; N times it should be below 1"`
	Compensate float64 `yaml:"compensate" min:"0" max:"1e6" when:"policy=hpsgd" as:"float32" doc:"lambda of DC-ASGD's correction of changes for the parameters that they are applied to; 0: none"`
	Dynamic    bool    `yaml:"dynamic" when:"policy=async_local" doc:"each worker takes steps in proportion to its speed (DyLU); false: all take steps"`
	State      string  `yaml:"state" values:"own,average" when:"policy=averaging,post_local" doc:"own: each worker keeps the state of its optimizer; average: the state is averaged as the parameters are, and a round moves so many times the bytes"`
	Outer      Outer   `yaml:"outer"`
}

// Period says how the number of steps between two exchanges changes.
type Period struct {
	Name      string  `yaml:"name" values:"@periods" doc:"constant: steps; qsr: more steps at low learning rates; adacomm: fewer as the loss falls; selsync: until the gradients of some worker change, at most steps"`
	Alpha     float64 `yaml:"alpha" above:"0" max:"1e6" when:"name=qsr" doc:"QSR: a round has (alpha / learning rate)^2 steps, at least steps"`
	Interval  int64   `yaml:"interval" min:"1" max:"1e9" when:"name=adacomm" doc:"exchanges between two changes of the period"`
	Threshold float64 `yaml:"threshold" min:"0" max:"1e9" when:"name=selsync" doc:"relative change of the smoothed norm of gradients from which on all workers exchange"`
	Smoothing float64 `yaml:"smoothing" above:"0" max:"1" when:"name=selsync" doc:"share of the newest norm in the smoothed one; 1: norms are not smoothed"`
	Warm      int64   `yaml:"warm" min:"0" max:"1e9" when:"name=selsync" doc:"first steps, each of which is an exchange"`
}

// Changes says whether the number of steps between two exchanges changes.
func (p *Period) Changes() bool { return p.Name != constant.Name }

// Outer is what the servers do with the changes that workers push.
type Outer struct {
	Name     string  `yaml:"name" values:"sgd,momentum,nesterov" when:"policy=@locals with a rule" doc:"rule of the servers, along the mean of the workers' changes; sgd with lr 1 averages their parameters"`
	LR       float64 `yaml:"lr" above:"0" max:"1e6" when:"policy=@locals with a rate" as:"float32" doc:"learning rate of the servers; 1 takes the whole change"`
	Momentum float64 `yaml:"momentum" min:"0" below:"1" when:"policy=@locals with a rate" as:"float32" doc:"share of the servers' last step in the next"`
	Every    int64   `yaml:"every" min:"0" max:"1e9" when:"policy=async_local" doc:"pushes between two changes of the momentum; 0: as many as there are workers"`
	Between  float64 `yaml:"between" min:"0" max:"1" when:"policy=async_local" as:"float32" doc:"share of the momentum that each push between two such changes applies"`
}

// Defaults is a run without steps of the workers' own. Package configs replaces some values by those of the policy (Entry.Defaults).
func Defaults() Spec {
	return Spec{Policy: None, Steps: 1, HostSteps: 1, Switch: 100, Fragments: 4, Pull: 0.1, Dynamic: true, State: "own",
		Period: Period{Name: "constant", Alpha: 0.0175, Interval: 10, Threshold: 0.3, Smoothing: 0.16, Warm: 25},
		Outer:  Outer{Name: "sgd", LR: 1}}
}

// None is the policy of a run in which every step is an exchange of gradients.
const None = "none"

// AveragesState says whether the state of the workers' optimizers is averaged as their parameters are.
func (s *Spec) AveragesState() bool { return s.State == "average" }

// IsSet says whether workers take steps of their own.
func (s *Spec) IsSet() bool { return s.Policy != None }

// Constant is the number of steps of every round, if the configuration alone says it; else 0.
func (s *Spec) Constant() int64 {
	e, _ := All.Lookup(s.Policy)
	switch {
	case !s.IsSet():
		return 1
	case e.Fragments:
		return max(1, s.Steps/max(1, s.Fragments))
	case e.Varies != nil && e.Varies(s), e.Periods && s.Period.Changes():
		return 0
	}
	return s.Steps
}

// Text says what workers do between two exchanges; "" if every step is one.
func (s *Spec) Text() string {
	e, _ := All.Lookup(s.Policy)
	switch {
	case !s.IsSet():
		return ""
	case s.Constant() > 0:
		return fmt.Sprintf("%s, %d steps", s.Policy, s.Constant())
	case e.Periods && s.Period.Name != "constant":
		return fmt.Sprintf("%s, %s from %d steps", s.Policy, s.Period.Name, s.Steps)
	case s.Steps == 0:
		return s.Policy
	}
	return fmt.Sprintf("%s, up to %d steps", s.Policy, s.Steps)
}

// Turns is the number of exchanges in which each shard is exchanged once.
func (s *Spec) Turns() int64 {
	if e, _ := All.Lookup(s.Policy); e.Fragments {
		return max(1, s.Fragments)
	}
	return 1
}

// StepsMost is the most steps whose changes a push has; 0: no limit follows from the configuration. A fragment is exchanged in every
// Fragments-th round, so its push has the changes of Steps steps, as where all is exchanged together.
func (s *Spec) StepsMost() int64 {
	e, _ := All.Lookup(s.Policy)
	switch {
	case !s.IsSet():
		return 1
	case e.Periods && s.endless():
		return 0
	}
	return s.Steps
}

// StepsMin is the fewest steps of a round that the budget does not cut short.
func (s *Spec) StepsMin() int64 { return max(1, s.Constant()) }

// Env is the run.
type Env struct {
	Workers int
	Rate    func(step float64) float64 // learning rate of a worker's step, counted from 0
	WarmUp  int64                      // steps in which that rate rises
}

// Now is what a worker knows when a round begins.
type Now struct {
	Step  int64   // steps that it has taken
	Left  int64   // steps that the budget leaves for each worker; below 0: there is no such limit
	Loss  float64 // mean training loss of the newest version that it knows; NaN: none
	Share float64 // its samples per second beside those of the fastest worker, above 0 and at most 1
}

// Round is what a worker does until its next push.
type Round struct {
	Steps int64 // at least 1
	// Ahead of them may be taken before the answers to the last push are there; then it waits, and takes them over. At most Steps. If it
	// is Steps and the policy merges at the end (Entry.Late), the worker pushes first.
	Ahead int64
	// Open says that the round ends when the answers are there: after at least Steps steps, all of which may be taken before.
	Open bool
	// Votes says that the round may end after any step, when some worker votes for that.
	Votes bool
}

// Policy is a pure state machine: the same runs give the same rounds.
type Policy interface {
	Round(n Now) Round
	// Memory is what the next rounds depend on, and Recall restores it in a new policy.
	Memory() []float64
	Recall(memory []float64) error
}

// New makes the policy of a worker; nil for none.
func New(s Spec, e Env) (Policy, error) {
	entry, ok := All.Lookup(s.Policy)
	if !ok {
		return nil, fmt.Errorf("local: no policy %q; there are: %v", s.Policy, All.Names())
	}
	if entry.make == nil {
		return nil, nil
	}
	if err := entry.Complete(); err != nil {
		return nil, fmt.Errorf("local policy %q: %w", s.Policy, err)
	}
	if e.Workers < 1 || e.Rate == nil {
		return nil, fmt.Errorf("local: %d workers; a policy needs at least 1, and their learning rate", e.Workers)
	}
	return entry.make(s, e), nil
}

// memoryless is a policy that remembers nothing.
type memoryless struct{}

func (memoryless) Memory() []float64 { return nil }

func (memoryless) Recall(memory []float64) error {
	if len(memory) > 0 {
		return fmt.Errorf("local: %d saved numbers for a policy that remembers nothing", len(memory))
	}
	return nil
}

// within cuts a round short where the budget ends.
func (n Now) within(steps int64) int64 {
	if n.Left >= 0 {
		steps = min(steps, n.Left)
	}
	return max(1, steps)
}

// finite is x as a number of steps, at most StepsMax.
func finite(x float64) int64 {
	if math.IsNaN(x) || x >= StepsMax {
		return StepsMax
	}
	return int64(x)
}

// StepsMax is the most steps of a round.
const StepsMax = 1_000_000_000

// endless says whether a round may take all steps that the budget leaves.
func (s *Spec) endless() bool {
	p, _ := Periods.Lookup(s.Period.Name)
	return p.Endless
}
