// Package configs loads the YAML of an experiment: strictly, and with every problem reported at once.
//
// The order of precedence is default < YAML < FLUENTPS_* environment < --set < a verb's own flag.
package configs

import (
	"math"
	"time"

	"fluentps/comm/payload"
	"fluentps/ps/metrics"
	"fluentps/ps/optim"
	"fluentps/ps/send"
	"fluentps/ps/shard"
	"fluentps/ps/workload"
)

// Config is one experiment, defaults filled, checked.
type Config struct {
	Name         string             `yaml:"name,required" form:"run name" doc:"names the run folder"`
	Seed         uint64             `yaml:"seed" doc:"every random choice of the run follows from it"`
	Baseline     string             `yaml:"baseline" values:"none,allreduce,pslite" doc:"what to compare with: allreduce (MPI's own, no servers) or pslite (a server as PS-Lite has it)"`
	BaselineKeys string             `yaml:"baseline.keys" values:"@key forms" when:"baseline=pslite" doc:"what has a key: a tensor, and a message has the list of all that a server holds; a tensor, each with a message of its own; or every scalar, 8 bytes of key for 4 of value"`
	Cluster      Cluster            `yaml:"cluster"`
	Data         workload.Data      `yaml:"data"`
	Model        workload.ModelSpec `yaml:"model"`
	Train        Train              `yaml:"train"`
	Evaluate     Evaluate           `yaml:"evaluate"`
	Device       Device             `yaml:"device"`
	Shards       shard.Spec         `yaml:"shards"`
	Sync         []Rule             `yaml:"sync" doc:"rules in order; the first whose match fits a parameter's name takes it"`
	Send         send.Spec          `yaml:"send"`
	Payload      Payload            `yaml:"payload"`
	Work         Work               `yaml:"work"`
	Local        Local              `yaml:"local"`
	Faults       []Fault            `yaml:"faults" doc:"injected slowness, for experiments"`
	Stall        Stall              `yaml:"stall"`
	Checkpoint   Checkpoint         `yaml:"checkpoint"`
	Metrics      metrics.Spec       `yaml:"metrics"`
	Simulate     Simulate           `yaml:"simulate"`
}

// Defaults are the values of what is not set: of keys that have a default, and of which none depends on other keys.
func Defaults() Config {
	return Config{
		Seed:         1,
		Baseline:     BaselineNone,
		BaselineKeys: shard.KeysTensor,
		Cluster:      Cluster{Servers: 1, Placement: "spread", Hierarchy: HierarchyNone, SharedMemory: SharedAuto, Bind: BindAuto, MemoryMax: 8 << 30},
		Data:         workload.DataDefaults(),
		Model:        workload.ModelDefaults(),
		Train: Train{
			Optimizer: Optimizer{Spec: optim.Defaults(), NoDecay: []string{"*.bias", "bn*"}},
			Schedule:  optim.ScheduleDefaults(),
		},
		Evaluate:   Evaluate{EveryEpochs: 1, Where: "after"},
		Device:     Device{Kind: "auto", Index: -1, Gemm: "auto", Math: "float32", CUDAAwareMPI: CUDAAwareAuto, Threads: 1},
		Shards:     shard.Defaults(),
		Sync:       []Rule{{Match: "*", Phase: Phase{Scheme: "bsp"}}},
		Send:       send.Defaults(),
		Payload:    Payload{Push: "float32", Pull: "float32", Params: payload.Defaults()},
		Work:       Work{Policy: "fixed"},
		Local:      Local{Steps: 1},
		Stall:      Stall{Warn: time.Minute, Peer: time.Minute},
		Checkpoint: Checkpoint{Keep: 3, Best: BestNone},
		Metrics:    metrics.Defaults(),
		Simulate: Simulate{
			Workers: 4, RanksPerHost: 1, Compute: 10 * time.Millisecond, PushNorm: 0.1, FoldRate: 4e9, CommitRate: 2e9,
			Noise:   Noise{Kind: "none", Spread: 0.1, Factor: 4, Enter: 0.01, Leave: 0.1},
			Network: Network{Bandwidth: 1250e6, Latency: 20 * time.Microsecond},
		},
	}
}

