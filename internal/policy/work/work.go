// Package work says how many samples each rank computes in an iteration, and which. It is pure: a policy is told what the workers measured,
// and answers with the next plan. Server 0 has the only policy of a run; the simulator drives the same one.
//
// A plan holds for a number of iterations, the same for all workers, who then wait for the next plan. So an assignment begins at the
// same iteration everywhere, under every scheme. Times are those of computing, without any wait.
package work

import (
	"fmt"
	"time"
)

// Spec is `work: {...}`. Package configs checks it.
type Spec struct {
	Policy   string    `yaml:"policy" values:"@works" doc:"how many samples each rank that computes gets: fixed: train.batch_per_worker, or its share of train.batch_global; dbs: by the times of the epoch before; r2sp_batch: by profiles; flexrr and epsp: others compute some of it for a worker that is behind; anytime and dropcompute: samples that would be late are left out; partial and coded: several workers compute the same samples"`
	Shares   []float64 `yaml:"shares,omitempty" above:"0" max:"1e6" when:"policy=fixed" doc:"shares of the batch and of the data by rank that computes, in order; []: equal"`
	BatchMax int       `yaml:"batch_max" min:"0" max:"1e9" when:"policy=dbs,r2sp_batch" doc:"most samples of one rank in an iteration, for which memory is allocated; 0: 4 times an equal share"`
	Replay   string    `yaml:"replay,omitempty" form:"path" when:"policy=dbs,r2sp_batch" doc:"work.csv of a run folder: batches are dealt by the times in it, and not by those that are measured; so the batches of that run come again, and under bsp its parameters to the bit"`
	Profile  int64     `yaml:"profile" min:"1" max:"1e6" when:"policy=r2sp_batch,dropcompute" doc:"iterations of a profile; r2sp_batch: after each one the batches are judged; dropcompute with time 0: in the first ones nothing is left out, and the times of the steps are measured"`
	Delta    float64   `yaml:"delta" above:"0" max:"1e3" when:"policy=r2sp_batch" doc:"batches are judged unfit if a worker is off the common finish time by more than this share of the gap between two workers"`
	Rounds   int       `yaml:"rounds" min:"1" max:"1000" when:"policy=r2sp_batch" doc:"batches change when so many profiles in a row judged them unfit"`

	Micro int           `yaml:"micro" min:"0" max:"1e9" when:"policy=@works with steps" doc:"samples of a step (a micro-batch): tasks are moved, and computing ends, between two steps; 0: a sixteenth of the batch, at least 1; flexrr and epsp take an eighth as long as the worker gives no samples away"`
	Time  time.Duration `yaml:"time" min:"0" max:"1e6" when:"policy=anytime,dropcompute" doc:"how long a worker computes in an iteration: it begins no step later, except the first; dropcompute, 0: tau is chosen from what is measured in the first iterations"`
	Alpha float64       `yaml:"alpha" min:"0" max:"1e3" when:"policy=epsp" doc:"a worker is a straggler if it is projected to take longer than the median of all by more than this share"`
	Rate  float64       `yaml:"rate" above:"0" max:"1" when:"policy=epsp" doc:"share of the newest iteration in a worker's measured speed"`
	// ThreadsMax is elastic control within a worker.
	ThreadsMax int  `yaml:"threads_max" min:"0" max:"1024" when:"policy=epsp" doc:"most threads of a worker's kernels: when an iteration starts, a straggler gets one of the device.threads of a worker on its host that can do without, until it has so many; 0: no thread moves"`
	Help       Help `yaml:"help"`
	Code       Code `yaml:"code"`

	Load     int    `yaml:"load" min:"1" max:"1e6" when:"policy=partial" doc:"partitions that a worker computes in an iteration, its own first; with order cyclic there are as many copies of each"`
	Required int    `yaml:"required" min:"0" max:"1e6" when:"policy=partial" doc:"partitions that close an iteration; 0: all"`
	Order    string `yaml:"order" values:"cyclic,staircase" when:"policy=partial" doc:"which partitions a worker computes after its own: cyclic: those of the workers that follow it; staircase: every second worker goes backward"`
	Batching int    `yaml:"batching" min:"1" max:"1e6" when:"policy=partial" doc:"partitions whose results a worker pushes together, when the last of them is computed; load or more: all at its end"`
}

// Help is `help: {...}`: when a worker that has fallen behind gives samples of its batch to others.
type Help struct {
	Helpers int     `yaml:"helpers" min:"1" max:"1e6" when:"policy=flexrr" doc:"workers that may help a worker: those that follow it, in order of ranks"`
	Ask     float64 `yaml:"ask" above:"0" max:"1" when:"policy=flexrr" doc:"share of its iteration after which a worker tells those that it may help how far it is"`
	Behind  float64 `yaml:"behind" min:"0" max:"1e6" when:"policy=flexrr" doc:"a worker gives samples away if it is further behind its helper than this, in iterations"`
	Left    float64 `yaml:"left" min:"0" max:"1" when:"policy=flexrr" doc:"a worker gives samples away while more than this share of its batch is left"`
	First   float64 `yaml:"first" min:"0" max:"1" when:"policy=flexrr" doc:"share of the batch that a helper gets first; 0: one request an iteration, of half of what the worker is behind or has left"`
	Next    float64 `yaml:"next" above:"0" max:"1" when:"policy=flexrr" doc:"share of the batch that a helper gets each time that it has finished what it got"`
}