// newRule is a rule of which nothing is set.
func newRule() Rule { return Rule{Push: PushGradient, Update: UpdateOptimizer} }

// Cluster says which ranks serve.
type Cluster struct {
	Servers      int    `yaml:"servers" min:"1" max:"65535" doc:"ranks that serve"`
	Placement    string `yaml:"placement" values:"@placements" doc:"which ranks serve: spread over hosts, pack the first hosts, colocate with workers, mixed: servers serve alone and all workers serve a smaller part (BytePS)"`
	Hierarchy    string `yaml:"hierarchy" values:"none,node" doc:"node: the gradients of the ranks of a host are summed before one of them, the worker, pushes and pulls for all"`
	SharedMemory string `yaml:"shared_memory" values:"auto,off" doc:"auto: servers and workers of one host read parameters and gradients in each other's memory; off: they send them"`
	Bind         string `yaml:"bind" values:"auto,off" doc:"auto: where a host has more ranks than cores, and the launcher has bound none, each keeps to one core, in turn; off: the system moves them"`
	Link         string `yaml:"link,omitempty" form:"link rates" doc:"rate of the network card of a host, each way, as in 10Gbit; of hosts with another rate: 10Gbit,node3=1Gbit. plan and the summary then show the least time of an iteration that these cards allow; nothing else depends on it"`
	MemoryMax    int64  `yaml:"memory_max" min:"1MiB" max:"1048576GiB" unit:"bytes" doc:"buffers of one rank, beside the data set; plan shows what they are for; and the most that rows of data take while they are read"`
}

// Train says how to learn and when to stop. Exactly one of the two batch sizes is set.
type Train struct {
	BatchPerWorker int            `yaml:"batch_per_worker,omitempty" min:"1" max:"1e9" doc:"samples of one worker in one iteration; or batch_global"`
	BatchGlobal    int            `yaml:"batch_global,omitempty" min:"1" max:"1e9" doc:"samples of all workers in one iteration; or batch_per_worker"`
	Optimizer      Optimizer      `yaml:"optimizer"`
	Schedule       optim.Schedule `yaml:"schedule"`
	Stop           Stop           `yaml:"stop"`
}

// Optimizer is the update rule and its constants, and what is spared.
type Optimizer struct {
	optim.Spec
	L1      float64  `yaml:"l1" min:"0" max:"1e30" when:"name=sgd" doc:"L1 penalty: after each step, parameters go lr times so far towards 0 and stop there, so that many are exactly 0"`
	NoDecay []string `yaml:"no_decay" form:"glob" doc:"parameters that weight decay and l1 spare: biases and batch norm"`
}

// Stop is the budget, counted over all workers; the first that holds ends the run. 0 or unset: no limit.
type Stop struct {
	Epochs  float64       `yaml:"epochs,omitempty" above:"0" doc:"passes over the training rows, all workers together"`
	Samples int64         `yaml:"samples,omitempty" min:"1" doc:"samples over all workers"`
	Updates int64         `yaml:"updates,omitempty" min:"1" doc:"versions of the lead shard"`
	Time    time.Duration `yaml:"time,omitempty" above:"0" doc:"training time"`
	Target  float64       `yaml:"target,omitempty" above:"0" max:"1" doc:"test accuracy; needs evaluate.where: online"`
}

// SampleBudget is the limit in samples over all workers, of the two that are set the smaller; 0: none. rows is the size
// of the training set.
func (s Stop) SampleBudget(rows int) int64 {
	if s.Epochs <= 0 {
		return s.Samples
	}
	epochs := saturated(math.Ceil(s.Epochs * float64(rows)))
	if s.Samples > 0 {
		return min(s.Samples, epochs)
	}
	return epochs
}

// Evaluate says when the test set is looked at.
type Evaluate struct {
	EveryEpochs  float64 `yaml:"every_epochs" min:"0" doc:"epochs between two evaluations; 0: only at the end"`
	EverySamples int64   `yaml:"every_samples" min:"0" doc:"samples over all workers between two evaluations, where epochs are too coarse; 0: as every_epochs says"`
	Where        string  `yaml:"where" values:"after,online" doc:"after training by all ranks, or online beside it on server 0"`
}

// Device says what computes.
type Device struct {
	Kind         string `yaml:"kind" values:"cpu,cuda,auto" doc:"what workers compute on; cuda: an NVIDIA GPU each; auto: that where there is one, else the CPU; servers always take the CPU"`
	Index        int    `yaml:"index" min:"-1" max:"1023" when:"kind=cuda" doc:"the GPU of every worker, among those visible on its host; -1: the workers of a host take one after the other"`
	Gemm         string `yaml:"gemm" values:"own,cublas,auto" when:"kind=cuda" doc:"what multiplies matrices on a GPU: own kernels, cuBLAS (libcublas.so.13, 12 or 11), or auto: that where it is found"`
	Math         string `yaml:"math" values:"float32,tf32" when:"kind=cuda" doc:"tf32: cuBLAS rounds the factors of products to 10 bits, which is faster; our own kernels do not"`
	CUDAAwareMPI string `yaml:"cuda_aware_mpi" values:"auto,on,off" when:"kind=cuda" doc:"gradients leave a GPU's memory over MPI, and parameters come there, without a copy in the host's; auto: if the MPI library says that it is CUDA-aware; on: else the run ends; off: never"`
	Threads      int    `yaml:"threads" min:"1" max:"1024" doc:"threads of one rank: of a worker's kernels, of a server's commits from 2 MiB on"`
}

// Rule gives the parameters whose names fit Match their scheme.
type Rule struct {
	Match   string  `yaml:"match,required" form:"glob" doc:"glob on names such as fc1.weight; * crosses dots"`
	Servers []int   `yaml:"servers,omitempty" min:"0" max:"65534" items:"1" doc:"indices of the servers whose shards it takes, from 0; a shard takes the first rule whose match and servers fit, wherever it lies; default: all servers"`
	Phase           // the scheme, or the first of several in turn
	Push    string  `yaml:"push" values:"gradient,delta" doc:"what a push carries: the gradient, or the delta of a step that the worker took with the optimizer of its own"`
	Update  string  `yaml:"update" values:"optimizer,add" doc:"how a commit changes the parameters: optimizer takes gradients, add takes deltas; default: what push needs; statistics are averaged under both"`
	Then    []Phase // those that follow
}

// Payload is how vectors travel.
type Payload struct {
	Push string `yaml:"push" values:"@payloads" doc:"how pushes travel: all elements in full or in half as many bytes, or the largest ones alone, where the rest is added to the next push"`
	Pull string `yaml:"pull" values:"@dense payloads" doc:"how parameters travel to the workers; the servers keep float32"`
	payload.Params
}

// Work is who computes which samples.
type Work struct {
	Policy string `yaml:"policy" values:"fixed" doc:"who computes which samples"`
}

// Local is what a worker does between exchanges.
type Local struct {
	Steps int `yaml:"steps" min:"1" max:"1" doc:"steps of a worker between two exchanges"`
}

// Fault is injected slowness, for experiments.
type Fault struct {
	Worker int  `yaml:"worker,required" unit:"worker" doc:"index of the worker from 0; \"*\" for all"`
	Slow   Slow `yaml:"slow"`
}

// Slow stretches every iteration's computation. Exactly one of Factor and Sleep is set.
type Slow struct {
	Factor float64       `yaml:"factor,omitempty" above:"1" doc:"computation takes so many times as long; or sleep"`
	Sleep  time.Duration `yaml:"sleep,omitempty" above:"0" doc:"each iteration takes so much longer; or factor"`
	From   int64         `yaml:"from" min:"0" doc:"first iteration that is slowed"`
	Until  int64         `yaml:"until" min:"0" doc:"first iteration that is not; 0: to the end"`
}

// Stall says when a wait is called a stall.
type Stall struct {
	Warn  time.Duration `yaml:"warn" min:"0" doc:"a wait this long is explained; 0s: never"`
	Abort time.Duration `yaml:"abort" min:"0" doc:"a wait this long ends the run with exit code 4; 0s: never"`
	Peer  time.Duration `yaml:"peer" min:"0" doc:"a rank that gives no sign of life for so long, killed, stopped or cut off, ends the run with exit code 4; 0s: never"`
}