// Code is `code: {...}`: which partitions each worker computes, and how pushes are decoded.
type Code struct {
	Kind         string        `yaml:"kind" values:"auto,fractional,cyclic" when:"policy=coded" doc:"fractional: groups of stragglers + 1 workers compute the same partitions, and the first of each group counts; cyclic: each worker computes its own partition and those that follow, with random factors; auto: fractional where stragglers + 1 divides the number of workers, else cyclic"`
	Stragglers   int           `yaml:"stragglers" min:"0" max:"1e6" when:"policy=coded" doc:"workers that may be slow or lost: the pushes of the others give the whole gradient; each worker computes one partition more than this"`
	Alpha        float64       `yaml:"alpha" min:"0" max:"1e6" when:"policy=coded" doc:"partial stragglers: slow workers take at most so many times as long as the others, and their work is used. Of its batch each worker computes a share of (stragglers + 1) / (stragglers + alpha) alone and pushes it first; the rest is coded. Above 1; 0: all is coded, and slow workers may push nothing at all"`
	Draws        int           `yaml:"draws" min:"1" max:"1e3" when:"policy=coded" doc:"random cyclic codes that are drawn, of which the one with the smallest largest weight is taken"`
	ConditionMax float64       `yaml:"condition_max" min:"1" max:"1e12" when:"policy=coded" doc:"a cyclic code in which a push may weigh more than this is refused: rounding errors grow as much"`
	Deadline     time.Duration `yaml:"deadline" min:"0" max:"1e6" when:"policy=coded" doc:"how long after its first push an iteration is closed in any case, with what comes nearest to the whole gradient; 0: it waits for enough pushes"`
}

// Defaults are R2SP's profile, and the hysteresis of our reconstruction [R]; EPSP's numbers [R];
// FlexRR's thresholds [T]; its chunks are a default step, and none of the batch is kept, after a sweep of ours (FLEXRR.md) [X].
func Defaults() Spec {
	return Spec{Policy: Fixed, Profile: 20, Delta: 0.25, Rounds: 3, Alpha: 0.2, Rate: 0.3, Load: 2, Order: Cyclic, Batching: 1,
		Code: Code{Kind: "auto", Stragglers: 1, Draws: 100, ConditionMax: 1e4},
		Help: Help{Helpers: 3, Ask: 0.75, Behind: 0.2, First: 0.0625, Next: 0.0625}}
}

// The orders of partitions.
const (
	Cyclic    = "cyclic"
	Staircase = "staircase"
)

// StepOf is the number of samples of a step, of a batch.
func (s *Spec) StepOf(batch int) int {
	if s.Micro > 0 {
		return s.Micro
	}
	return max(1, batch/16)
}

// ProfileMax is the longest profile.
const ProfileMax = 1_000_000

// Env is the run.
type Env struct {
	Workers int `json:"workers"` // ranks that compute
	Batch   int `json:"batch"`   // samples of an iteration over all of them, at least Workers
	Max     int `json:"max"`     // samples that a plan gives one of them in an iteration, at most; Max * Workers is at least Batch
	Rows    int `json:"rows"`    // of the training set, at least Workers
}

// Measured is what one worker computed under a plan.
type Measured struct {
	Iterations int64         // 0: the worker has left the run
	Samples    int64         // of these iterations
	Took       time.Duration // sum of their computing times, with injected slowness, without waits
	Median     time.Duration // of the times of iterations with a whole batch
}

// Plan is what the workers do next.
type Plan struct {
	Batches    []int // by worker, at most Max each; 0: the worker has left
	Iterations int64 // after which the next plan begins; 0: never
	// Epoch says that these iterations are one pass over all rows: each worker has rows in proportion to its batch. Its
	// last batch may be shorter, or longer by a row.
	Epoch bool
}

// Policy is a pure state machine: equal measurements give equal plans.
type Policy interface {
	Start() Plan                   // the first plan
	Step(measured []Measured) Plan // by worker, when all that are left have computed the plan before
	// Memory is what the next steps depend on beside the present batches, and Recall restores both in a new policy, in place of Start.
	Memory() []float64
	Recall(batches []int, memory []float64) error
}

// New makes a policy; nil for fixed, whose only plan is the configuration.
func New(s Spec, e Env) (Policy, error) {
	entry, ok := All.Lookup(s.Policy)
	if !ok {
		return nil, fmt.Errorf("work: no policy %q; there are: %v", s.Policy, All.Names())
	}
	if entry.make == nil {
		return nil, nil
	}
	if e.Workers < 1 || e.Batch < e.Workers || e.Max*e.Workers < e.Batch || e.Rows < e.Workers {
		return nil, fmt.Errorf("work: %d samples an iteration for %d workers of at most %d each, and %d rows; each "+
			"worker needs at least 1 sample and 1 row", e.Batch, e.Workers, e.Max, e.Rows)
	}
	return entry.make(s, e), nil
}