// PeerMin is the shortest stall.peer: heartbeats are heard a few times a second.
const PeerMin = time.Second

// Checkpoint says what is kept of a run to go on from.
type Checkpoint struct {
	Every        time.Duration `yaml:"every" min:"0" doc:"time between two checkpoints while training goes on; 0s: one at the end; where workers are not in step, as under bsp, all pause for it"`
	EveryUpdates int64         `yaml:"every_updates" min:"0" doc:"versions of the lead shard between two, in place of a time; 0: as every says"`
	Replica      int           `yaml:"replica" min:"0" max:"1" doc:"1: checkpoints while training goes on are in the memory of hosts too, each file on its own host and the next; needs every or every_updates"`
	Keep         int           `yaml:"keep" min:"0" max:"1000" doc:"checkpoints kept, the newest ones; one is written when training ends in any case; 0: none at all"`
	Best         string        `yaml:"best" values:"none,accuracy,loss" doc:"by what on the test set the best checkpoint is kept beside the newest ones: accuracy or loss; server 0 looks at each, beside training; none: it is not"`
}

// Simulate is the cluster that simulate models. Rates are in bytes per second, and 0 is without a limit.
type Simulate struct {
	Workers      int           `yaml:"workers" min:"1" max:"1048576" doc:"ranks that work"`
	RanksPerHost int           `yaml:"ranks_per_host" min:"1" max:"65535" doc:"ranks that share a host and its network card"`
	Compute      time.Duration `yaml:"compute" above:"0" doc:"computing of one worker in one iteration, before noise and faults"`
	PerWorker    []float64     `yaml:"per_worker" above:"0" max:"1e6" doc:"each worker's multiple of compute, in order; []: all alike"`
	Noise        Noise         `yaml:"noise"`
	Network      Network       `yaml:"network"`
	FoldRate     int64         `yaml:"server.fold" min:"0B" max:"1048576GiB" unit:"bytes" doc:"bytes per second at which a server adds up pushes; 0B: without limit"`
	CommitRate   int64         `yaml:"server.commit" min:"0B" max:"1048576GiB" unit:"bytes" doc:"bytes per second at which a server makes versions; 0B: without limit"`
	PushNorm     float64       `yaml:"push_norm" min:"0" doc:"magnitude of each element of a pushed mean, for schemes that ask for norms; parameters are 1"`
	Gradients    bool          `yaml:"gradients" doc:"real gradients in virtual time: the workers train, and times are still modelled"`
}

// Noise varies the compute time from iteration to iteration, each worker on its own.
type Noise struct {
	Kind   string  `yaml:"kind" values:"none,normal,exponential,two_state,trace" doc:"how computing varies: normal, exponential on top of compute, two_state with slow phases, or the trace of a real run instead of compute"`
	Spread float64 `yaml:"spread" above:"0" max:"1000" when:"kind=normal,exponential" doc:"standard deviation (normal) or mean of what is added (exponential), as a share of compute"`
	Factor float64 `yaml:"factor" above:"1" max:"1000" when:"kind=two_state" doc:"a slow phase takes so many times as long"`
	Enter  float64 `yaml:"enter" above:"0" max:"1" when:"kind=two_state" doc:"probability per iteration that a slow phase begins"`
	Leave  float64 `yaml:"leave" above:"0" max:"1" when:"kind=two_state" doc:"probability per iteration that a slow phase ends"`
	Path   string  `yaml:"path,required" form:"path" when:"kind=trace" doc:"iterations.csv of a run folder: its computing times without injected slowness, in order, and from the second on again"`
}

// Network is what moves the bytes: every host has one full-duplex card.
type Network struct {
	Bandwidth int64         `yaml:"bandwidth" min:"0B" max:"1048576GiB" unit:"bytes" doc:"bytes per second of a host's network card, each way; 0B: without limit"`
	Latency   time.Duration `yaml:"latency" min:"0" doc:"of every message"`
	Memory    int64         `yaml:"memory" min:"0B" max:"1048576GiB" unit:"bytes" doc:"bytes per second between ranks of one host; 0B: without limit"`
}
